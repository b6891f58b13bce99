package main

import (
	"context"
	"errors"
	"math"
	"time"

	"intumwa/billing"
	"intumwa/messages"
)

type adminTopCmd struct {
	Since instant `help:"In which time: since a time, a date, or 1h for the last hour." default:"1h" placeholder:"T"`
	Limit int     `help:"How many at most." default:"10"`
}

type adminSpender struct {
	CompanyID int64   `json:"company_id"`
	Name      string  `json:"name"`
	Approved  bool    `json:"approved"`
	Segments  int64   `json:"segments"`
	Requests  int64   `json:"requests"`
	Share     float64 `json:"share"` // of all companies' segments, in percent
	Queued    int64   `json:"queued"`
}

// Run lists who sends most: the segments that were accepted of each company, and what of it waits for a carrier now.
func (c *adminTopCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Limit < 1 || c.Limit > 1000 {
		return errors.New("--limit must be from 1 to 1000")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		spenders, all, err := billing.New(o.pool).Spenders(ctx, c.Since.UTC().Truncate(time.Second), c.Limit)
		if err != nil {
			return nil, err
		}
		queues, err := messages.New(o.pool).Queues(ctx)
		if err != nil {
			return nil, err
		}
		list := make([]adminSpender, len(spenders)) // [] in JSON, not null
		for i, s := range spenders {
			company, err := o.accounts().CompanyByID(ctx, s.CompanyID)
			if err != nil {
				return nil, err
			}
			list[i] = adminSpender{CompanyID: s.CompanyID, Name: company.Name, Approved: company.Approved, Segments: s.Credits, Requests: s.Requests,
				Share: math.Round(1000*float64(s.Credits)/float64(all)) / 10, Queued: queues[s.CompanyID]}
		}
		return list, nil
	})
}

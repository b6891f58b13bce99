package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"intumwa/acts"
	"intumwa/sms"
)

// listPage is how many rows a list reads at a time.
const listPage = 500

// instant reads RFC 3339, a date for its first moment in UTC, or a duration back
// from now; the zero time for nothing.
type instant struct{ time.Time }

// UnmarshalText is how kong reads it.
func (i *instant) UnmarshalText(text []byte) error {
	s := string(text)
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			i.Time = t
			return nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		i.Time = time.Now().Add(-d)
		return nil
	}
	return fmt.Errorf("%q is no time: 2026-03-01T10:00:00+02:00, 2026-03-01, or 24h for a day ago", s)
}

// recorded is a state as it was recorded: JSON, or nothing.
type recorded json.RawMessage

// MarshalJSON is the state itself.
func (r recorded) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	return r, nil
}

// String is the state for a table.
func (r recorded) String() string {
	if r == nil {
		return "-"
	}
	return string(r)
}

type adminLogCmd struct {
	Since   instant `help:"Only acts of then or later." placeholder:"T"`
	Company int64   `help:"Only acts that concern this company." placeholder:"ID"`
	Limit   int     `help:"How many at most." default:"1000"`
}

type adminAct struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Actor     string    `json:"actor"`
	Act       string    `json:"act"`
	Subject   string    `json:"subject"`
	CompanyID *int64    `json:"company_id"`
	Before    recorded  `json:"before"`
	After     recorded  `json:"after"`
}

// Run lists who changed what, the latest first.
func (c *adminLogCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		list := []adminAct{}
		for before := int64(0); len(list) < c.Limit; {
			page, next, err := acts.List(ctx, o.pool, acts.Filter{Company: sms.CompanyID(c.Company), Since: c.Since.Time}, before, min(listPage, c.Limit-len(list)))
			if err != nil {
				return nil, err
			}
			for _, each := range page {
				act := adminAct{ID: each.ID, At: each.At, Actor: each.Actor, Act: each.Act, Subject: each.Subject, Before: recorded(each.Before), After: recorded(each.After)}
				if each.Company.Valid() {
					id := int64(each.Company)
					act.CompanyID = &id
				}
				list = append(list, act)
			}
			if next == 0 {
				break
			}
			before = next
		}
		return list, nil
	})
}

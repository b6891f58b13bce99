package main

import (
	"context"
	"errors"
	"time"

	"intumwa/messages"
)

type adminInboundCmd struct {
	Limit  int   `default:"50" help:"How many at most."`
	Before int64 `help:"Only those with smaller ids: the next page."`
}

type adminInbound struct {
	ID         int64     `json:"id"`
	ReceivedAt time.Time `json:"received_at"`
	Carrier    string    `json:"carrier"`
	Link       string    `json:"link"`
	From       string    `json:"from"`
	To         string    `json:"to"`
	Message    *string   `json:"message"` // null: not text in a coding that is read
	DataCoding uint8     `json:"data_coding"`
	Octets     int       `json:"octets"`
}

// Run lists messages from handsets, the latest first. There is no event
// for them (rule api 6).
func (c *adminInboundCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		inbound, err := messages.New(o.pool).Inbounds(ctx, c.Before, c.Limit)
		if err != nil {
			return nil, err
		}
		list := make([]adminInbound, len(inbound))
		for i, m := range inbound {
			list[i] = adminInbound{ID: m.ID, ReceivedAt: m.At, Carrier: m.Carrier, Link: m.Link, From: m.Source, To: m.Destination,
				Message: m.Body, DataCoding: m.DataCoding, Octets: len(m.Octets)}
		}
		return list, nil
	})
}

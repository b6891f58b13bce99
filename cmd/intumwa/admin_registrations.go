package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"intumwa/accounts/senders"
	"intumwa/configs"
)

type adminRegistrationCmd struct {
	Set  adminRegistrationSetCmd  `cmd:"" help:"Record a sender name's state at a carrier."`
	List adminRegistrationListCmd `cmd:"" help:"List what is recorded about sender names at carriers."`
}

type adminRegistrationSetCmd struct {
	ID      int64  `required:"" help:"The sender."`
	Carrier string `required:"" help:"A carrier of the configuration." placeholder:"NAME"`
	State   string `required:"" help:"Its state." enum:"requested,sent,approved,refused,not_needed"`
	Reason  string `aliases:"note" help:"Why; up to 500 characters, for the company to read. A refusal needs it."`
	SentOn  string `help:"When the request went to the carrier. Default: today." placeholder:"YYYY-MM-DD"`
}

func (c *adminRegistrationSetCmd) do(ctx context.Context, o *operator) (any, error) {
	if !slices.ContainsFunc(o.config.Carriers, func(each configs.Carrier) bool { return each.Name == c.Carrier }) {
		return nil, fmt.Errorf("no carrier is called %q", c.Carrier)
	}
	change := senders.RegistrationChange{State: c.State, Reason: c.Reason}
	if c.SentOn != "" {
		var err error
		if change.SentOn, err = time.Parse(time.DateOnly, c.SentOn); err != nil {
			return nil, errors.New("--sent-on is not a day like 2026-03-01")
		}
	}
	r, err := o.by(nil).SetRegistration(ctx, c.ID, c.Carrier, change, nil)
	return done(viewRegistration(r), err)
}

// viewRegistration is what is recorded about a sender at a carrier.
func viewRegistration(r senders.Registration) object {
	sent := ""
	if r.SentOn != nil {
		sent = r.SentOn.Format(time.DateOnly)
	}
	return object{{"sender_id", r.SenderID}, {"name", r.Sender}, {"carrier", r.Carrier}, {"state", r.State},
		{"reason", r.Reason},
		{"sent_on", optional{sent}}, {"changed_at", r.ChangedAt}, {"company_id", r.CompanyID},
		{"document", optional{r.Document.Name}}}
}

type adminRegistrationListCmd struct {
	listFlags

	ID      int64 `help:"Only this sender's." placeholder:"ID"`
	Waiting bool  `help:"Only those that wait for their carrier: requested or sent."`
}

func (c *adminRegistrationListCmd) do(ctx context.Context, o *operator) (any, error) {
	return collectByID(ctx, c.listFlags, func(ctx context.Context, after int64, limit int) ([]senders.Registration,
		error) {
		return o.senders().Registrations(ctx, c.ID, c.Waiting, after, limit)
	}, func(r senders.Registration) any { return slices.Concat(object{{"id", r.ID}}, viewRegistration(r)) })
}

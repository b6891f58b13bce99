package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/audit"
	"intumwa/sms"
)

type adminSenderCmd struct {
	Create adminSenderCreateCmd `cmd:"" help:"Register a sender name for a company."`
	Set    adminSenderSetCmd    `cmd:"" help:"Approve a sender name, or take its approval back."`
	Refuse adminSenderRefuseCmd `cmd:"" help:"Refuse a sender name, for a reason that the company reads."`
	List   adminSenderListCmd   `cmd:"" help:"List sender names."`
}

type adminSenderCreateCmd struct {
	Company  int64  `required:"" help:"The company." placeholder:"ID"`
	Name     string `required:"" help:"1 to 11 letters and digits; case counts."`
	Country  string `help:"Telco country, ISO 3166-1 alpha-2." default:"BI"`
	Approved bool   `help:"May be used."`
}

func senderOf(s accounts.Sender) object {
	return object{{"sender_id", s.ID}, {"name", s.Name}, {"approved", s.Approved}}
}

func (c *adminSenderCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	result, err := o.change(ctx, func(tx pgx.Tx) (object, audit.Entry, error) {
		s, err := o.accounts().In(tx).CreateSender(ctx, c.Company, c.Name, c.Country, c.Approved)
		return senderOf(s), audit.Entry{Act: "sender.create", Subject: fmt.Sprintf("sender %d", s.ID), Company: sms.CompanyID(c.Company),
			After: map[string]any{"name": s.Name, "country": s.Country, "approved": s.Approved}}, err
	})
	if err != nil || !c.Approved {
		return result, err
	}
	return result, o.warnOfNamesakes(ctx, c.Name, c.Company)
}

type adminSenderSetCmd struct {
	ID       int64 `required:"" help:"The sender."`
	Approved *bool `required:"" help:"May be used." placeholder:"true|false"`
}

func (c *adminSenderSetCmd) do(ctx context.Context, o *operator) (any, error) {
	var s accounts.SenderRequest
	result, err := o.decideSender(ctx, "sender.set", c.ID, func(users *accounts.Accounts) (after accounts.SenderRequest, err error) {
		s, err = users.SetSender(ctx, c.ID, *c.Approved)
		return s, err
	})
	if err != nil || !s.Approved {
		return result, err
	}
	return result, o.warnOfNamesakes(ctx, s.Name, s.CompanyID)
}

// decideSender approves or refuses a sender through decide.
func (o *operator) decideSender(ctx context.Context, act string, id int64, decide func(*accounts.Accounts) (accounts.SenderRequest, error)) (any, error) {
	return o.change(ctx, func(tx pgx.Tx) (object, audit.Entry, error) {
		users := o.accounts().In(tx)
		before, err := users.SenderByID(ctx, id)
		if err != nil {
			return nil, audit.Entry{}, err
		}
		s, err := decide(users)
		return object{{"sender_id", id}, {"approved", s.Approved}},
			audit.Entry{Act: act, Subject: fmt.Sprintf("sender %d", id), Company: sms.CompanyID(before.CompanyID),
				Before: map[string]any{"name": before.Name, "approved": before.Approved},
				After:  object{{"name", s.Name}, {"approved", s.Approved}, {"reason", optional{s.Refusal}}}}, err
	})
}

// warnOfNamesakes warns if an approved name resembles a carrier's, a bank's or a wallet's, or is approved for other
// companies too. Recipients cannot tell such senders apart. It may be legitimate: the bank itself, or branches of one
// company.
func (o *operator) warnOfNamesakes(ctx context.Context, name string, company int64) error {
	if known, ok := accounts.LooksLike(name); ok {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: warning: %s looks like %s (%s)\n", sms.Printable(name), known.Name, known.Kind)
	}
	others, err := o.accounts().Namesakes(ctx, name, company)
	for _, other := range others {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: warning: company %d may send as %s too\n", other.CompanyID, sms.Printable(other.Name))
	}
	return err
}

// likeness returns the protected name that a sender name resembles, or "".
func likeness(name string) string {
	known, _ := accounts.LooksLike(name)
	return known.Name
}

type adminSenderRefuseCmd struct {
	ID     int64  `required:"" help:"The sender."`
	Reason string `required:"" aliases:"note" help:"Why; up to 500 characters, for the company to read."`
}

func (c *adminSenderRefuseCmd) do(ctx context.Context, o *operator) (any, error) {
	return o.decideSender(ctx, "sender.refuse", c.ID, func(users *accounts.Accounts) (accounts.SenderRequest, error) {
		return users.RefuseSender(ctx, c.ID, c.Reason)
	})
}

type adminSenderListCmd struct {
	listFlags

	Company int64 `help:"Only those of this company." placeholder:"ID"`
}

func (c *adminSenderListCmd) do(ctx context.Context, o *operator) (any, error) {
	view := func(s accounts.SenderRequest) object {
		return object{{"sender_id", s.ID}, {"company_id", s.CompanyID}, {"name", s.Name}, {"country", s.Country}, {"approved", s.Approved},
			{"state", s.State()},   // waiting, approved or refused
			{"purpose", s.Purpose}, // as its company states it; empty when a command registered it
			{"refusal", s.Refusal}, // as shown to the company
			{"looks_like", optional{likeness(s.Name)}}}
	}
	if c.Company == 0 {
		return collectByID(ctx, c.listFlags, o.accounts().Senders, view)
	}
	if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	senders, err := o.accounts().SenderRequestsOf(ctx, sms.CompanyID(c.Company))
	if err != nil {
		return nil, err
	}
	return views(senders, view), nil
}

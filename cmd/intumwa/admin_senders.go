package main

import (
	"context"
	"fmt"

	"intumwa/accounts/senders"
	"intumwa/operations"
	"intumwa/sms"
)

type adminSenderCmd struct {
	Create adminSenderCreateCmd `cmd:"" help:"Register a sender name for a company."`
	Set    adminSenderSetCmd    `cmd:"" help:"Approve a sender name, or take its approval back."`
	Refuse adminSenderRefuseCmd `cmd:"" help:"Refuse a sender name, for a reason that the company reads."`
	List   adminSenderListCmd   `cmd:"" help:"List sender names."`

	Carrier adminRegistrationCmd `cmd:"" help:"Record which carriers know a sender name."`
}

type adminSenderCreateCmd struct {
	Company  int64  `required:"" help:"The company." placeholder:"ID"`
	Name     string `required:"" help:"1 to 11 letters and digits; case counts."`
	Country  string `help:"Telco country, ISO 3166-1 alpha-2." default:"BI"`
	Approved bool   `help:"May be used."`
}

func (c *adminSenderCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	s, err := o.by(nil).CreateSender(ctx, c.Company, c.Name, c.Country, c.Approved)
	if err == nil && c.Approved {
		err = o.warnOfNamesakes(ctx, c.Name, c.Company)
	}
	return done(s, err)
}

type adminSenderSetCmd struct {
	ID       int64  `required:"" help:"The sender."`
	Approved *bool  `required:"" help:"May be used." placeholder:"true|false"`
	Reason   string `aliases:"note" help:"Why an approval is taken back, for the company; without it no mail goes out."`
}

func (c *adminSenderSetCmd) do(ctx context.Context, o *operator) (any, error) {
	if !*c.Approved {
		o.warnOfNoReason(c.Reason)
	}
	return o.decideSender(ctx, c.ID, operations.Decision{Approved: *c.Approved, Reason: c.Reason})
}

type senderDecided struct {
	ID       int64 `json:"sender_id"`
	Approved bool  `json:"approved"`
}

func (o *operator) decideSender(ctx context.Context, id int64, to operations.Decision) (any, error) {
	s, err := o.by(nil).DecideSender(ctx, id, to)
	if err == nil && s.Approved {
		err = o.warnOfNamesakes(ctx, s.Name, s.CompanyID)
	}
	return done(senderDecided{s.ID, s.Approved}, err)
}

// warnOfNamesakes warns if an approved name resembles a carrier's, a bank's or a wallet's, or is approved for other
// companies too. Recipients cannot tell such senders apart. It may be legitimate: the bank itself, or branches of one
// company.
func (o *operator) warnOfNamesakes(ctx context.Context, name string, company int64) error {
	if known, ok := senders.LooksLike(name); ok {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: warning: %s looks like %s (%s)\n", sms.Printable(name), known.Name, known.Kind)
	}
	others, err := o.senders().Namesakes(ctx, name, company)
	for _, other := range others {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: warning: company %d may send as %s too\n", other.CompanyID,
			sms.Printable(other.Name))
	}
	return err
}

// likeness returns the protected name that a sender name resembles, or "".
func likeness(name string) string {
	known, _ := senders.LooksLike(name)
	return known.Name
}

type adminSenderRefuseCmd struct {
	ID     int64  `required:"" help:"The sender."`
	Reason string `required:"" aliases:"note" help:"Why; up to 500 characters, for the company to read."`
}

func (c *adminSenderRefuseCmd) do(ctx context.Context, o *operator) (any, error) {
	return o.decideSender(ctx, c.ID, operations.Decision{Reason: c.Reason})
}

type adminSenderListCmd struct {
	listFlags

	Company int64 `help:"Only those of this company." placeholder:"ID"`
}

func (c *adminSenderListCmd) do(ctx context.Context, o *operator) (any, error) {
	view := func(s senders.SenderRequest) any {
		return object{{"sender_id", s.ID}, {"company_id", s.CompanyID}, {"name", s.Name}, {"country", s.Country},
			{"approved", s.Approved},
			{"state", s.State()},   // waiting, approved or refused
			{"purpose", s.Purpose}, // as its company states it; empty when a command registered it
			{"refusal", s.Refusal}, // as shown to the company
			{"looks_like", optional{likeness(s.Name)}}}
	}
	if c.Company == 0 {
		return collectByID(ctx, c.listFlags, o.senders().Senders, view)
	}
	if _, err := o.companies().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	senders, err := o.senders().SenderRequestsOf(ctx, sms.CompanyID(c.Company))
	if err != nil {
		return nil, err
	}
	return views(senders, view), nil
}

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

type adminSender struct {
	SenderID int64  `json:"sender_id"`
	Name     string `json:"name"`
	Approved bool   `json:"approved"`
}

// do registers a sender.
func (c *adminSenderCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	var s accounts.Sender
	err := o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		var err error
		s, err = o.accounts().In(tx).CreateSender(ctx, c.Company, c.Name, c.Country, c.Approved)
		return audit.Entry{Act: "sender.create", Subject: fmt.Sprintf("sender %d", s.ID), Company: sms.CompanyID(c.Company),
			After: map[string]any{"name": s.Name, "country": s.Country, "approved": s.Approved}}, err
	})
	if err != nil {
		return nil, err
	}
	return adminSender{SenderID: s.ID, Name: s.Name, Approved: s.Approved}, o.warnOfNamesakes(ctx, s.Name, c.Company, s.Approved)
}

type adminSenderSetCmd struct {
	ID       int64 `required:"" help:"The sender."`
	Approved *bool `required:"" help:"May be used." placeholder:"true|false"`
}

type adminSenderApproval struct {
	SenderID int64 `json:"sender_id"`
	Approved bool  `json:"approved"`
}

// do approves a sender, or not.
func (c *adminSenderSetCmd) do(ctx context.Context, o *operator) (any, error) {
	var s accounts.SenderRequest
	var company int64
	err := o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		users := o.accounts().In(tx)
		before, err := users.SenderByID(ctx, c.ID)
		company = before.CompanyID
		if err != nil {
			return audit.Entry{}, err
		}
		s, err = users.SetSender(ctx, c.ID, *c.Approved)
		return audit.Entry{Act: "sender.set", Subject: fmt.Sprintf("sender %d", c.ID), Company: sms.CompanyID(before.CompanyID),
			Before: map[string]any{"name": before.Name, "approved": before.Approved},
			After:  map[string]any{"name": s.Name, "approved": s.Approved}}, err
	})
	if err != nil {
		return nil, err
	}
	return adminSenderApproval{SenderID: s.ID, Approved: s.Approved}, o.warnOfNamesakes(ctx, s.Name, company, s.Approved)
}

// warnOfNamesakes says when a name is approved for other companies as well: whoever gets a message cannot tell them apart.
// It may be right, for branches of one house.
func (o *operator) warnOfNamesakes(ctx context.Context, name string, company int64, approved bool) error {
	if !approved {
		return nil
	}
	others, err := o.accounts().Namesakes(ctx, name, company)
	if err != nil {
		return err
	}
	for _, other := range others {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: warning: company %d may send as %s too\n", other.CompanyID, sms.Printable(other.Name))
	}
	return nil
}

type adminSenderRefuseCmd struct {
	ID     int64  `required:"" help:"The sender."`
	Reason string `required:"" help:"Why; up to 500 characters, for the company to read."`
}

// do refuses a sender.
func (c *adminSenderRefuseCmd) do(ctx context.Context, o *operator) (any, error) {
	err := o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		users := o.accounts().In(tx)
		before, err := users.SenderByID(ctx, c.ID)
		if err != nil {
			return audit.Entry{}, err
		}
		after, err := users.RefuseSender(ctx, c.ID, c.Reason)
		return audit.Entry{Act: "sender.refuse", Subject: fmt.Sprintf("sender %d", c.ID), Company: sms.CompanyID(before.CompanyID),
			Before: map[string]any{"name": before.Name, "approved": before.Approved},
			After:  map[string]any{"name": after.Name, "approved": after.Approved, "reason": after.Refusal}}, err
	})
	return answer(adminSenderApproval{SenderID: c.ID}, err)
}

type adminSenderListCmd struct {
	stretch

	Company int64 `help:"Only those of this company." placeholder:"ID"`
}

type adminListedSender struct {
	SenderID  int64  `json:"sender_id"`
	CompanyID int64  `json:"company_id"`
	Name      string `json:"name"`
	Country   string `json:"country"`
	Approved  bool   `json:"approved"`
	State     string `json:"state"`   // waiting, approved or refused
	Purpose   string `json:"purpose"` // what its company wants it for; empty when a command registered it
	Refusal   string `json:"refusal"` // why it is refused, as the company reads it
}

// do lists senders.
func (c *adminSenderListCmd) do(ctx context.Context, o *operator) (any, error) {
	listed := func(s accounts.SenderRequest) adminListedSender {
		return adminListedSender{SenderID: s.ID, CompanyID: s.CompanyID, Name: s.Name, Country: s.Country, Approved: s.Approved,
			State: s.State(), Purpose: s.Purpose, Refusal: s.Refusal}
	}
	if c.Company == 0 {
		return collect(c.stretch, func(after int64, limit int) ([]accounts.SenderRequest, error) {
			return o.accounts().Senders(ctx, after, limit)
		},
			func(s accounts.SenderRequest) int64 { return s.ID }, listed)
	}
	if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	senders, err := o.accounts().SenderRequestsOf(ctx, sms.CompanyID(c.Company))
	if err != nil {
		return nil, err
	}
	list := []adminListedSender{}
	for _, s := range senders {
		list = append(list, listed(s))
	}
	return list, nil
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/acts"
	"intumwa/billing"
	"intumwa/sms"
)

type adminCompanyCmd struct {
	Create adminCompanyCreateCmd `cmd:"" help:"Create a company."`
	Set    adminCompanySetCmd    `cmd:"" help:"Change what a company may do."`
	Cancel adminCompanyCancelCmd `cmd:"" help:"Stop what no carrier has yet of all that a company has queued, and give its credits back."`
	List   adminCompanyListCmd   `cmd:"" help:"List companies with their balances."`
	Show   adminCompanyShowCmd   `cmd:"" help:"Show a company with its balance, senders and webhook endpoint."`
}

type adminCompanyCreateCmd struct {
	Owner    string `required:"" help:"Email of the user who owns it." placeholder:"EMAIL"`
	Name     string `required:"" help:"The company's name."`
	Approved bool   `help:"May send."`
	Verified bool   `help:"May send bulk and template messages."`
	Credits  int64  `help:"Credits to begin with."`
}

type adminBalance struct {
	CompanyID int64 `json:"company_id"`
	Credits   int64 `json:"credits"`
}

// Run creates the company and its balance in one transaction.
func (c *adminCompanyCreateCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Credits < 0 {
		return errors.New("a company cannot begin with less than 0 credits")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		var result adminBalance
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			company, err := o.accounts().In(tx).CreateCompany(ctx, tx, accounts.NewCompany{
				OwnerEmail: c.Owner, Name: c.Name, Approved: c.Approved, Verified: c.Verified,
			})
			if err != nil {
				return acts.Entry{}, err
			}
			result.CompanyID = company.ID
			if err := billing.Open(ctx, tx, company.ID); err != nil {
				return acts.Entry{}, err
			}
			if c.Credits > 0 {
				result.Credits, err = billing.Grant(ctx, tx, company.ID, c.Credits, "credits to begin with")
			}
			return acts.Entry{Act: "company.create", Subject: fmt.Sprintf("company %d", company.ID), Company: sms.CompanyID(company.ID),
				After: map[string]any{"name": company.Name, "owner_id": company.OwnerID, "approved": company.Approved,
					"verified": company.Verified, "credits": result.Credits}}, err
		})
		if err != nil {
			return nil, err
		}
		return result, nil
	})
}

type adminCompanySetCmd struct {
	ID            int64 `required:"" help:"The company."`
	Approved      *bool `help:"May send." placeholder:"true|false"`
	Verified      *bool `help:"May send bulk and template messages." placeholder:"true|false"`
	SmartEncoding *bool `help:"Characters that would make a message Unicode are replaced where a plain one will do." placeholder:"true|false"`
}

type adminCompany struct {
	CompanyID     int64 `json:"company_id"`
	Approved      bool  `json:"approved"`
	Verified      bool  `json:"verified"`
	SmartEncoding bool  `json:"smart_encoding"`
}

// Run changes the flags that are given.
func (c *adminCompanySetCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Approved == nil && c.Verified == nil && c.SmartEncoding == nil {
		return errors.New("nothing to change: give --approved, --verified or --smart-encoding")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		var result adminCompany
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			users := o.accounts().In(tx)
			before, err := users.CompanyByID(ctx, c.ID)
			if err != nil {
				return acts.Entry{}, err
			}
			after, err := users.SetCompany(ctx, c.ID, accounts.CompanyChange{
				Approved: c.Approved, Verified: c.Verified, SmartEncoding: c.SmartEncoding,
			})
			result = flagsOf(after)
			return acts.Entry{Act: "company.set", Subject: fmt.Sprintf("company %d", c.ID), Company: sms.CompanyID(c.ID),
				Before: flagsOf(before), After: result}, err
		})
		if err != nil {
			return nil, err
		}
		return result, nil
	})
}

func flagsOf(c accounts.Company) adminCompany {
	return adminCompany{CompanyID: c.ID, Approved: c.Approved, Verified: c.Verified, SmartEncoding: c.SmartEncoding}
}

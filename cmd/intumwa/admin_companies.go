package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/internal/audit"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
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

// do creates the company and its balance in one transaction.
func (c *adminCompanyCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Credits < 0 {
		return nil, errors.New("a company cannot begin with less than 0 credits")
	}
	var result adminBalance
	err := o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		company, err := o.accounts().In(tx).CreateCompany(ctx, tx, accounts.NewCompany{
			OwnerEmail: c.Owner, Name: c.Name, Approved: c.Approved, Verified: c.Verified,
		})
		if err != nil {
			return audit.Entry{}, err
		}
		result.CompanyID = company.ID
		if err := billing.Open(ctx, tx, company.ID); err != nil {
			return audit.Entry{}, err
		}
		if c.Credits > 0 {
			result.Credits, err = billing.Grant(ctx, tx, company.ID, c.Credits, "credits to begin with")
		}
		return audit.Entry{Act: "company.create", Subject: fmt.Sprintf("company %d", company.ID), Company: sms.CompanyID(company.ID),
			After: map[string]any{"name": company.Name, "owner_id": company.OwnerID, "approved": company.Approved,
				"verified": company.Verified, "credits": result.Credits}}, err
	})
	return answer(result, err)
}

type adminCompanySetCmd struct {
	ID            int64 `required:"" help:"The company."`
	Approved      *bool `help:"May send." placeholder:"true|false"`
	Verified      *bool `help:"May send bulk and template messages." placeholder:"true|false"`
	SmartEncoding *bool `help:"Characters that would make a message Unicode are replaced where a plain one will do." placeholder:"true|false"`

	LowBalance *string `help:"Below how many credits the company is warned, by mail and by the webhook balance.low: up to five numbers, separated by commas; empty for none." placeholder:"N,..."`
	QuietHours *string `help:"When its batches are not sent, in the hours of Burundi: 21:00-06:00, none, or default for what the installation has." placeholder:"HH:MM-HH:MM"`

	companyBounds
}

type adminCompany struct {
	CompanyID     int64 `json:"company_id"`
	Approved      bool  `json:"approved"`
	Verified      bool  `json:"verified"`
	SmartEncoding bool  `json:"smart_encoding"`

	// Its own, as in adminBounds.
	DailyCap      *ownLimit `json:"daily_cap,omitempty"`
	RepeatSeconds *ownLimit `json:"repeat_seconds,omitempty"`
	RepeatsADay   *ownLimit `json:"repeats_a_day,omitempty"`
	NumberADay    *ownLimit `json:"number_a_day,omitempty"`
	Bodies        string    `json:"bodies,omitempty"`

	LowBalance []int64 `json:"low_balance,omitempty"` // thresholds, the highest first
	QuietHours string  `json:"quiet_hours,omitempty"` // its own; "": those of the installation
}

// do changes the flags that are given.
func (c *adminCompanySetCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Approved == nil && c.Verified == nil && c.SmartEncoding == nil && c.LowBalance == nil && c.QuietHours == nil && !c.any() {
		return nil, errors.New("nothing to change: give --approved, --verified, --smart-encoding, --quiet-hours, --low-balance, --bodies or a limit")
	}
	thresholds, err := c.thresholds()
	if err != nil {
		return nil, err
	}
	if err := c.check(o.program); err != nil {
		return nil, err
	}
	if c.QuietHours != nil {
		switch *c.QuietHours {
		case "default":
			*c.QuietHours = ""
		case "":
			return nil, errors.New("--quiet-hours is 21:00-06:00, none or default")
		}
	}
	var result adminCompany
	err = o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		users := o.accounts().In(tx)
		before, err := users.CompanyByID(ctx, c.ID)
		if err != nil {
			return audit.Entry{}, err
		}
		after, err := users.SetCompany(ctx, c.ID, accounts.CompanyChange{
			Approved: c.Approved, Verified: c.Verified, SmartEncoding: c.SmartEncoding, QuietHours: c.QuietHours, Limits: c.limits(),
		})
		if err != nil {
			return audit.Entry{}, err
		}
		result = flagsOf(after)
		entry := audit.Entry{Act: "company.set", Subject: fmt.Sprintf("company %d", c.ID), Company: sms.CompanyID(c.ID)}
		was := flagsOf(before)
		if was.LowBalance, err = billing.Thresholds(ctx, tx, sms.CompanyID(c.ID)); err != nil {
			return audit.Entry{}, err
		}
		result.LowBalance = was.LowBalance
		if c.LowBalance != nil {
			if err := billing.SetThresholds(ctx, tx, sms.CompanyID(c.ID), thresholds...); err != nil {
				return audit.Entry{}, err
			}
			if result.LowBalance, err = billing.Thresholds(ctx, tx, sms.CompanyID(c.ID)); err != nil {
				return audit.Entry{}, err
			}
		}
		was.Bodies, result.Bodies, err = c.setBodies(ctx, tx, c.ID)
		entry.Before, entry.After = was, result
		return entry, err
	})
	return answer(result, err)
}

// thresholds are the numbers of --low-balance.
func (c *adminCompanySetCmd) thresholds() (all []int64, err error) {
	if c.LowBalance == nil {
		return nil, nil
	}
	for _, text := range strings.Split(*c.LowBalance, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > maxThreshold {
			return nil, fmt.Errorf("--low-balance: %q is no whole number from 1 to %d", text, maxThreshold)
		}
		all = append(all, n)
	}
	return all, nil
}

const maxThreshold = 1_000_000_000

func flagsOf(c accounts.Company) adminCompany {
	own := boundsOf(c.Limits)
	return adminCompany{CompanyID: c.ID, Approved: c.Approved, Verified: c.Verified, SmartEncoding: c.SmartEncoding, QuietHours: c.QuietHours,
		DailyCap: own.DailyCap, RepeatSeconds: own.RepeatSeconds, RepeatsADay: own.RepeatsADay, NumberADay: own.NumberADay}
}

type adminCompanyListCmd struct{ stretch }

type adminListedCompany struct {
	CompanyID int64  `json:"company_id"`
	OwnerID   int64  `json:"owner_id"`
	Name      string `json:"name"`
	Approved  bool   `json:"approved"`
	Verified  bool   `json:"verified"`
	Credits   *int64 `json:"credits"` // null: no balance was ever opened
}

// do lists companies with their balances.
func (c *adminCompanyListCmd) do(ctx context.Context, o *operator) (any, error) {
	ledger := billing.New(o.pool)
	balances := map[int64]int64{}
	return collect(c.stretch, func(after int64, limit int) ([]accounts.Company, error) {
		page, err := o.accounts().Companies(ctx, after, limit)
		if err != nil {
			return nil, err
		}
		ids := make([]int64, len(page))
		for i := range page {
			ids[i] = page[i].ID
		}
		balances, err = ledger.Balances(ctx, ids)
		return page, err
	}, func(c accounts.Company) int64 { return c.ID }, func(c accounts.Company) adminListedCompany {
		listed := adminListedCompany{CompanyID: c.ID, OwnerID: c.OwnerID, Name: c.Name, Approved: c.Approved, Verified: c.Verified}
		if credits, ok := balances[c.ID]; ok {
			listed.Credits = &credits
		}
		return listed
	})
}

type adminCompanyShowCmd struct {
	ID int64 `required:"" help:"The company."`
}

type adminShownCompany struct {
	CompanyID     int64          `json:"company_id"`
	Name          string         `json:"name"`
	OwnerID       int64          `json:"owner_id"`
	Owner         string         `json:"owner"` // email
	Approved      bool           `json:"approved"`
	Verified      bool           `json:"verified"`
	SmartEncoding bool           `json:"smart_encoding"`
	QuietHours    string         `json:"quiet_hours,omitempty"` // its own; "": those of the installation
	Credits       int64          `json:"credits"`
	Senders       []adminSender  `json:"senders"`
	Webhook       *adminEndpoint `json:"webhook"` // null: none was set
	SpentToday    int64          `json:"spent_today"`

	adminBounds
}

// human prints the JSON indented, as of a message.
func (c adminShownCompany) human(w io.Writer) error { return printIndented(w, c) }

type adminEndpoint struct {
	CompanyID     int64      `json:"company_id"`
	URL           string     `json:"url"`
	Active        bool       `json:"active"`
	Events        []string   `json:"events,omitempty"`
	PreviousUntil *time.Time `json:"previous_until"`
	FailingSince  *time.Time `json:"failing_since"`
}

func endpointOf(e webhooks.Endpoint) adminEndpoint {
	return adminEndpoint{CompanyID: e.CompanyID, URL: e.URL, Active: e.Active, Events: e.Events, PreviousUntil: e.PreviousUntil, FailingSince: e.FailingSince}
}

// do shows a company with its balance, its senders and its endpoint, never a secret.
func (c *adminCompanyShowCmd) do(ctx context.Context, o *operator) (any, error) {
	users := o.accounts()
	company, err := users.CompanyByID(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	shown := adminShownCompany{CompanyID: company.ID, Name: company.Name, OwnerID: company.OwnerID, Approved: company.Approved,
		Verified: company.Verified, SmartEncoding: company.SmartEncoding, QuietHours: company.QuietHours, Senders: []adminSender{}, adminBounds: boundsOf(company.Limits)}
	owner, err := users.UserByID(ctx, company.OwnerID)
	if err != nil {
		return nil, err
	}
	shown.Owner = owner.Email
	if shown.Credits, err = billing.New(o.pool).Balance(ctx, company.ID); err != nil {
		return nil, err
	}
	if shown.SpentToday, err = billing.New(o.pool).SpentToday(ctx, sms.CompanyID(company.ID)); err != nil {
		return nil, err
	}
	keep, err := messages.New(o.pool).BodyRule(ctx, sms.CompanyID(company.ID))
	if err != nil {
		return nil, err
	}
	shown.Bodies = bodiesText(keep)
	senders, err := users.SendersOf(ctx, company.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range senders {
		shown.Senders = append(shown.Senders, adminSender{SenderID: s.ID, Name: s.Name, Approved: s.Approved})
	}
	endpoints, err := o.openWebhooks().Endpoints(ctx, company.ID-1, 1)
	if err != nil {
		return nil, err
	}
	if len(endpoints) == 1 && endpoints[0].CompanyID == company.ID {
		endpoint := endpointOf(endpoints[0])
		shown.Webhook = &endpoint
	}
	return shown, nil
}

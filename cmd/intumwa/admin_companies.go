package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/acts"
	"intumwa/billing"
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
	DailyCap      *int64 `json:"daily_cap,omitempty"`
	RepeatSeconds *int64 `json:"repeat_seconds,omitempty"`
	RepeatsADay   *int64 `json:"repeats_a_day,omitempty"`
	NumberADay    *int64 `json:"number_a_day,omitempty"`
	Bodies        string `json:"bodies,omitempty"`

	LowBalance []int64 `json:"low_balance,omitempty"` // thresholds, the highest first
	QuietHours string  `json:"quiet_hours,omitempty"` // its own; "": those of the installation
}

// Run changes the flags that are given.
func (c *adminCompanySetCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Approved == nil && c.Verified == nil && c.SmartEncoding == nil && c.LowBalance == nil && c.QuietHours == nil && !c.any() {
		return errors.New("nothing to change: give --approved, --verified, --smart-encoding, --quiet-hours, --low-balance, --bodies or a limit")
	}
	thresholds, err := c.thresholds()
	if err != nil {
		return err
	}
	if err := c.check(p); err != nil {
		return err
	}
	if c.QuietHours != nil {
		switch *c.QuietHours {
		case "default":
			*c.QuietHours = ""
		case "":
			return errors.New("--quiet-hours is 21:00-06:00, none or default")
		}
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
				Approved: c.Approved, Verified: c.Verified, SmartEncoding: c.SmartEncoding, QuietHours: c.QuietHours, Limits: c.limits(),
			})
			if err != nil {
				return acts.Entry{}, err
			}
			result = flagsOf(after)
			entry := acts.Entry{Act: "company.set", Subject: fmt.Sprintf("company %d", c.ID), Company: sms.CompanyID(c.ID)}
			was := flagsOf(before)
			if was.LowBalance, err = billing.Thresholds(ctx, tx, sms.CompanyID(c.ID)); err != nil {
				return acts.Entry{}, err
			}
			result.LowBalance = was.LowBalance
			if c.LowBalance != nil {
				if err := billing.SetThresholds(ctx, tx, sms.CompanyID(c.ID), thresholds...); err != nil {
					return acts.Entry{}, err
				}
				if result.LowBalance, err = billing.Thresholds(ctx, tx, sms.CompanyID(c.ID)); err != nil {
					return acts.Entry{}, err
				}
			}
			was.Bodies, result.Bodies, err = c.setBodies(ctx, tx, c.ID)
			entry.Before, entry.After = was, result
			return entry, err
		})
		if err != nil {
			return nil, err
		}
		return result, nil
	})
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
	return adminCompany{CompanyID: c.ID, Approved: c.Approved, Verified: c.Verified, SmartEncoding: c.SmartEncoding, QuietHours: c.QuietHours,
		DailyCap: c.Limits.CreditsADay, RepeatSeconds: c.Limits.RepeatSeconds, RepeatsADay: c.Limits.RepeatsADay, NumberADay: c.Limits.NumberADay}
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

// Run lists companies with their balances.
func (c *adminCompanyListCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
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
	CompanyID      int64      `json:"company_id"`
	URL            string     `json:"url"`
	Active         bool       `json:"active"`
	Events         []string   `json:"events,omitempty"`
	PreviousUntil  *time.Time `json:"previous_until"`
	FailingSince   *time.Time `json:"failing_since"`
	DisabledAt     *time.Time `json:"disabled_at"`
	DisabledReason *string    `json:"disabled_reason"`
}

func endpointOf(e webhooks.Endpoint) adminEndpoint {
	shown := adminEndpoint{CompanyID: e.CompanyID, URL: e.URL, Active: e.Active, Events: e.Events, PreviousUntil: e.PreviousUntil, FailingSince: e.FailingSince, DisabledAt: e.DisabledAt}
	if e.DisabledReason != "" {
		shown.DisabledReason = &e.DisabledReason
	}
	return shown
}

// Run shows a company with its balance, its senders and its endpoint, never a secret.
func (c *adminCompanyShowCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
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
	})
}

type adminCreditsCmd struct {
	Add adminCreditsAddCmd `cmd:"" help:"Add credits to a company, or take them."`
}

type adminCreditsAddCmd struct {
	Company int64  `required:"" help:"The company." placeholder:"ID"`
	Amount  signed `required:"" help:"How many; negative to take them. The balance never falls below zero."`
	Note    string `required:"" help:"Why; it stays in the ledger."`
}

// Run writes one row of the ledger.
func (c *adminCreditsAddCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Amount == 0 {
		return errors.New("--amount must not be 0")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
			return nil, err
		}
		var credits int64
		err := o.changeBusy(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			var err error
			credits, err = billing.Grant(ctx, tx, c.Company, int64(c.Amount), c.Note)
			return acts.Entry{Act: "credits.add", Subject: fmt.Sprintf("company %d", c.Company), Company: sms.CompanyID(c.Company),
				Before: map[string]any{"credits": credits - int64(c.Amount)},
				After:  map[string]any{"credits": credits, "amount": int64(c.Amount), "note": c.Note}}, err
		})
		if err != nil {
			return nil, err
		}
		return adminBalance{CompanyID: c.Company, Credits: credits}, nil
	})
}

// signed is a number that may stand as an argument of its own when it is negative: --amount -5, which would otherwise
// be taken for a flag.
type signed int64

// Decode is kong's way to read a flag's value.
func (s *signed) Decode(ctx *kong.DecodeContext) error {
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("expected a whole number, not %q", text)
	}
	*s = signed(n)
	return nil
}

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

// Run registers a sender.
func (c *adminSenderCreateCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		var s accounts.Sender
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			var err error
			s, err = o.accounts().In(tx).CreateSender(ctx, c.Company, c.Name, c.Country, c.Approved)
			return acts.Entry{Act: "sender.create", Subject: fmt.Sprintf("sender %d", s.ID), Company: sms.CompanyID(c.Company),
				After: map[string]any{"name": s.Name, "country": s.Country, "approved": s.Approved}}, err
		})
		if err != nil {
			return nil, err
		}
		return adminSender{SenderID: s.ID, Name: s.Name, Approved: s.Approved}, o.warnOfNamesakes(ctx, s.Name, c.Company, s.Approved)
	})
}

type adminSenderSetCmd struct {
	ID       int64 `required:"" help:"The sender."`
	Approved *bool `required:"" help:"May be used." placeholder:"true|false"`
}

type adminSenderApproval struct {
	SenderID int64 `json:"sender_id"`
	Approved bool  `json:"approved"`
}

// Run approves a sender, or not.
func (c *adminSenderSetCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		var s accounts.Sender
		var company int64
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			users := o.accounts().In(tx)
			before, err := users.SenderByID(ctx, c.ID)
			company = before.CompanyID
			if err != nil {
				return acts.Entry{}, err
			}
			s, err = users.SetSender(ctx, c.ID, *c.Approved)
			return acts.Entry{Act: "sender.set", Subject: fmt.Sprintf("sender %d", c.ID), Company: sms.CompanyID(before.CompanyID),
				Before: map[string]any{"name": before.Name, "approved": before.Approved},
				After:  map[string]any{"name": s.Name, "approved": s.Approved}}, err
		})
		if err != nil {
			return nil, err
		}
		return adminSenderApproval{SenderID: s.ID, Approved: s.Approved}, o.warnOfNamesakes(ctx, s.Name, company, s.Approved)
	})
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

// Run refuses a sender.
func (c *adminSenderRefuseCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			users := o.accounts().In(tx)
			before, err := users.SenderRequestByID(ctx, c.ID)
			if err != nil {
				return acts.Entry{}, err
			}
			after, err := users.RefuseSender(ctx, c.ID, c.Reason)
			return acts.Entry{Act: "sender.refuse", Subject: fmt.Sprintf("sender %d", c.ID), Company: sms.CompanyID(before.CompanyID),
				Before: map[string]any{"name": before.Name, "approved": before.Approved},
				After:  map[string]any{"name": after.Name, "approved": after.Approved, "reason": after.Refusal}}, err
		})
		if err != nil {
			return nil, err
		}
		return adminSenderApproval{SenderID: c.ID}, nil
	})
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

// Run lists senders.
func (c *adminSenderListCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	listed := func(s accounts.SenderRequest) adminListedSender {
		return adminListedSender{SenderID: s.ID, CompanyID: s.CompanyID, Name: s.Name, Country: s.Country, Approved: s.Approved,
			State: s.State(), Purpose: s.Purpose, Refusal: s.Refusal}
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
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
	})
}

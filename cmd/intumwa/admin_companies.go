package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/billing"
	"intumwa/messages/retention"
	"intumwa/operations"
	"intumwa/sms"
	"intumwa/webhooks"
)

type adminCompanyCmd struct {
	Create adminCompanyCreateCmd `cmd:"" help:"Create a company."`
	Set    adminCompanySetCmd    `cmd:"" help:"Change a company's approval and settings."`
	Cancel adminCompanyCancelCmd `cmd:"" help:"Cancel and refund a company's queued messages that no carrier has."`
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

// do creates the company and its balance in one transaction.
func (c *adminCompanyCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Credits < 0 {
		return nil, errors.New("a company cannot begin with less than 0 credits")
	}
	company, err := o.by(nil).CreateCompany(ctx,
		companies.NewCompany{OwnerEmail: c.Owner, Name: c.Name, Approved: c.Approved, Verified: c.Verified}, c.Credits)
	return done(balanceOf{company.ID, c.Credits}, err)
}

// balanceOf is a company's balance after an act.
type balanceOf struct {
	Company int64 `json:"company_id"`
	Credits int64 `json:"credits"`
}

type adminCompanySetCmd struct {
	ID            int64 `required:"" aliases:"company" help:"The company."`
	Approved      *bool `help:"May send." placeholder:"true|false"`
	Verified      *bool `help:"May send bulk and template messages." placeholder:"true|false"`
	SmartEncoding *bool `help:"Replace characters that need Unicode by plain ones." placeholder:"true|false"`

	LowBalance *string `help:"Credits below which it is warned; at most five; empty: none." placeholder:"N,..."`
	QuietHours *string `help:"When its batches wait (Burundi), none, or default." placeholder:"HH:MM-HH:MM"`

	companyBounds

	Reason string `aliases:"note" help:"Why an approval or verification is taken back; for the audit log."`
}

// do changes the settings whose flags are given.
func (c *adminCompanySetCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Approved == nil && c.Verified == nil && c.SmartEncoding == nil && c.LowBalance == nil && c.QuietHours == nil &&
		!c.any() {
		return nil, errors.New("nothing to change: give --approved, --verified, --smart-encoding, --quiet-hours, " +
			"--low-balance, --bodies or a limit")
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
	if c.Approved != nil && !*c.Approved || c.Verified != nil && !*c.Verified {
		o.warnOfNoReason(c.Reason)
	}
	return done(o.by(nil).SetCompany(ctx, c.ID, operations.CompanyChange{
		CompanyChange: companies.CompanyChange{Approved: c.Approved, Verified: c.Verified, SmartEncoding: c.SmartEncoding,
			QuietHours: c.QuietHours, Limits: c.limits()},
		LowBalance: thresholds, Bodies: c.Bodies.keep, Reason: c.Reason,
	}))
}

// warnOfNoReason warns if an approval or a review is taken back without a reason.
func (o *operator) warnOfNoReason(reason string) {
	if reason == "" {
		_, _ = fmt.Fprintln(o.stderr, "intumwa: warning: without --reason the audit log does not say why")
	}
}

// thresholds parses --low-balance.
func (c *adminCompanySetCmd) thresholds() (*[]int64, error) {
	if c.LowBalance == nil {
		return nil, nil
	}
	all := []int64{}
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
	return &all, nil
}

const maxThreshold = 1_000_000_000

type adminCompanyListCmd struct{ listFlags }

func (c *adminCompanyListCmd) do(ctx context.Context, o *operator) (any, error) {
	var balances map[int64]int64
	return collectByID(ctx, c.listFlags, func(ctx context.Context, after int64, limit int) ([]accounts.Company, error) {
		page, err := o.companies().Companies(ctx, after, limit)
		if err != nil {
			return nil, err
		}
		ids := make([]int64, len(page))
		for i := range page {
			ids[i] = page[i].ID
		}
		balances, err = billing.New(o.pool).Balances(ctx, ids)
		return page, err
	}, func(c accounts.Company) any {
		var credits *int64 // null: no balance opened
		if n, ok := balances[c.ID]; ok {
			credits = &n
		}
		return object{{"company_id", c.ID}, {"owner_id", c.OwnerID}, {"name", c.Name}, {"approved", c.Approved},
			{"verified", c.Verified}, {"credits", credits}}
	})
}

type adminCompanyShowCmd struct {
	ID int64 `required:"" aliases:"company" help:"The company."`
}

func endpointOf(e webhooks.Endpoint) any {
	return object{{"company_id", e.CompanyID}, {"url", e.URL}, {"active", e.Active}, {"events", optional{e.Events}},
		{"previous_until", e.PreviousUntil}, {"failing_since", e.FailingSince}}
}

// do shows a company with its balance, senders and endpoint, without secrets.
func (c *adminCompanyShowCmd) do(ctx context.Context, o *operator) (any, error) {
	known, ledger := o.companies(), billing.New(o.pool)
	company, err := known.CompanyByID(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	owner, err := o.people().UserByID(ctx, company.OwnerID)
	if err != nil {
		return nil, err
	}
	credits, err := ledger.Balance(ctx, company.ID)
	if err != nil {
		return nil, err
	}
	spent, err := ledger.SpentToday(ctx, sms.CompanyID(company.ID))
	if err != nil {
		return nil, err
	}
	keep, err := retention.New(o.pool).BodyRule(ctx, sms.CompanyID(company.ID))
	if err != nil {
		return nil, err
	}
	senders, err := o.senders().SendersOf(ctx, company.ID)
	if err != nil {
		return nil, err
	}
	facts, err := known.FactsOf(ctx, sms.CompanyID(company.ID))
	if err != nil {
		return nil, err
	}
	endpoints, err := o.openWebhooks().Endpoints(ctx, company.ID-1, 1)
	if err != nil {
		return nil, err
	}
	var webhook any // null: no endpoint
	if len(endpoints) == 1 && endpoints[0].CompanyID == company.ID {
		webhook = endpointOf(endpoints[0])
	}
	all := object{{"company_id", company.ID}, {"name", company.Name}, {"owner_id", company.OwnerID},
		{"owner", owner.Email}, {"approved", company.Approved},
		{"verified", company.Verified}, {"smart_encoding", company.SmartEncoding},
		{"quiet_hours", optional{company.QuietHours}}, {"credits", credits},
		{"senders", senders}, {"webhook", webhook}, {"spent_today", spent}}
	all = append(all, objectOf(operations.BoundsOf(company.Limits))...)
	return deep{append(all, pair{"bodies", operations.BodiesText(keep)}, pair{"facts", factsOf(facts)})}, nil
}

// factsOf lists a company's stated facts; "missing" names the absent ones.
func factsOf(f companies.Facts) object {
	o := object{}
	for _, fact := range f.List() {
		o = append(o, pair{fact.Name, fact.Value})
	}
	return append(o, object{{"document_type", optional{f.Document.Type}}, {"document_octets", optional{f.Document.Size}},
		{"document_at", optional{f.Document.At}},
		{"document_deleted", optional{f.Document.Deleted}}, {"missing", append([]string{}, f.Missing()...)}}...)
}

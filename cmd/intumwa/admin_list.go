package main

import (
	"context"
	"errors"
	"io"
	"time"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/sms"
	"intumwa/webhooks"
)

// stretch is what every list takes. There are few of each in the beginning; an
// installation with more asks for the next part with --after.
type stretch struct {
	After int64 `help:"Only those with larger ids: the next part." placeholder:"ID"`
	Limit int   `help:"How many at most." default:"1000"`
}

// collect reads a list in pages; with an error there is none.
func collect[T, V any](l stretch, page func(after int64, limit int) ([]T, error), id func(T) int64, view func(T) V) (any, error) {
	if l.Limit < 1 {
		return nil, errors.New("--limit must be at least 1")
	}
	list := []V{} // [] in JSON, not null
	for after := l.After; len(list) < l.Limit; {
		want := min(listPage, l.Limit-len(list))
		got, err := page(after, want)
		if err != nil {
			return nil, err
		}
		for _, each := range got {
			list = append(list, view(each))
			after = id(each)
		}
		if len(got) < want {
			break
		}
	}
	return list, nil
}

type adminUserListCmd struct{ stretch }

type adminListedUser struct {
	UserID        int64     `json:"user_id"`
	Email         string    `json:"email"`
	Name          string    `json:"name"`
	Administrator bool      `json:"administrator"`
	CreatedAt     time.Time `json:"created_at"`
}

// Run lists users.
func (c *adminUserListCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		return collect(c.stretch, func(after int64, limit int) ([]accounts.User, error) { return o.accounts().Users(ctx, after, limit) },
			func(u accounts.User) int64 { return u.ID },
			func(u accounts.User) adminListedUser {
				return adminListedUser{UserID: u.ID, Email: u.Email, Name: u.Name, Administrator: u.Administrator, CreatedAt: u.CreatedAt}
			})
	})
}

type adminTokenListCmd struct {
	stretch

	User string `help:"Only those of the user with this email." placeholder:"EMAIL"`
}

type adminListedToken struct {
	TokenID    int64      `json:"token_id"`
	UserID     int64      `json:"user_id"`
	Name       string     `json:"name"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

func listedToken(t accounts.Token) adminListedToken {
	return adminListedToken{TokenID: t.ID, UserID: t.UserID, Name: t.Name, CreatedAt: t.CreatedAt, LastUsedAt: t.LastUsedAt, RevokedAt: t.RevokedAt}
}

// Run lists tokens, without their secrets, which nobody has.
func (c *adminTokenListCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		if c.User == "" {
			return collect(c.stretch, func(after int64, limit int) ([]accounts.Token, error) { return o.accounts().Tokens(ctx, after, limit) },
				func(t accounts.Token) int64 { return t.ID }, listedToken)
		}
		user, err := o.accounts().UserByEmail(ctx, c.User)
		if err != nil {
			return nil, err
		}
		tokens, err := o.accounts().TokensOf(ctx, user.ID)
		if err != nil {
			return nil, err
		}
		list := []adminListedToken{}
		for _, t := range tokens {
			list = append(list, listedToken(t))
		}
		return list, nil
	})
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
	Credits       int64          `json:"credits"`
	Senders       []adminSender  `json:"senders"`
	Webhook       *adminEndpoint `json:"webhook"` // null: none was set
}

// human prints the JSON indented, as of a message.
func (c adminShownCompany) human(w io.Writer) error { return printIndented(w, c) }

type adminEndpoint struct {
	CompanyID      int64      `json:"company_id"`
	URL            string     `json:"url"`
	Active         bool       `json:"active"`
	PreviousUntil  *time.Time `json:"previous_until"`
	FailingSince   *time.Time `json:"failing_since"`
	DisabledAt     *time.Time `json:"disabled_at"`
	DisabledReason *string    `json:"disabled_reason"`
}

func endpointOf(e webhooks.Endpoint) adminEndpoint {
	shown := adminEndpoint{CompanyID: e.CompanyID, URL: e.URL, Active: e.Active, PreviousUntil: e.PreviousUntil, FailingSince: e.FailingSince, DisabledAt: e.DisabledAt}
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
			Verified: company.Verified, SmartEncoding: company.SmartEncoding, Senders: []adminSender{}}
		owner, err := users.UserByID(ctx, company.OwnerID)
		if err != nil {
			return nil, err
		}
		shown.Owner = owner.Email
		if shown.Credits, err = billing.New(o.pool).Balance(ctx, company.ID); err != nil {
			return nil, err
		}
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

type adminWebhookListCmd struct{ stretch }

// Run lists the endpoints, without their secrets; --after is a company's id.
func (c *adminWebhookListCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		hooks := o.openWebhooks()
		return collect(c.stretch, func(after int64, limit int) ([]webhooks.Endpoint, error) { return hooks.Endpoints(ctx, after, limit) },
			func(e webhooks.Endpoint) int64 { return e.CompanyID }, endpointOf)
	})
}

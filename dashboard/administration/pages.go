// Package administration is the pages for administrators: companies, senders, users, carriers' links, acts.
package administration

import (
	"context"
	"html/template"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/billing"
	"intumwa/billing/ebms"
	"intumwa/dashboard/web"
	"intumwa/operations"
	"intumwa/sms"
	"intumwa/texts"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"became": became}

// Pages are the pages for administrators.
type Pages struct {
	Deps     Deps
	Board    *Board
	Routes   func() *sms.Routes
	By       func(*web.Visit) Changes
	Words    *texts.Texts
	Operator web.Operator

	TaxOffice *ebms.Client // nil: it is not configured
}

// Deps are what these pages call.
type Deps struct {
	Pool      *pgxpool.Pool // for look-ups
	Companies interface {
		ApplicantByID(ctx context.Context, id int64) (companies.Applicant, error)
		Awaiting(ctx context.Context, after int64, limit int) ([]companies.Applicant, error)
		FindCompanies(ctx context.Context, text string, after int64, limit int) ([]companies.Applicant, error)
	}
	People interface {
		Administrators(ctx context.Context) ([]people.User, error)
		FindUsers(ctx context.Context, text string, limit int) ([]people.User, error)
		PeopleOf(ctx context.Context, company int64) ([]people.User, error)
		UserByEmail(ctx context.Context, email string) (people.User, error)
		UserByID(ctx context.Context, id int64) (people.User, error)
	}
	Keys interface {
		TokensOfCompany(ctx context.Context, company int64) ([]keys.Token, error)
	}
	Webhooks interface {
		EndpointOf(ctx context.Context, company sms.CompanyID) (webhooks.Endpoint, error)
	}
	Ledger interface {
		Balance(ctx context.Context, company int64) (credits int64, err error)
		Balances(ctx context.Context, companies []int64) (map[int64]int64, error)
	}
	Senders       *senders.Store
	Verifications *verifications.Store
}

// Changes are those that the audit log has.
type Changes interface {
	AddCredits(ctx context.Context, of billing.Adjustment) (credits int64, err error)
	DecideSender(ctx context.Context, id int64, to operations.Decision) (senders.SenderRequest, error)
	DecideText(ctx context.Context, id int64, to operations.Decision) (verifications.OwnText, error)
	DeleteDocument(ctx context.Context, company sms.CompanyID) error
	RevokeToken(ctx context.Context, id int64, may func(owner people.User) bool) (company int64, err error)
	SetCompany(ctx context.Context, id int64, to operations.CompanyChange) (operations.Settings, error)
	SetPaused(ctx context.Context, link string, paused bool) (state string, err error)
	SetRegistration(ctx context.Context, sender int64, carrier string, to senders.RegistrationChange, version *string) (
		senders.Registration, error)
	SetRegistrationDocument(ctx context.Context, registration int64, name string, file []byte) error
	SetUser(ctx context.Context, id int64, change, reason string) (operations.User, error)
}

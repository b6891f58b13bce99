// Package settings is the pages of a company: its facts, people and sender IDs.
package settings

import (
	"context"
	"html/template"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/dashboard/web"
	"intumwa/internal/throttle"
	"intumwa/sms"
	"intumwa/texts"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"factOf": factOf, "likeness": likeness}

// Pages are the pages of a company.
type Pages struct {
	Deps           Deps
	Routes         func() *sms.Routes
	Mailed         func(f *web.Form, field string) string // reads the address of a mail, within the limits
	MailInvitation func(l *texts.Language, to, from, token string)
	Papers         *throttle.Throttle // uploaded documents of one company, in a day; nil: no limit
	By             func(*web.Visit) Changes
}

// Deps are what these pages call.
type Deps struct {
	Companies interface {
		DocumentPart(ctx context.Context, company sms.CompanyID, d accounts.Document, from, size int) ([]byte, error)
		FactsOf(ctx context.Context, company sms.CompanyID) (companies.Facts, error)
	}
	People interface {
		InvitationsOf(ctx context.Context, company int64) ([]people.Invitation, error)
		PeopleOf(ctx context.Context, company int64) ([]people.User, error)
		UserByID(ctx context.Context, id int64) (people.User, error)
	}
	Senders interface {
		IsTestSender(name string) bool
		RegistrationsOf(ctx context.Context, company sms.CompanyID) (map[int64]map[string]senders.Registration, error)
		SenderRequestsOf(ctx context.Context, company sms.CompanyID) ([]senders.SenderRequest, error)
	}
	Ledger interface {
		Balance(ctx context.Context, company int64) (credits int64, err error)
	}
}

// Changes are those that the audit log has.
type Changes interface {
	AskForSender(ctx context.Context, company sms.CompanyID, name, country, purpose string) error
	CreateCompany(ctx context.Context, n companies.NewCompany, credits int64) (accounts.Company, error)
	Invite(ctx context.Context, n people.NewInvitation) (token string, err error)
	SetDocument(ctx context.Context, company sms.CompanyID, name string, file []byte) error
	SetFacts(ctx context.Context, company sms.CompanyID, facts companies.Facts) error
	SetRole(ctx context.Context, company, id int64, role accounts.Role) error
	Uninvite(ctx context.Context, company, id int64) error
}

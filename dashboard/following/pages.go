// Package following is the pages that say what became of messages: lists, a message's life, counts, files.
package following

import (
	"context"
	"html/template"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/senders"
	"intumwa/campaigns"
	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/reports/exports"
	"intumwa/sms"
	"intumwa/webhooks"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"gone": gone, "kilobytes": kilobytes, "percentOf": percentOf}

// Pages are the pages that say what became of messages.
type Pages struct {
	Deps     Deps
	Answered func(ctx context.Context, user int64, key string) (body []byte, known bool, err error) // of a request
	Tokens   func(*web.Visit) ([]keys.Token, error)                                                 // of the user
	Endpoint func(*web.Visit, web.Tenant) (*webhooks.Endpoint, error)
	Test     *testmode.Reader
	By       func(*web.Visit) Changes
	Plan     *sms.Plan
	Refund   setup.Refund // which failed messages are refunded
}

// Deps are what these pages call.
type Deps struct {
	Messages   *messages.Store // for look-ups
	Lookup     *lookup.Store
	Operators  *lookup.Store // for administrators
	Statistics *statistics.Store
	Exports    *exports.Exports
	Webhooks   *webhooks.Webhooks
	Campaigns  interface {
		Get(ctx context.Context, company sms.CompanyID, id ulid.ULID) (campaigns.Campaign, error)
		Paused(ctx context.Context, made *campaigns.Campaign, batch *messages.BatchRecord) (reason string, err error)
	}
	Companies interface {
		CompanyByID(ctx context.Context, id int64) (accounts.Company, error)
		FactsOf(ctx context.Context, company sms.CompanyID) (companies.Facts, error)
	}
	Senders interface {
		SenderRequestsOf(ctx context.Context, company sms.CompanyID) ([]senders.SenderRequest, error)
	}
	Ledger interface {
		Balance(ctx context.Context, company int64) (credits int64, err error)
		Refunded(ctx context.Context, messages [][16]byte) (map[[16]byte]int64, error)
	}
}

// Changes are those that the audit log has.
type Changes interface {
	AskExport(ctx context.Context, r exports.Request) error
}

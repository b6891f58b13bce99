// Package sending is the pages that send: one message, a campaign, a verification.
package sending

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"

	"intumwa/accounts"
	"intumwa/accounts/testnumbers"
	"intumwa/campaigns"
	"intumwa/contacts"
	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/intake"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/operations"
	"intumwa/sms"
	"intumwa/verifications"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"localeOf": localeOf, "verificationOf": verificationOf,
	"verificationKind": verificationKind}

// Pages are the pages that send.
type Pages struct {
	Deps  Deps
	Sends *throttle.Throttle // sends per user and minute, pages and API together; nil: no limit
	Test  *testmode.Reader
	By    func(*web.Visit) Changes
	Plan  *sms.Plan
	Log   *slog.Logger
}

// Deps are what these pages call.
type Deps struct {
	Intake    *intake.Intake
	Campaigns *campaigns.Campaigns
	Messages  *messages.Store // for look-ups
	Contacts  interface {
		Book(ctx context.Context, company int64) (contacts.Book, error)
		Groups(ctx context.Context, company int64) ([]contacts.Group, error)
	}
	Holders interface {
		PrincipalOf(ctx context.Context, user int64) (*accounts.Principal, error)
	}
	Senders interface {
		SendersOf(ctx context.Context, company int64) ([]accounts.Sender, error)
	}
	TestNumbers interface {
		TestNumberOf(ctx context.Context, user int64) (testnumbers.TestNumber, error)
	}
	Ledger interface {
		Balance(ctx context.Context, company int64) (credits int64, err error)
	}
	Verifications *verifications.Store // for look-ups
}

// Changes are those that the audit log has.
type Changes interface {
	AskForText(ctx context.Context, company sms.CompanyID, locale, text string) (verifications.OwnText, error)
	CancelBatch(ctx context.Context, id fmt.Stringer, of messages.Queued, reason string) (*operations.Cancelled, error)
}

// Package develop is the pages for developers: keys of the API and of SMPP, webhooks, the test number.
package develop

import (
	"context"
	"html/template"
	"net/http"
	"net/netip"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/testnumbers"
	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/internal/throttle"
	"intumwa/messages/lookup"
	"intumwa/operations"
	"intumwa/smppserver/binds"
	"intumwa/sms"
	"intumwa/webhooks"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"attemptOf": attemptOf, "lastOf": lastOf, "lines": printable}

// Pages are the pages for developers.
type Pages struct {
	Deps Deps
	// sends a code
	VerifyNumber func(ctx context.Context, user people.User, company *accounts.Company, network string,
		number sms.Number) error
	// runs the example of a new key
	API   http.Handler
	Test  *testmode.Reader
	Tests *throttle.Throttle // test events to one company's endpoint; nil: no limit
	By    func(*web.Visit) Changes
	Plan  *sms.Plan
}

// Deps are what these pages call.
type Deps struct {
	Keys interface {
		SMPPKeys(ctx context.Context, company, after int64, limit int) ([]keys.SMPPKey, error)
		TokensOf(ctx context.Context, user int64) ([]keys.Token, error)
		TokensOfCompany(ctx context.Context, company int64) ([]keys.Token, error)
	}
	TestNumbers interface {
		ConfirmCheck(ctx context.Context, user int64, code string) (testnumbers.TestNumber, error)
	}
	Binds    *binds.Store
	Lookup   *lookup.Store
	Webhooks *webhooks.Webhooks
}

// Changes are those that the audit log has.
type Changes interface {
	CreateSMPPKey(ctx context.Context, user int64, name string, networks []netip.Prefix, limits keys.SMPPLimits,
		keep operations.Keep) (t keys.Token, password string, err error)
	CreateToken(ctx context.Context, email string, own bool, name string, limits accounts.TokenLimits,
		keep operations.Keep) (id int64, text string, err error)
	EndRotation(ctx context.Context, company sms.CompanyID) (webhooks.Endpoint, error)
	Recover(ctx context.Context, company sms.CompanyID, since time.Time) (resent, left int64, err error)
	Resend(ctx context.Context, company sms.CompanyID, id int64) error
	RevokeToken(ctx context.Context, id int64, may func(owner people.User) bool) (company int64, err error)
	RotateSecret(ctx context.Context, company sms.CompanyID, keep operations.Keep) (webhooks.Endpoint, error)
	SetEndpoint(ctx context.Context, company sms.CompanyID, to webhooks.Setting, keep operations.Keep) (webhooks.Endpoint,
		error)
	SetPulled(ctx context.Context, company sms.CompanyID, events []string) (webhooks.Pulling, error)
	SetSMPPKey(ctx context.Context, id int64, change keys.SMPPChange) (keys.SMPPKey, error)
	Unbind(ctx context.Context, company sms.CompanyID, id, bind int64) (n int64, err error)
}

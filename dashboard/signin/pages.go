// Package signin is the pages of signing in and up: links by mail, the second factor, the account, the administrator
// scope.
package signin

import (
	"context"
	"html/template"
	"log/slog"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
	"intumwa/internal/throttle"
	"intumwa/texts"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"device": deviceName}

// Pages are the pages of signing in and up.
type Pages struct {
	Deps             Deps
	Mails            Mails
	Tries            Tries
	FinishInvitation func(ctx context.Context, token, password string) (people.User, error)
	By               func(*web.Visit) Changes
	Words            *texts.Texts
	Log              *slog.Logger
	SessionIdle      time.Duration // an unused session ends
	AdminTOTP        bool          // the administrator scope requires the second factor instead of the password
}

// Deps are what these pages call.
type Deps struct {
	SignIn   *people.SignIn
	Sessions *people.Sessions
	People   interface {
		SetLanguage(ctx context.Context, user int64, language string) error
		UserByEmail(ctx context.Context, email string) (people.User, error)
	}
	Companies interface {
		CompanyByID(ctx context.Context, id int64) (accounts.Company, error)
	}
}

// Changes are those that the audit log has.
type Changes interface {
	Join(ctx context.Context, token string, u people.User) error
}

// Tries limits tries per quarter of an hour, mostly without a session. Nil: no limit.
type Tries struct {
	Account  *throttle.Throttle // wrong passwords of one account; wrong codes of one user
	Address  *throttle.Throttle // all of these, and links, per network address
	Codes    *throttle.Throttle // wrong codes of one user's second factor, in a day
	Mails    *throttle.Throttle // links per mail address and hour
	SignUps  *throttle.Throttle // links for signing up, per network address and day
	Warnings *throttle.Throttle // mails to one user about wrong passwords, per day
}

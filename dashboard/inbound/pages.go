// Package inbound is the pages of what handsets sent: messages and opt-outs.
package inbound

import (
	"context"

	"intumwa/accounts"
	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// Pages are the pages of what handsets sent.
type Pages struct {
	Deps Deps
	By   func(*web.Visit) Changes
	Plan *sms.Plan
}

// Deps are what these pages call.
type Deps struct {
	Handsets *handsets.Store // for look-ups
	Senders  interface {
		SendersOf(ctx context.Context, company int64) ([]accounts.Sender, error)
	}
}

// Changes are those that the audit log has.
type Changes interface {
	AddOptOut(ctx context.Context, company sms.CompanyID, entry handsets.OptOut) (added bool, err error)
	RemoveOptOut(ctx context.Context, company sms.CompanyID, number sms.Number, sender string) (removed bool, err error)
}

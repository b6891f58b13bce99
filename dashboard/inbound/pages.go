// Package inbound is the pages of what handsets sent: messages and opt-outs.
package inbound

import (
	"context"

	"intumwa/accounts"
	"intumwa/contacts"
	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

// Pages are the pages of what handsets sent.
type Pages struct {
	Deps Deps
	By   func(*web.Visit) Changes
	Plan *sms.Plan

	// The form for an answer, and what sends it: a single message, with the rules of the page for one.
	Reply     func(v *web.Visit, t web.Tenant, from string) (any, error)
	SendReply func(v *web.Visit, t web.Tenant, to sms.Number) (sent bool, err error)
}

// Deps are what these pages call.
type Deps struct {
	Handsets *handsets.Store // for look-ups
	Marks    *handsets.Store // to note what is read
	Lookup   *lookup.Store
	Contacts *contacts.Store // for look-ups
	Senders  interface {
		SendersOf(ctx context.Context, company int64) ([]accounts.Sender, error)
	}
}

// Changes are those that the audit log has.
type Changes interface {
	AddOptOut(ctx context.Context, company sms.CompanyID, entry handsets.OptOut) (added bool, err error)
	RemoveOptOut(ctx context.Context, company sms.CompanyID, number sms.Number, sender string) (removed bool, err error)
}

package dashboard

import (
	"context"

	"intumwa/billing/ebms"
	"intumwa/dashboard/administration"
	contactpages "intumwa/dashboard/contacts"
	"intumwa/dashboard/develop"
	"intumwa/dashboard/following"
	"intumwa/dashboard/inbound"
	"intumwa/dashboard/money"
	"intumwa/dashboard/sending"
	"intumwa/dashboard/settings"
	"intumwa/dashboard/signin"
	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/messages/lookup"
	"intumwa/reports"
	"intumwa/smppserver/binds"
)

// wire gives each package of pages the few things that it calls.
func (d *Dashboard) wire() {
	r, o := &d.deps, &d.opts
	test := &testmode.Reader{Numbers: r.TestNumbers, Ledger: r.Ledger, APIURL: o.APIURL, Sender: o.TestSender,
		Quota: o.TestQuota}
	board := administration.NewBoard(r.Pool)
	t := &r.Tries
	d.signin = signin.Pages{Deps: signin.Deps{SignIn: r.SignIn, Sessions: r.Sessions, People: r.People,
		Companies: r.Companies},
		Mails: signin.Mails{Mailer: r.Mailer, PublicURL: o.PublicURL},
		Tries: signin.Tries{Account: t.Account, Address: t.Address, Codes: t.Codes, Mails: t.Mails,
			SignUps: t.SignUps, Warnings: t.Warnings},
		FinishInvitation: d.operations.FinishInvitation, By: func(v *web.Visit) signin.Changes { return d.by(v) },
		Words: d.words, Log: d.log, SessionIdle: o.SessionIdle, AdminTOTP: o.AdminTOTP}
	d.settings = settings.Pages{Deps: settings.Deps{Companies: r.Companies, People: r.People, Senders: r.Senders,
		Ledger: r.Ledger}, Routes: r.Intake.Routes,
		Mailed: d.signin.Mailed, MailInvitation: d.signin.Mails.Invitation, Papers: t.Papers,
		By: func(v *web.Visit) settings.Changes { return d.by(v) }}
	d.develop = develop.Pages{Deps: develop.Deps{Keys: r.Keys, TestNumbers: r.TestNumbers, Binds: binds.New(r.Pool),
		Lookup: r.Lookup, Webhooks: r.Webhooks}, VerifyNumber: r.Intake.VerifyNumber,
		API: r.API, Test: test, Tests: t.Tests, By: func(v *web.Visit) develop.Changes { return d.by(v) }, Plan: o.Plan}
	d.money = money.Pages{Deps: money.Deps{Statements: r.Statements, Statistics: r.Statistics,
		Orders: r.Orders}, Companies: r.Companies, Papers: t.Papers,
		Reports:  reports.Deps{Companies: r.Companies, Ledger: r.Statements, Statistics: r.Statistics},
		Operator: o.Operator, Carriers: board.Carriers, Owner: d.settings.Owner,
		By: func(v *web.Visit) money.Changes { return d.by(v) }}
	if r.TaxOffice != nil {
		d.money.Unsent = func(ctx context.Context, limit int) ([]ebms.Report, error) {
			return ebms.Pending(ctx, r.Pool, limit)
		}
	}
	d.sending = sending.Pages{Deps: sending.Deps{Intake: r.Intake, Campaigns: r.Campaigns, Messages: r.Messages,
		Contacts: r.Contacts, Holders: r.Holders, Senders: r.Senders, TestNumbers: r.TestNumbers, Ledger: r.Ledger,
		Verifications: r.Verifications}, Sends: r.Sends, Test: test,
		By: func(v *web.Visit) sending.Changes { return d.by(v) }, Plan: o.Plan, Log: d.log}
	d.following = following.Pages{Deps: following.Deps{Messages: r.Messages, Lookup: r.Lookup,
		Operators: lookup.New(r.Pool), Statistics: r.Statistics, Exports: r.Exports, Webhooks: r.Webhooks,
		Campaigns: r.Campaigns, Companies: r.Companies, Senders: r.Senders, Ledger: r.Ledger}, Answered: r.Intake.Answered,
		Tokens: d.develop.Tokens, Endpoint: d.develop.Endpoint,
		Test: test, By: func(v *web.Visit) following.Changes { return d.by(v) }, Plan: o.Plan, Refund: o.Refund}
	d.inbound = inbound.Pages{Deps: inbound.Deps{Handsets: r.Handsets, Marks: handsets.New(r.Pool), Lookup: r.Lookup,
		Contacts: r.Contacts, Senders: r.Senders},
		By: func(v *web.Visit) inbound.Changes { return d.by(v) }, Plan: o.Plan, Reply: d.sending.Reply,
		SendReply: d.sending.SendReply}
	d.contacts = contactpages.Pages{Deps: contactpages.Deps{Contacts: r.Contacts, Imports: r.Imports},
		By: func(v *web.Visit) contactpages.Changes { return d.by(v) }, Plan: o.Plan}
	d.administration = administration.Pages{Deps: administration.Deps{Pool: r.Pool, Companies: r.Companies,
		People: r.People, Keys: r.Keys, Webhooks: r.Webhooks, Ledger: r.Ledger, Senders: r.Senders,
		Verifications: r.Verifications}, Board: board, Routes: r.Intake.Routes,
		By: func(v *web.Visit) administration.Changes { return d.by(v) }, Words: d.words, Operator: o.Operator,
		TaxOffice: r.TaxOffice}
}

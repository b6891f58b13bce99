package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"intumwa/accounts/testnumbers"
	"intumwa/inbound/handsets"
	"intumwa/messages/lookup"
	"intumwa/messages/receipts"
	"intumwa/messages/retention"
	"intumwa/operations"
	"intumwa/smppserver/binds"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

type adminNumberCmd struct {
	Export adminNumberExportCmd `cmd:"" help:"Print all that is kept of a number, texts included, as JSON lines."`
	Erase  adminNumberEraseCmd  `cmd:"" help:"Remove texts of final messages to a number, and obscure it."`
}

// numberFlags has the flags of export and erase.
type numberFlags struct {
	Number string `required:"" aliases:"to" help:"The number, or another sender of 'admin inbound list'."`
	Reason string `aliases:"note" help:"Why, e.g. the request's reference; it stays in the audit log."`
}

// subject is the address in question.
type subject struct {
	operations.Number
	valid bool // messages can be sent to it
}

func (n *numberFlags) parse(o *operator) (subject, error) {
	plan := planOf(o.config)
	typed, valid := plan.Parse(n.Number)
	if !valid {
		switch plan.Fault(n.Number) {
		case sms.NumberScientific, sms.NumberDecimal, sms.NumberSeveral:
			return subject{}, errors.New("--number is not one number as a person writes it")
		}
		typed = sms.Number(n.Number) // a name, a short code, a foreign number, or a carrier's form
	}
	number, forms := handsets.Named(string(typed))
	if forms[0] == "" {
		return subject{}, errors.New("--number is empty")
	}
	return subject{operations.Number{Number: number, Forms: forms}, valid}, nil
}

// found returns an error if nothing is kept of an invalid number: it may be mistyped.
func (s subject) found(n int64) error {
	if n > 0 || s.valid {
		return nil
	}
	return errors.New("nothing is kept of --number, which is not a valid Burundi (+257) number")
}

type adminNumberExportCmd struct{ numberFlags }

// export prints what is kept of a number as JSON lines and counts them.
type export struct {
	to     io.Writer
	counts map[string]any // by the plural of the kind
	all    int64
}

// print prints the lines of one kind; err comes from reading them.
func (e *export) print(kind, several string, err error, lines []object) error {
	for _, line := range lines {
		err = errors.Join(err, printJSON(e.to, append(object{{"kind", kind}}, line...)))
	}
	before, _ := e.counts[several].(int)
	e.counts[several] = before + len(lines)
	e.all += int64(len(lines))
	return err
}

func (c *adminNumberExportCmd) do(ctx context.Context, o *operator) (any, error) {
	about, err := c.parse(o)
	if err != nil {
		return nil, err
	}
	e := &export{to: o.stdout, counts: map[string]any{}}
	err = o.by(nil).ExportNumber(ctx, about.Number, c.Reason,
		func() (map[string]any, error) { return e.counts, o.export(ctx, about.Number, e) })
	if err == nil {
		err = about.found(e.all)
	}
	return nil, err
}

func (o *operator) export(ctx context.Context, about operations.Number, e *export) error {
	store := lookup.New(o.pool)
	err := operations.EachTo(ctx, store, about.Number, func(page []lookup.Record) error {
		var lines []object
		for _, r := range page {
			history, err := store.HistoryOf(ctx, r.ID)
			if err != nil {
				return err
			}
			deliveries, err := o.openWebhooks().OfMessage(ctx, sms.CompanyID(r.CompanyID), r.ID)
			if err != nil {
				return err
			}
			lines = append(lines, append(object{{"message", r.Body}},
				messageOf(r, history, lookup.Timeline(r, history), deliveries)...))
		}
		return e.print("message", "messages", nil, lines)
	})
	if err != nil {
		return err
	}
	unmatched, err := receipts.Naming(ctx, o.pool, about.Number) // that match no message
	if err := e.print("receipt", "receipts", err, views(unmatched, func(r receipts.InboxReceipt) object {
		return object{{"received_at", r.At}, {"carrier", r.Carrier}, {"link", r.Link}, {"carrier_id", r.CarrierID},
			{"state", r.State}, {"error", r.Error}}
	})); err != nil {
		return err
	}
	inbound, err := handsets.New(o.pool).InboundOf(ctx, about.Forms)
	if err := e.print("inbound", "inbound", err, views(inbound, func(m handsets.Inbound) object {
		return object{{"received_at", m.At}, {"carrier", m.Carrier}, {"from", m.Source}, {"to", m.Destination},
			{"message", m.Body}, // null: not decodable text
			{"octets", m.Octets}}
	})); err != nil {
		return err
	}
	waiting, err := binds.OfNumber(ctx, o.pool, about.Forms) // receipts and MOs for binds of customers
	if err := e.print("bind", "binds", err, views(waiting, func(d binds.Delivery) object {
		return object{{"smpp", d.Account}, {"number", d.Number}, {"address", d.Address}, {"at", d.At}, {"sent", d.Sent},
			{"reason", orNull(d.Reason)},
			{"message", orNull(d.Body)}} // null: a receipt
	})); err != nil {
		return err
	}
	upTo, err := retention.New(o.pool).PurgedUpTo(ctx)
	if err != nil {
		return err
	}
	busy, err := o.busyPool(ctx)
	if err != nil {
		return err
	}
	defer busy.Close()
	// Webhooks about MO messages from the number, and about purged messages to it.
	events, err := webhooks.New(busy, webhooks.Options{}).Naming(ctx, about.Forms, upTo)
	if err := e.print("event", "events", err, views(events, func(d webhooks.Delivery) object {
		return append(object{{"company_id", d.CompanyID}, {"body", d.Body}}, eventOf(d)...)
	})); err != nil {
		return err
	}
	lists, err := handsets.New(o.pool).OptOutsOf(ctx, about.Number)
	var entries []object
	for company, list := range lists {
		entries = append(entries, views(list, func(entry handsets.OptOut) object { // sender "": all senders of the company
			return object{{"company_id", company}, {"sender", entry.Sender}, {"source", entry.Source},
				{"created_at", entry.CreatedAt}}
		})...)
	}
	if err := e.print("opt_out", "opt_outs", err, entries); err != nil {
		return err
	}
	verified, err := o.verifications().OfNumber(ctx, about.Number)
	if err := e.print("verification", "verifications", err, views(verified, func(v verifications.Verification) object {
		return append(object{{"company_id", int64(v.Company)}}, verificationOf(&v)...)
	})); err != nil {
		return err
	}
	if err := o.contactsOf(ctx, about.Number, e); err != nil {
		return err
	}
	tests, err := o.testNumbers().TestNumbers(ctx, about.Number)
	return e.print("test_number", "test_numbers", err, views(tests, func(t testnumbers.TestNumber) object {
		return object{{"user_id", t.UserID}, {"verified", t.Verified}}
	}))
}

type adminNumberEraseCmd struct{ numberFlags }

// do erases a number. It can run again, and must if messages were pending.
func (c *adminNumberEraseCmd) do(ctx context.Context, o *operator) (any, error) {
	about, err := c.parse(o)
	if err != nil {
		return nil, err
	}
	pool, err := o.busyPool(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	done, err := o.by(pool).EraseNumber(ctx, about.Number, c.Reason)
	if err == nil {
		if err := about.found(done.Messages + done.Pending + done.Receipts + done.Inbound + done.Binds + done.Events +
			done.TestCodes + done.Verified + done.Contacts + done.TestNumbers); err != nil {
			return nil, err
		}
	}
	if err == nil && done.Pending > 0 {
		err = fmt.Errorf("%d messages or verifications are left: not final, not looked at yet, in a campaign that is "+
			"being sent, or "+
			"an event about them is still to be delivered; erase the number again later", done.Pending)
	}
	return done, err
}

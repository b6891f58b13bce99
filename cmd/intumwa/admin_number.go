package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/inbound/handsets"
	"intumwa/internal/audit"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/sms"
	"intumwa/webhooks"
)

type adminNumberCmd struct {
	Export adminNumberExportCmd `cmd:"" help:"Print everything that is kept of a number, one JSON object a line, texts included."`
	Erase  adminNumberEraseCmd  `cmd:"" help:"Remove texts of final messages to a number and obscure it in them, for good."`
}

// Acts in the audit log, at the beginning and at the end.
const (
	actExport     = "number.export"
	actExportDone = "number.export.done"
	actErase      = "number.erase"
	actEraseDone  = "number.erase.done"
)

// numberFlags has the flags of export and erase.
type numberFlags struct {
	Number string `required:"" aliases:"to" help:"The number, in any form; or a foreign number, a short code or a name that 'admin inbound list' shows."`
	Reason string `aliases:"note" help:"Why, e.g. the request's reference; it stays in the audit log."`
}

// numberPage is the number of messages that one step reads or erases.
const numberPage = 500

// subject is the address in question.
type subject struct {
	number sms.Number // "": not a number of the country, so no message went to it
	forms  []string   // as carriers write it
	valid  bool       // messages can be sent to it
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
	return subject{number, forms, valid}, nil
}

// written is any one form of the subject, to be masked or hashed.
func (s subject) written() sms.Number { return sms.Number(s.forms[0]) }

// found returns an error if nothing is kept of an invalid number: it may be mistyped.
func (s subject) found(n int64) error {
	if n > 0 || s.valid {
		return nil
	}
	return errors.New("nothing is kept of --number, which is not a valid Burundi (+257) number")
}

// note writes the audit entries. They are permanent, so the number in them is masked.
func (n *numberFlags) note(ctx context.Context, o *operator, act string, about subject, after map[string]any) error {
	after["reason"] = n.Reason
	return o.note(ctx, audit.Entry{Act: act, Subject: "number " + about.written().Masked(), After: after})
}

// eachTo calls do with the messages to a number, page by page, newest first.
func (o *operator) eachTo(ctx context.Context, store *messages.Store, number sms.Number, do func([]messages.Record) error) error {
	if number == "" {
		return nil
	}
	for before := int64(0); ; {
		page, _, next, err := store.OperatorsByNumber(ctx, number, before, numberPage)
		if err != nil {
			return err
		}
		if err := do(page); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		before = next
	}
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
	if err := c.note(ctx, o, actExport, about, map[string]any{}); err != nil {
		return nil, err
	}
	e := &export{to: o.stdout, counts: map[string]any{}}
	store := messages.New(o.pool)
	err = o.eachTo(ctx, store, about.number, func(page []messages.Record) error {
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
			lines = append(lines, append(object{{"message", r.Body}}, messageOf(r, history, messages.Timeline(r, history), deliveries)...))
		}
		return e.print("message", "messages", nil, lines)
	})
	if err != nil {
		return nil, err
	}
	unmatched, err := receipts.Naming(ctx, o.pool, about.number) // that match no message
	if err := e.print("receipt", "receipts", err, views(unmatched, func(r receipts.InboxReceipt) object {
		return object{{"received_at", r.At}, {"carrier", r.Carrier}, {"link", r.Link}, {"carrier_id", r.CarrierID}, {"state", r.State}, {"error", r.Error}}
	})); err != nil {
		return nil, err
	}
	inbound, err := handsets.New(o.pool).InboundOf(ctx, about.forms)
	if err := e.print("inbound", "inbound", err, views(inbound, func(m handsets.Inbound) object {
		return object{{"received_at", m.At}, {"carrier", m.Carrier}, {"from", m.Source}, {"to", m.Destination},
			{"message", m.Body}, // null: not decodable text
			{"octets", m.Octets}}
	})); err != nil {
		return nil, err
	}
	upTo, err := store.PurgedUpTo(ctx)
	if err != nil {
		return nil, err
	}
	busy, err := o.busyPool(ctx)
	if err != nil {
		return nil, err
	}
	defer busy.Close()
	// Webhooks about MO messages from the number, and about purged messages to it.
	events, err := webhooks.New(busy, webhooks.Options{}).Naming(ctx, about.forms, upTo)
	if err := e.print("event", "events", err, views(events, func(d webhooks.Delivery) object {
		return append(object{{"company_id", d.CompanyID}, {"body", d.Body}}, eventOf(d)...)
	})); err != nil {
		return nil, err
	}
	lists, err := handsets.New(o.pool).OptOutsOf(ctx, about.number)
	var entries []object
	for company, list := range lists {
		entries = append(entries, views(list, func(entry handsets.OptOut) object { // sender "": all senders of the company
			return object{{"company_id", company}, {"sender", entry.Sender}, {"source", entry.Source}, {"created_at", entry.CreatedAt}}
		})...)
	}
	if err := e.print("opt_out", "opt_outs", err, entries); err != nil {
		return nil, err
	}
	tests, err := o.accounts().TestNumbers(ctx, about.number)
	if err := e.print("test_number", "test_numbers", err, views(tests, func(t accounts.TestNumber) object {
		return object{{"user_id", t.UserID}, {"verified", t.Verified}}
	})); err != nil {
		return nil, err
	}
	return nil, errors.Join(c.note(ctx, o, actExportDone, about, e.counts), about.found(e.all))
}

type adminNumberEraseCmd struct{ numberFlags }

type adminErased struct {
	Number      string `json:"number"`       // masked
	Messages    int64  `json:"messages"`     // now without text and number
	Pending     int64  `json:"pending"`      // unchanged: not final, not processed, or with an undelivered event
	Receipts    int64  `json:"receipts"`     // deleted, that match no message; none while messages are pending
	Inbound     int64  `json:"inbound"`      // MO messages, deleted
	Events      int64  `json:"events"`       // webhooks about MO and purged messages, now without number and text
	TestCodes   int64  `json:"test_codes"`   // one-time codes, deleted
	TestNumbers int64  `json:"test_numbers"` // of accounts, unchanged
}

// do erases a number. It can run again, and must if messages were pending.
func (c *adminNumberEraseCmd) do(ctx context.Context, o *operator) (any, error) {
	about, err := c.parse(o)
	if err != nil {
		return nil, err
	}
	if err := c.note(ctx, o, actErase, about, map[string]any{}); err != nil {
		return nil, err
	}
	done, err := o.erase(ctx, about)
	err = errors.Join(err, c.note(ctx, o, actEraseDone, about, map[string]any{"messages": done.Messages, "pending": done.Pending,
		"receipts": done.Receipts, "inbound": done.Inbound, "events": done.Events, "test_codes": done.TestCodes}))
	if err == nil {
		if err := about.found(done.Messages + done.Pending + done.Receipts + done.Inbound + done.Events + done.TestCodes + done.TestNumbers); err != nil {
			return nil, err
		}
	}
	if err == nil && done.Pending > 0 {
		err = fmt.Errorf("%d messages are left: not final, not looked at yet, or an event about them is still to be delivered; erase the number again later", done.Pending)
	}
	return objectOf(done), err
}

// erase erases as much as it can and returns the counts with any error.
func (o *operator) erase(ctx context.Context, about subject) (done adminErased, err error) {
	number, obscured := about.number, about.written().Obscured()
	done.Number = about.written().Masked()
	pool, err := o.busyPool(ctx)
	if err != nil {
		return done, err
	}
	defer pool.Close()
	store := messages.New(pool)
	err = o.eachTo(ctx, store, number, func(page []messages.Record) error {
		var ids []int64
		for _, r := range page {
			ids = append(ids, r.ID)
		}
		erased, err := store.Erase(ctx, number, ids, func(tx pgx.Tx, final []messages.Ref) ([]int64, error) {
			subjects := make([]webhooks.Subject, len(final))
			for i, m := range final {
				subjects[i] = webhooks.Subject{CompanyID: m.CompanyID, MessageID: m.ID}
			}
			return webhooks.Erase(ctx, tx, subjects, obscured)
		})
		done.Messages, done.Pending = done.Messages+erased.Messages, done.Pending+erased.Pending
		return err
	})
	if err != nil {
		return done, err
	}
	if done.Pending == 0 { // else a receipt may still settle one of them
		if err := store.EraseReferences(ctx, number); err != nil {
			return done, err
		}
		if done.Receipts, err = receipts.Erase(ctx, pool, number); err != nil {
			return done, err
		}
	}
	upTo, err := store.PurgedUpTo(ctx)
	if err != nil {
		return done, err
	}
	var gone adminErased
	if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { // in its own transaction: it scans every event that outlived its message
		gone.Events, gone.Pending, err = webhooks.ErasePurged(ctx, tx, string(number), upTo, obscured)
		return err
	}); err != nil {
		return done, err
	}
	done.Events, done.Pending = gone.Events, done.Pending+gone.Pending
	gone = adminErased{}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var left int64
		gone.Inbound, left, err = handsets.New(pool).In(tx).EraseInbound(ctx, about.forms, func(of []handsets.Ref) ([]int64, error) {
			subjects := make([]webhooks.Subject, len(of))
			for i, m := range of {
				subjects[i] = webhooks.Subject{CompanyID: m.CompanyID, MessageID: m.ID}
			}
			erased, pending, err := webhooks.EraseReceived(ctx, tx, subjects, about.forms, obscured)
			gone.Events += erased
			return pending, err
		})
		gone.Pending += left
		return err
	})
	if err != nil {
		return done, err
	}
	done.Inbound, done.Events, done.Pending = gone.Inbound, done.Events+gone.Events, done.Pending+gone.Pending
	if done.TestCodes, err = o.accounts().ForgetCodes(ctx, number); err != nil {
		return done, err
	}
	tests, err := o.accounts().TestNumbers(ctx, number)
	done.TestNumbers = int64(len(tests))
	return done, err
}

package operations

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/messages/lookup"
	"intumwa/messages/receipts"
	"intumwa/messages/retention"
	"intumwa/reports/exports"
	"intumwa/smppserver/binds"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// Number is an address that somebody asks about.
type Number struct {
	Number sms.Number // "": not a number of the country, so no message went to it
	Forms  []string   // as carriers write it; at least one
}

// written is any one form, to be masked or obscured.
func (n Number) written() sms.Number { return sms.Number(n.Forms[0]) }

// act returns an entry about the number, which is masked: entries are permanent.
func (n Number) act(name, reason string, after fields) act {
	after["reason"] = reason
	return act{name: name, subject: "number " + n.written().Masked(), after: after}
}

// ExportNumber calls export, which returns how many it has of what, between an entry at the beginning and one at the
// end.
func (a Actor) ExportNumber(ctx context.Context, n Number, reason string, export func() (map[string]any, error)) error {
	if err := a.note(ctx, n.act("number.export", reason, fields{})); err != nil {
		return err
	}
	counts, err := export()
	if err != nil {
		return err
	}
	return a.noteEnd(ctx, n.act("number.export.done", reason, counts))
}

// numberPage is the number of messages that one step reads or erases.
const numberPage = 500

// EachTo calls do with the messages to a number, page by page, newest first.
func EachTo(ctx context.Context, store *lookup.Store, number sms.Number, do func([]lookup.Record) error) error {
	more := number != ""
	for before := int64(0); more; more = before > 0 {
		page, _, next, err := store.OperatorsByNumber(ctx, number, before, numberPage)
		if err == nil {
			err = do(page)
		}
		if err != nil {
			return err
		}
		before = next
	}
	return nil
}

// Erased is the result of an erasure.
type Erased struct {
	Number      string `json:"number"`        // masked
	Messages    int64  `json:"messages"`      // now without text and number
	Pending     int64  `json:"pending"`       // unchanged: not final, not processed, or with an undelivered event
	Receipts    int64  `json:"receipts"`      // deleted, that match no message; none while messages are pending
	Inbound     int64  `json:"inbound"`       // MO messages, deleted
	Binds       int64  `json:"binds"`         // receipts and MOs that waited for binds of customers, deleted
	Events      int64  `json:"events"`        // webhooks about MO and purged messages, now without number and text
	TestCodes   int64  `json:"test_codes"`    // one-time codes, deleted
	Verified    int64  `json:"verifications"` // that have ended, deleted
	TestNumbers int64  `json:"test_numbers"`  // of accounts, unchanged
	Contacts    int64  `json:"contacts"`      // deleted
	Exports     int64  `json:"exports"`       // files of all companies, deleted: each may have the number
}

// EraseNumber removes the texts of final messages to a number and obscures it in them, as much as it can: it returns
// the counts with any error. It can run again, and must if messages were pending. Entries at the beginning and at the
// end have the reason and the counts.
func (a Actor) EraseNumber(ctx context.Context, n Number, reason string) (done Erased, err error) {
	if err := a.note(ctx, n.act("number.erase", reason, fields{})); err != nil {
		return done, err
	}
	done.Number = n.written().Masked()
	err = a.erase(ctx, n, &done)
	return done,
		errors.Join(
			err, a.noteEnd(ctx, n.act("number.erase.done", reason, fields{"messages": done.Messages, "pending": done.Pending,
				"receipts": done.Receipts, "inbound": done.Inbound, "binds": done.Binds, "events": done.Events,
				"test_codes": done.TestCodes, "verifications": done.Verified, "contacts": done.Contacts, "exports": done.Exports})))
}

func (a Actor) erase(ctx context.Context, about Number, done *Erased) error {
	number, obscured, store := about.Number, about.written().Obscured(), retention.New(a.Many)
	err := EachTo(ctx, lookup.New(a.Many), number, func(page []lookup.Record) error {
		var ids []int64
		for _, r := range page {
			ids = append(ids, r.ID)
		}
		erased, err := store.Erase(ctx, number, ids, func(tx pgx.Tx, final []retention.Ref) ([]int64, error) {
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
		return err
	}
	if done.Pending == 0 { // else a receipt may still settle one of them
		if err := store.EraseReferences(ctx, number); err != nil {
			return err
		}
		if done.Receipts, err = receipts.Erase(ctx, a.Many, number); err != nil {
			return err
		}
	}
	upTo, err := store.PurgedUpTo(ctx)
	if err != nil {
		return err
	}
	var gone Erased
	if err := pgx.BeginFunc(ctx, a.Many, func(tx pgx.Tx) error {
		// in its own transaction: it scans every event that outlived its message
		gone.Events, gone.Pending, err = webhooks.ErasePurged(ctx, tx, string(number), upTo, obscured)
		return err
	}); err != nil {
		return err
	}
	done.Events, done.Pending = gone.Events, done.Pending+gone.Pending
	gone = Erased{}
	err = pgx.BeginFunc(ctx, a.Many, func(tx pgx.Tx) error {
		var left int64
		gone.Inbound, left, err = a.Handsets.In(tx).EraseInbound(ctx, about.Forms, func(of []handsets.Ref) ([]int64, error) {
			subjects := make([]webhooks.Subject, len(of))
			for i, m := range of {
				subjects[i] = webhooks.Subject{CompanyID: m.CompanyID, MessageID: m.ID}
			}
			erased, pending, err := webhooks.EraseReceived(ctx, tx, subjects, about.Forms, obscured)
			gone.Events += erased
			return pending, err
		})
		gone.Pending += left
		return err
	})
	if err != nil {
		return err
	}
	done.Inbound, done.Events, done.Pending = gone.Inbound, done.Events+gone.Events, done.Pending+gone.Pending
	if done.Binds, err = binds.Erase(ctx, a.Many, about.Forms); err != nil {
		return err
	}
	if done.TestCodes, err = a.TestNumbers.ForgetCodes(ctx, number); err != nil {
		return err
	}
	if err := pgx.BeginFunc(ctx, a.Many, func(tx pgx.Tx) error {
		done.Verified, gone.Pending, err = verifications.Erase(ctx, tx, number)
		return err
	}); err != nil {
		return err
	}
	done.Pending += gone.Pending
	if number != "" {
		if done.Contacts, err = contacts.New(a.Many).Erase(ctx, number); err != nil {
			return err
		}
		left, err := a.EraseCampaigns(ctx, number)
		if err != nil {
			return err
		}
		done.Pending += left
		// last: none is written meanwhile from what is erased
		if done.Exports, err = exports.Erase(ctx, a.Many); err != nil {
			return err
		}
	}
	tests, err := a.TestNumbers.TestNumbers(ctx, number)
	done.TestNumbers = int64(len(tests))
	return err
}

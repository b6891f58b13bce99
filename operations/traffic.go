package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/contacts"
	"intumwa/dispatcher"
	"intumwa/dispatcher/recovery"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/messages"
	"intumwa/messages/rerouting"
	"intumwa/sms"
	"intumwa/webhooks"
)

// SetPaused pauses or resumes a link, and returns the state that will be reported.
func (a Actor) SetPaused(ctx context.Context, link string, paused bool) (state string, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		was, err := dispatcher.IsPaused(ctx, in.Tx, link)
		if err == nil {
			state, err = dispatcher.SetPaused(ctx, in.Tx, link, paused)
		}
		done := act{name: "link.resume", subject: "link " + link, before: fields{"paused": was},
			after: fields{"paused": paused}}
		if paused {
			done.name = "link.pause"
		}
		return done, err
	})
	return state, err
}

// NoteTrial records that a carrier's link is tried, and to which number: "" for none.
func (a Actor) NoteTrial(ctx context.Context, link string, to sms.Number) error {
	return a.note(ctx, act{name: "carrier.try", subject: "link " + link, after: fields{"to": to.Masked()}})
}

// NoteTestSend records that a message of the operator's is sent.
func (a Actor) NoteTestSend(ctx context.Context, to sms.Number, carrier, sender string) error {
	return a.note(ctx, act{name: "test_send", subject: "number " + to.Masked(),
		after: fields{"carrier": carrier, "sender": sender}})
}

// AddRoute adds a route to a company, to one of its senders if it has a name, and to one of its keys of kind SMPP if it
// has one's id. Its groups are the company's. Its answer needs a sender: that one, or the company's with the name of
// the address.
func (a Actor) AddRoute(ctx context.Context, r handsets.Route) (is handsets.Route, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		senders, err := in.senders().SendersOf(ctx, r.CompanyID)
		var company accounts.Company
		if err == nil {
			company, err = in.companies().CompanyByID(ctx, r.CompanyID)
		}
		if err == nil && r.Sender != "" && !slices.ContainsFunc(
			senders, func(s accounts.Sender) bool { return s.Name == r.Sender }) {
			err = fmt.Errorf("company %d has no sender %q", r.CompanyID, r.Sender)
		}
		if err == nil && r.Answer != "" && r.Sender == "" && !slices.ContainsFunc(senders,
			func(s accounts.Sender) bool { return handsets.Address(s.Name) == handsets.Address(r.Address) }) {
			err = fmt.Errorf("the answer has no sender: company %d has no sender %q, and the route names none", r.CompanyID,
				r.Address)
		}
		for _, group := range []int64{r.Join, r.Leave} {
			if err == nil && group != 0 {
				_, err = contacts.New(a.Pool).In(in.Tx).Group(ctx, r.CompanyID, group)
			}
		}
		if err == nil && r.Account != 0 {
			key, wrong := in.keys().SMPPKeyByID(ctx, r.Account)
			if err = wrong; err == nil && (key.Company != r.CompanyID || !key.Usable()) {
				err = fmt.Errorf("company %d has no valid key of kind SMPP with the id %d", r.CompanyID, r.Account)
			}
		}
		if err != nil {
			return act{}, err
		}
		if is, err = a.Handsets.In(in.Tx).AddRoute(ctx, r); err == nil && is.Answer != "" {
			encoding, segments := sms.Count(intake.Preview(&company, is.Answer))
			is.Encoding, is.Segments = encoding.String(), segments
		}
		return on("inbound.route_add", "route", is.ID, is.CompanyID, nil, is), err
	})
	return is, err
}

// RemoveRoute removes a route. Stored messages stay with their company.
func (a Actor) RemoveRoute(ctx context.Context, id int64) (was handsets.Route, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		was, err = a.Handsets.In(in.Tx).RemoveRoute(ctx, id)
		return on("inbound.route_remove", "route", id, was.CompanyID, was, nil), err
	})
	return was, err
}

// AddOptOut adds a number to a company's own list, unless it is there.
func (a Actor) AddOptOut(ctx context.Context, company sms.CompanyID, entry handsets.OptOut) (added bool, err error) {
	err = a.do(ctx, reads, func(in within) (done act, err error) {
		var n int64
		if err = in.companies().NoteOptOuts(ctx, int64(company)); err == nil {
			n, err = a.Handsets.In(in.Tx).OptOutWithin(ctx, company, []handsets.OptOut{entry})
		}
		if added = n > 0; added {
			done = act{name: "optout.add", subject: "number " + entry.Number.Masked(), company: int64(company),
				after: fields{"sender": entry.Sender}}
		}
		return done, err
	})
	return added, err
}

// RemoveOptOut removes a number from a company's list, if it is there.
func (a Actor) RemoveOptOut(ctx context.Context, company sms.CompanyID, number sms.Number, sender string) (
	removed bool, err error) {
	err = a.do(ctx, reads, func(in within) (done act, err error) {
		n, err := a.Handsets.In(in.Tx).OptIn(ctx, company, number, &sender)
		if removed = n > 0; removed {
			done = act{name: "optout.remove", subject: "number " + number.Masked(), company: int64(company),
				before: fields{"sender": sender}}
		}
		return done, err
	})
	return removed, err
}

// Cancelled is the result of a cancellation.
type Cancelled struct {
	Company   int64 `json:"company_id"`
	Cancelled int64 `json:"cancelled"`
	Credits   int64 `json:"credits_returned"`
	Left      int64 `json:"left"` // claimed by a dispatcher: a second cancellation catches those that come back
}

// CancelBatch stops the messages of a batch that no carrier has; see [Actor.CancelCompany].
func (a Actor) CancelBatch(ctx context.Context, id fmt.Stringer, of messages.Queued, reason string) (
	*Cancelled, error) {
	return a.cancel(ctx, of, act{name: "batch.cancel", subject: "batch " + id.String(), reason: reason})
}

// CancelCompany stops a company's messages that no carrier has. An entry at the beginning has the reason, and one at
// the end the result. The result is nil when nothing was cancelled because of an error.
func (a Actor) CancelCompany(ctx context.Context, id int64, reason string) (*Cancelled, error) {
	return a.cancel(ctx, messages.Queued{Company: id}, act{name: "company.cancel", subject: fmt.Sprintf("company %d", id),
		reason: reason})
}

func (a Actor) cancel(ctx context.Context, of messages.Queued, done act) (*Cancelled, error) {
	if a.may != nil {
		if err := a.may(ctx); err != nil {
			return nil, err
		}
	}
	done.company, done.after = of.Company, fields{"reason": done.reason}
	store := messages.New(a.Many)
	stopped, failed := settling.Cancel(ctx, a.Many, store, a.Webhooks, of,
		func(tx pgx.Tx) error { return a.record(ctx, tx, done) })
	if failed != nil && stopped.Cancelled == 0 {
		return nil, failed
	}
	left, err := store.Left(ctx, of)
	is := &Cancelled{of.Company, stopped.Cancelled, stopped.Credits, left}
	return is,
		errors.Join(failed, err, a.noteEnd(ctx, act{name: done.name + ".done", subject: done.subject, company: done.company,
			after: is}))
}

// noteEnd records the end of an act whose beginning is recorded.
func (a Actor) noteEnd(ctx context.Context, done act) error {
	return a.again(ctx, locks, func(within) (act, error) { return done, nil })
}

// UnansweredActs begins the names of decisions about unanswered messages.
const UnansweredActs = "unanswered."

// Unanswered is a decision about unanswered messages of a carrier.
type Unanswered struct {
	Carrier string
	IDs     []int64
	Reason  string
	DryRun  bool // nothing is changed
}

var errDryRun = errors.New("a dry run changes nothing")

// record returns the function that records a decision in its transaction.
func (u Unanswered) record(ctx context.Context, a Actor, as string) func(tx pgx.Tx, ids []int64) error {
	return func(tx pgx.Tx, ids []int64) error {
		switch {
		case u.DryRun:
			return errDryRun
		case len(ids) == 0:
			return nil
		}
		return a.record(ctx, tx, act{name: UnansweredActs + as, subject: "unanswered messages",
			after: fields{"reason": u.Reason, "carrier": u.Carrier, "message_ids": ids}})
	}
}

func dry(ids []int64, err error) ([]int64, error) {
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return ids, err
}

// SendUnanswered sends messages again, and returns those that it sent; in a dry run, those that it would send. taker
// returns a carrier of the configuration.
func (a Actor) SendUnanswered(ctx context.Context, u Unanswered, validity time.Duration,
	taker func(name string) rerouting.To) ([]int64, error) {
	return dry(recovery.SendUnanswered(ctx, a.Many, messages.New(a.Many), u.Carrier, u.IDs, validity, taker,
		u.record(ctx, a, "send")))
}

// Outcomes are the decisions of [Actor.SettleUnanswered].
var Outcomes = map[string]recovery.Outcome{"sent": recovery.WasSent, "failed": recovery.WasFailed,
	"cancelled": recovery.WasCancelled}

// SettleUnanswered makes messages final, as one of [Outcomes], and returns those that it made final; in a dry run,
// those that it would.
func (a Actor) SettleUnanswered(ctx context.Context, u Unanswered, as string, refund setup.Refund) ([]int64, error) {
	return dry(recovery.SettleUnanswered(ctx, a.Many, messages.New(a.Many), a.Webhooks, u.Carrier, u.IDs, Outcomes[as],
		refund, u.record(ctx, a, as)))
}

// SkipIDs lets the ids of messages and the positions of events jump ahead after a restore, and returns the last id and
// the next one.
func (a Actor) SkipIDs(ctx context.Context, ahead int64) (last, next int64, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		if last, next, err = messages.SkipIDs(ctx, in.Tx, ahead); err == nil {
			err = webhooks.SkipPositions(ctx, in.Tx)
		}
		return act{name: "database.restored", subject: "message ids", before: fields{"next": last + 1},
			after: fields{"next": next}}, err
	})
	return last, next, err
}

// QuarantinePending holds the messages that carriers may have got since the backup, and returns how many; see
// [recovery.QuarantinePending].
func (a Actor) QuarantinePending(ctx context.Context, carriers []setup.Carrier, refund setup.Refund, due time.Time) (
	n int64, err error) {
	taken, err := recovery.QuarantinePending(ctx, a.Many, messages.New(a.Many), a.Webhooks, carriers, refund, due)
	for _, some := range taken {
		n += some
	}
	return n, errors.Join(err, a.note(ctx, act{name: "database.restored.held", subject: "messages", after: taken}))
}

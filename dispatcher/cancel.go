package dispatcher

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

// cancelAtOnce is how many messages one transaction cancels.
const cancelAtOnce = 500

// Cancellation is what became of messages that an operator stopped.
type Cancellation struct {
	Cancelled int64 // messages that failed now, with the reason cancelled
	Credits   int64 // of these, given back or written down to be
}

// Cancel stops what has not been handed to any carrier, what waits for its time first: the messages fail with the reason cancelled, their companies are
// told as of every failure, and unless refund is RefundNever their credits come back, each once, in the same transaction.
// What a dispatcher has in flight at this moment is not stopped. begun is called in the first transaction, to record who did
// it; nil: nobody asks. It may be called again, also after an error: what is cancelled stays so.
func Cancel(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks, q messages.Queued, refund Refund,
	begun func(tx pgx.Tx) error) (done Cancellation, err error) {
	for phase, find := range []func(context.Context, pgx.Tx, messages.Queued, int64, int) ([]messages.Final, int64, error){
		store.CancelledScheduled, store.Cancelled,
	} {
		for after, more := int64(0), true; more; more = after > 0 {
			record := begun
			if phase > 0 || after > 0 {
				record = nil
			}
			step, next, err := cancelStep(ctx, pool, store, hooks, refund, record, func(tx pgx.Tx) ([]messages.Final, int64, error) {
				return find(ctx, tx, q, after, cancelAtOnce)
			})
			if err != nil {
				return done, err
			}
			done.Cancelled, done.Credits = done.Cancelled+step.Cancelled, done.Credits+step.Credits
			after = next
		}
	}
	return done, nil
}

// cancelStep cancels what find brings, in one transaction; record is called in it first, nil: nothing is.
func cancelStep(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks, refund Refund, record func(tx pgx.Tx) error,
	find func(tx pgx.Tx) ([]messages.Final, int64, error)) (step Cancellation, next int64, err error) {
	err = postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		step = Cancellation{} // it may be tried again
		if record != nil {
			if err := record(tx); err != nil {
				return err
			}
		}
		finals, further, err := find(tx)
		if err != nil {
			return err
		}
		next = further
		settled, err := store.Finish(ctx, tx, finals, messages.Ends{})
		if err != nil {
			return err
		}
		var refunds []billing.Debit
		var tests []billing.TestReturn
		var events []webhooks.Event
		for _, m := range settled {
			step.Cancelled++
			events = append(events, event(m))
			switch {
			case m.Carrier == sms.SandboxCarrier: // nobody paid for it
			case m.Test:
				tests = append(tests, billing.TestReturn{UserID: m.UserID, Segments: m.Segments, Ref: m.ULID})
			case refund != RefundNever:
				refunds = append(refunds, billing.Debit{CompanyID: m.CompanyID, Amount: int64(m.Segments), Ref: m.ULID})
				step.Credits += int64(m.Segments)
			}
		}
		if err := hooks.Enqueue(ctx, tx, events); err != nil {
			return err
		}
		_, err = billing.GiveBack(ctx, tx, refunds, tests)
		return err
	})
	return step, next, err
}

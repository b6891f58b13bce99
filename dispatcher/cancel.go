package dispatcher

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/webhooks"
)

// cancelAtOnce is how many messages one transaction cancels.
const cancelAtOnce = 500

// Cancellation counts the messages that Cancel stopped.
type Cancellation struct {
	Cancelled int64 // messages that failed now, with the reason cancelled
	Credits   int64 // theirs; they are back on the balance
}

// Cancel stops what has not been handed to any carrier, and what is still to be added to a batch; scheduled messages first: the messages fail with the reason
// cancelled, their companies get the events of a failure, and their credits come back, each once, in the same transaction,
// whatever billing.refund is. It waits a short while for a locked balance (billing.GiveBackNow); after that it fails. A
// message that a dispatcher has in flight at this moment is not stopped. begun is called in the first transaction, to record
// the act; it may be nil. Cancel may be called again, also after an error: what was cancelled before remains cancelled.
func Cancel(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks, q messages.Queued,
	begun func(tx pgx.Tx) error) (done Cancellation, err error) {
	if err := store.AwaitNoMore(ctx, q); err != nil {
		return done, err
	}
	for phase, find := range []func(context.Context, pgx.Tx, messages.Queued, int64, int) ([]messages.Final, int64, error){
		store.CancelledScheduled, store.Cancelled,
	} {
		for after, more := int64(0), true; more; more = after > 0 {
			record := begun
			if phase > 0 || after > 0 {
				record = nil
			}
			step, next, err := cancelStep(ctx, pool, store, hooks, record, func(tx pgx.Tx) ([]messages.Final, int64, error) {
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

// cancelStep cancels the messages that find returns, in one transaction; it calls record first, unless that is nil.
func cancelStep(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks, record func(tx pgx.Tx) error,
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
		events, refunds := follows(settled, func(messages.Settled) bool { return true })
		step.Cancelled = int64(len(settled))
		for _, back := range refunds {
			if !back.Test {
				step.Credits += back.Amount
			}
		}
		if err := hooks.Enqueue(ctx, tx, events); err != nil {
			return err
		}
		return billing.GiveBackNow(ctx, tx, refunds)
	})
	return step, next, err
}

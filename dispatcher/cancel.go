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
	Credits   int64 // refunded for them
}

// Cancel stops messages that no carrier has, scheduled ones first, and closes the batch to further messages. Each message
// fails with the reason cancelled. The same transaction sends the failure event and refunds the credits once, whatever
// billing.refund is. Cancel waits briefly for a locked balance (billing.RefundNow), then fails. It does not stop messages
// in flight. The first transaction calls begun, unless nil, to record the act. Cancel may be called again, also after an
// error: cancelled messages stay cancelled.
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

// cancelStep cancels the messages that find returns, in one transaction. It first calls record, unless nil.
func cancelStep(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks, record func(tx pgx.Tx) error,
	find func(tx pgx.Tx) ([]messages.Final, int64, error)) (step Cancellation, next int64, err error) {
	err = postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		step = Cancellation{} // after a retry
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
		return billing.RefundNow(ctx, tx, refunds)
	})
	return step, next, err
}

package settling

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing"
	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/smppserver/binds"
	"intumwa/webhooks"
)

// CancelAtOnce is how many messages one transaction cancels.
const CancelAtOnce = 500

// Cancellation counts the messages that Cancel stopped.
type Cancellation struct {
	Cancelled int64 // messages that failed now, with the reason cancelled
	Credits   int64 // refunded for them
}

// Cancel stops messages that no carrier has, and closes the batch to further messages. Each message fails with the
// reason cancelled. The same transaction sends the failure event and refunds the credits once, whatever billing.refund
// is. Cancel waits briefly for a locked balance (billing.RefundNow), then fails. It does not stop messages in flight,
// nor those that a company accepts after the call. The first transaction calls begun, unless nil, to record the act.
// Cancel may be called again, also after an error: cancelled messages stay cancelled.
func Cancel(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks, q messages.Queued,
	begun func(tx pgx.Tx) error) (done Cancellation, err error) {
	if err := store.AwaitNoMore(ctx, q); err != nil {
		return done, err
	}
	if begun != nil || q.Message != 0 {
		err := cancelStep(ctx, pool, store, hooks, &done, func(tx pgx.Tx) (finals []messages.Final, err error) {
			if begun != nil {
				err = begun(tx)
			}
			if err == nil && q.Message != 0 {
				finals, err = store.CancelledSandbox(ctx, tx, q)
			}
			return finals, err
		})
		if err != nil {
			return done, err
		}
	}
	for after, more := int64(0), true; more; {
		var ids []int64
		if ids, more, err = store.Waiting(ctx, q, after); err != nil {
			return done, err
		}
		for some := range slices.Chunk(ids, CancelAtOnce) {
			if err := cancelStep(ctx, pool, store, hooks, &done, func(tx pgx.Tx) ([]messages.Final, error) {
				scheduled, err := store.CancelledScheduled(ctx, tx, some)
				if err != nil {
					return nil, err
				}
				waiting, err := store.Cancelled(ctx, tx, some)
				return append(scheduled, waiting...), err
			}); err != nil {
				return done, err
			}
			after = some[len(some)-1]
		}
	}
	return done, nil
}

// cancelStep cancels the messages that take returns, in one transaction, and adds them to done.
func cancelStep(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks,
	done *Cancellation,
	take func(tx pgx.Tx) ([]messages.Final, error)) error {
	var step Cancellation
	err := postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		step = Cancellation{} // after a retry
		finals, err := take(tx)
		if err != nil || len(finals) == 0 {
			return err
		}
		settled, err := store.Finish(ctx, tx, finals, messages.Rows{})
		if err != nil {
			return err
		}
		events, refunds := core.Follows(settled, func(messages.Settled) bool { return true })
		step.Cancelled = int64(len(settled))
		for _, back := range refunds {
			if !back.Test {
				step.Credits += back.Amount
			}
		}
		if err := hooks.Enqueue(ctx, tx, events); err != nil {
			return err
		}
		if err := binds.Add(ctx, tx, core.ReceiptsFor(settled)); err != nil {
			return err
		}
		return billing.RefundNow(ctx, tx, refunds)
	})
	if err == nil {
		done.Cancelled, done.Credits = done.Cancelled+step.Cancelled, done.Credits+step.Credits
	}
	return err
}

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

// Cancellation is what became of messages that an operator stopped.
type Cancellation struct {
	Cancelled int64 // messages that failed now, with the reason cancelled
	Credits   int64 // of these, given back or written down to be
}

// Cancel stops what has not been handed to any carrier: the messages fail with the reason cancelled, their companies are
// told as of every failure, and unless refund is RefundNever their credits come back, each once, in the same transaction.
// What a dispatcher has in flight at this moment is not stopped. begun is called in the first transaction, to record who did
// it. It may be called again, also after an error: what is cancelled stays so.
func Cancel(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks, q messages.Queued, refund Refund,
	begun func(tx pgx.Tx) error) (done Cancellation, err error) {
	for after, first := int64(0), true; first || after > 0; first = false {
		var batch Cancellation
		var next int64
		err := postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
			batch = Cancellation{} // it may be tried again
			if first {
				if err := begun(tx); err != nil {
					return err
				}
			}
			finals, further, err := store.Cancelled(ctx, tx, q, after, cancelAtOnce)
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
				batch.Cancelled++
				events = append(events, event(m))
				switch {
				case m.Test:
					tests = append(tests, billing.TestReturn{UserID: m.UserID, Segments: m.Segments, Ref: m.ULID})
				case refund != RefundNever:
					refunds = append(refunds, billing.Debit{CompanyID: m.CompanyID, Amount: int64(m.Segments), Ref: m.ULID})
					batch.Credits += int64(m.Segments)
				}
			}
			if err := hooks.Enqueue(ctx, tx, events); err != nil {
				return err
			}
			_, err = billing.GiveBack(ctx, tx, refunds, tests)
			return err
		})
		if err != nil {
			return done, err
		}
		done.Cancelled, done.Credits = done.Cancelled+batch.Cancelled, done.Credits+batch.Credits
		after = next
	}
	return done, nil
}

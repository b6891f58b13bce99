package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/messages/receipts"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
	"intumwa/sms"
	"intumwa/webhooks"
)

// Operators' decisions on messages that a carrier may have, and on those that waited when a
// backup was made. These functions need no dispatcher, but a pool opened with BatchUpdates.

// QuarantinePending takes messages that were due at a given time off the outbox, because their
// carrier may have them. It is for a restored database, which does not show what was sent
// since the backup. Only [SendUnanswered] sends them again. A receipt that echoes
// user_message_reference settles them; the others are decided when their receipt is overdue.
// carriers are the configured ones. It returns how many messages it took, by carrier, even
// with an error; then call it again.
func QuarantinePending(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks,
	carriers []setup.Carrier, refund setup.Refund,
	due time.Time) (taken map[string]int64, err error) {
	taken = make(map[string]int64)
	names, err := outbox.New(pool).PendingCarriers(ctx)
	if err != nil {
		return taken, err
	}
	for _, name := range names {
		carrier := &setup.Carrier{Name: name} // no longer configured
		if i := slices.IndexFunc(carriers, func(c setup.Carrier) bool { return c.Name == name }); i >= 0 {
			carrier = &carriers[i]
		}
		for n := core.DecidedAtOnce; n == core.DecidedAtOnce; taken[name] += int64(n) {
			if n, err = quarantineSome(ctx, pool, store, hooks, carrier, refund, due); err != nil {
				return taken, fmt.Errorf("quarantining what waited for %s: %w", name, err)
			}
		}
	}
	return taken, nil
}

func quarantineSome(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks,
	carrier *setup.Carrier, refund setup.Refund,
	due time.Time) (n int, err error) {
	err = postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := receipts.New(carrier.Name, carrier.IDFormat).Lock(ctx, tx); err != nil {
			return err
		}
		taken, err := outbox.New(pool).TakePending(ctx, tx, carrier.Name, due, core.DecidedAtOnce)
		if n = len(taken); err != nil || n == 0 {
			return err
		}
		early, _, err := recordUnanswered(ctx, tx, carrier, taken, func(_ *outbox.Claimed, s submission.State) bool {
			return s == submission.Waiting
		})
		if err != nil {
			return err
		}
		_, _, err = core.Conclude(ctx, tx, store, hooks, refund.Pays, early, messages.Rows{})
		return err
	})
	return n, err
}

// SendUnanswered sends messages of a carrier, by id, again: the segments without an answer or
// a receipt, which the carrier may already have. Their submit records stay, so no second carrier
// gets them and they cannot be cancelled. If the carrier is retired, the one that takes over gets
// them; to returns a carrier of the configuration. It skips messages whose validity is over
// (validity, or their own), those answered meanwhile, and those of a retired carrier that no other
// takes or of which it has a segment. It returns the messages that will be sent, and calls record
// with them in the transaction. If record fails, nothing is changed, and they are returned with its
// error.
func SendUnanswered(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, carrier string, ids []int64,
	validity time.Duration,
	to func(name string) rerouting.To, record func(tx pgx.Tx, ids []int64) error) (sent []int64, err error) {
	err = decideUnanswered(ctx, pool, carrier, ids, func(tx pgx.Tx, open map[int64][]int) (err error) {
		retired, err := rerouting.Retirements(ctx, tx)
		if err != nil {
			return err
		}
		if sent, err = rerouting.New(pool).Sendable(ctx, tx, ids, validity,
			takersOf(rerouting.Successors(retired), to)); err != nil {
			return err
		}
		sent = slices.DeleteFunc(sent, func(id int64) bool { return open[id] == nil })
		if err := receipts.Overrule(ctx, tx, carrier, sent); err != nil {
			return err
		}
		again := messages.Rows{Carrier: carrier, Validity: validity}
		for _, id := range sent {
			again.Reenter = append(again.Reenter, messages.Reentry{MessageID: id})
		}
		if _, err := store.Finish(ctx, tx, nil, again); err != nil {
			return err
		}
		return record(tx, sent)
	})
	return sent, err
}

// Outcome is an operator's decision on a message without an answer.
type Outcome uint8

const (
	WasSent      Outcome = iota // delivered, according to the carrier's records
	WasFailed                   // not delivered, or unknown and to be ended
	WasCancelled                // no carrier has it: refunded, whatever billing.refund is, unless a carrier took a segment
)

// SettleUnanswered makes messages of a carrier, by id, final if a segment has neither an
// answer nor a receipt and no dispatcher works on them; their companies get the webhook. It
// skips messages answered meanwhile, and returns those that it made final. It calls record with them in the
// transaction. If record fails, nothing is changed, and they are returned with its error.
func SettleUnanswered(ctx context.Context, pool *pgxpool.Pool, store *messages.Store, hooks *webhooks.Webhooks,
	carrier string, ids []int64,
	as Outcome, refund setup.Refund, record func(tx pgx.Tx, ids []int64) error) (settled []int64, err error) {
	err = decideUnanswered(ctx, pool, carrier, ids, func(tx pgx.Tx, open map[int64][]int) error {
		final, pays := messages.Final{Status: sms.Sent, At: postgres.Now()}, refund.Pays
		switch as {
		case WasFailed:
			final.Status, final.Reason = sms.Failed, submission.ReasonNoAnswer
		case WasCancelled:
			final.Status, final.Reason = sms.Failed, messages.ReasonCancelled
			pays = func(m messages.Settled) bool { return m.Unsubmitted }
		}
		// another segment may have been refused late, and be sent again
		undecided, err := rerouting.New(pool).Undecided(ctx, tx, ids)
		if err != nil {
			return err
		}
		var finals []messages.Final
		for _, id := range undecided {
			if final.MessageID = id; open[id] != nil {
				finals = append(finals, final)
			}
		}
		done, _, err := core.Conclude(ctx, tx, store, hooks, pays, finals, core.SentRows(finals))
		if err != nil {
			return err
		}
		settled = nil // after a retry
		for _, m := range done {
			settled = append(settled, m.ID)
		}
		return record(tx, settled)
	})
	return settled, err
}

// decideUnanswered calls decide with the unanswered segments (open) of messages, under the
// carrier's lock, so that none is answered meanwhile.
func decideUnanswered(ctx context.Context, pool *pgxpool.Pool, carrier string, ids []int64,
	decide func(tx pgx.Tx, open map[int64][]int) error) error {
	err := postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
		if err := receipts.New(carrier, profile.IDAuto).Lock(ctx, tx); err != nil {
			return err
		}
		open, err := receipts.WithoutAnswer(ctx, tx, ids)
		if err != nil || len(open) == 0 {
			return err
		}
		return decide(tx, open)
	})
	if err != nil {
		return fmt.Errorf("deciding of what %s did not answer: %w", carrier, err)
	}
	return nil
}

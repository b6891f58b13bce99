package billing

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Refund refunds failed messages in the transaction in which they fail: credits, once for each message; segments of the
// test pool at each call, so call it once for each message. It never waits for a lock: a refund to a locked balance is
// stored in the same transaction and paid later by PayOwed. It returns how many messages were refunded now.
func Refund(ctx context.Context, tx pgx.Tx, refunds []Debit) (refunded int, err error) {
	return refundAll(ctx, tx, refunds, skipLocked, 0)
}

// RefundNow is Refund for a caller that reports the refund: it defers nothing. It waits up to two seconds for a
// locked balance, then returns an error (postgres.Locked); roll the transaction back.
func RefundNow(ctx context.Context, tx pgx.Tx, refunds []Debit) error {
	_, err := refundAll(ctx, tx, refunds, "", 2*time.Second)
	return err
}

// refundAll locks the balances as [Locked.lock] does, and stores the refunds that skipLocked left out.
func refundAll(ctx context.Context, tx pgx.Tx, refunds []Debit, how string, patience time.Duration) (
	refunded int, err error) {
	if len(refunds) == 0 {
		return 0, nil
	}
	b := newLocked(refunds)
	if err := b.lock(ctx, tx, how, patience); err != nil {
		return 0, err
	}
	done, err := refundedBefore(ctx, tx, refunds)
	if err != nil {
		return 0, err
	}
	var owed []Debit
	for _, r := range refunds {
		of := b.accounts[r.CompanyID]
		switch {
		case r.Amount < 1:
		case of == nil && how == skipLocked:
			owed = append(owed, r)
		case of == nil || done[r.Ref]:
		case r.Test:
			of.testUsed, of.changed = max(0, of.testUsed-r.Amount), true
		default:
			done[r.Ref] = true
			b.enter(r, r.Amount)
		}
	}
	if err := store(ctx, tx, owed); err != nil {
		return 0, err
	}
	return len(b.company), b.write(ctx, tx, KindRefund)
}

// refundedBefore returns the messages with an earlier refund. Their balances are locked: no other transaction adds one.
func refundedBefore(ctx context.Context, tx pgx.Tx, refunds []Debit) (map[[16]byte]bool, error) {
	refs := make([][16]byte, len(refunds))
	for i, r := range refunds {
		refs[i] = r.Ref
	}
	done := make(map[[16]byte]bool)
	var ref [16]byte
	err := postgres.Each(ctx, tx, "looking up refunds", []any{&ref}, func() error { done[ref] = true; return nil },
		`SELECT ref FROM ledger WHERE kind = 'refund' AND ref = ANY($1)`, refs)
	return done, err
}

// store writes refunds for PayOwed.
func store(ctx context.Context, tx pgx.Tx, owed []Debit) error {
	if len(owed) == 0 {
		return nil
	}
	var refs [][16]byte
	var companies, segments []int64
	var tests []bool
	for _, r := range owed {
		refs = append(refs, r.Ref)
		companies, segments, tests = append(companies, r.CompanyID), append(segments, r.Amount), append(tests, r.Test)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO returns (ref, company_id, segments, test)
		SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::boolean[]) ORDER BY 1 ON CONFLICT DO NOTHING`, refs,
		companies, segments, tests); err != nil {
		return fmt.Errorf("storing deferred refunds: %w", err)
	}
	return nil
}

const (
	// payLockTimeout is how long PayOwed waits for one balance.
	payLockTimeout = 200 * time.Millisecond
	// maxLocked is after how many locked balances PayOwed ends; payAtOnce is how many messages one transaction refunds.
	maxLocked = 5
	payAtOnce = 5_000
	// payFor is how long PayOwed works, little more.
	payFor = 250 * time.Millisecond
)

// PayOwed pays the deferred refunds. It returns the number of refunded messages, and of balances that other
// transactions have locked. After five of those, or a quarter of a second, it leaves the rest to the next call.
func (l *Ledger) PayOwed(ctx context.Context) (refunded, locked int, err error) {
	companies, err := postgres.All(ctx, l.pool, "reading deferred refunds", pgx.RowTo[int64],
		`SELECT DISTINCT company_id FROM returns`)
	if err != nil {
		return 0, 0, err
	}
	until := time.Now().Add(payFor)
	for _, company := range companies { // in random order: locked ones do not stop the same others each time
		n, err := l.pay(ctx, company, until)
		switch refunded += n; {
		case postgres.Locked(err):
			if locked++; locked == maxLocked {
				return refunded, locked, nil
			}
		case err != nil:
			return refunded, locked, err
		case time.Now().After(until):
			return refunded, locked, nil
		}
	}
	return refunded, locked, nil
}

// pay pays the deferred refunds of one company. After a time it begins no other transaction.
func (l *Ledger) pay(ctx context.Context, company int64, until time.Time) (refunded int, err error) {
	for {
		var n, now int
		err := postgres.InTx(ctx, l.pool, func(tx pgx.Tx) error {
			owed, err := postgres.All(ctx, tx, "reading what is owed", pgx.RowToStructByPos[Debit],
				`DELETE FROM returns WHERE ref IN (
					SELECT ref FROM returns WHERE company_id = $1 ORDER BY ref LIMIT $2 FOR UPDATE SKIP LOCKED)
				RETURNING company_id, segments, ref, 0, test`, company, payAtOnce)
			if err != nil {
				return err
			}
			n = len(owed)
			now, err = refundAll(ctx, tx, owed, "", payLockTimeout)
			return err
		})
		if err != nil {
			return refunded, fmt.Errorf("paying deferred refunds: %w", err)
		}
		if refunded += now; n < payAtOnce || time.Now().After(until) {
			return refunded, nil
		}
	}
}

// Refunded returns the credits that were refunded for messages, by their ULIDs. Those that PayOwed has yet to pay do
// not count.
func (l *Ledger) Refunded(ctx context.Context, messages [][16]byte) (map[[16]byte]int64, error) {
	credits := make(map[[16]byte]int64)
	var ref [16]byte
	var amount int64
	return credits, postgres.Each(ctx, l.pool, "reading refunds", []any{&ref, &amount},
		func() error { credits[ref] = amount; return nil },
		`SELECT ref, amount FROM ledger WHERE kind = 'refund' AND ref = ANY($1)`, messages)
}

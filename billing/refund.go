package billing

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"intumwa/internal/postgres"
)

// TestReturn is the segments that a failed test message returns to its account's pool.
type TestReturn struct {
	UserID   int64
	Segments int
	Ref      [16]byte // ULID of the message
}

// GiveBack gives back what failed messages cost: credits to their companies, as
// Refund does, and segments to test pools. It never waits for a lock: returns to a
// balance or pool that another transaction has locked are stored in the same
// transaction and paid later by PayOwed. Call it once for each message, in the
// transaction that makes it failed. It returns how many messages were refunded now.
func GiveBack(ctx context.Context, tx pgx.Tx, refunds []Debit, tests []TestReturn) (refunded int, err error) {
	return giveBack(ctx, tx, refunds, tests, skipLocked)
}

// GiveBackNow is GiveBack for a caller that reports what came back: it defers nothing. It waits up to two seconds for a
// locked balance or test pool; after that it returns an error (postgres.Locked), and the transaction must be rolled back.
func GiveBackNow(ctx context.Context, tx pgx.Tx, refunds []Debit, tests []TestReturn) error {
	_, err := giveBack(ctx, tx, refunds, tests, "")
	return err
}

// giveBack locks with skipLocked, or, with "", waits for up to refundLockTimeout.
func giveBack(ctx context.Context, tx pgx.Tx, refunds []Debit, tests []TestReturn, how string) (refunded int, err error) {
	if len(refunds) == 0 && len(tests) == 0 {
		return 0, nil
	}
	var companies, users []int64
	for _, t := range tests {
		users = append(users, t.UserID)
	}
	for _, r := range refunds {
		companies = append(companies, r.CompanyID)
	}
	companies, users = sortedUnique(companies), sortedUnique(users)
	credits, used := make(map[int64]int64), make(map[int64]int64)
	batch := &pgx.Batch{}
	if how != skipLocked {
		batch.Queue(`SET LOCAL lock_timeout = '` + refundLockTimeout + `'`)
	}
	if len(users) > 0 {
		lockPools(batch, users, how, used)
	}
	if len(companies) > 0 {
		lockBalances(batch, companies, how, credits)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return 0, fmt.Errorf("locking balances and test pools for a refund: %w", err)
	}

	var back amounts
	var owed deferredReturns
	for _, t := range tests {
		if _, free := used[t.UserID]; free {
			back.add(t.UserID, int64(t.Segments))
		} else {
			owed.add(t.Ref, nil, &t.UserID, int64(t.Segments))
		}
	}
	if err := returnTests(ctx, tx, back); err != nil {
		return 0, err
	}
	free := refunds[:0:0]
	for _, r := range refunds {
		switch _, ok := credits[r.CompanyID]; {
		case ok:
			free = append(free, r)
		case r.Amount > 0:
			owed.add(r.Ref, &r.CompanyID, nil, r.Amount)
		}
	}
	if err := owed.write(ctx, tx); err != nil {
		return 0, err
	}
	return refund(ctx, tx, free, credits)
}

const (
	skipLocked = "SKIP LOCKED"
	// refundLockTimeout is how long GiveBackNow waits for each lock.
	refundLockTimeout = "2s"
)

// deferredReturns are rows of the table returns: refunds that PayOwed pays later.
type deferredReturns struct {
	refs            []pgtype.UUID
	companies, user []*int64
	segments        []int64
}

func (r *deferredReturns) add(ref [16]byte, company, user *int64, segments int64) {
	r.refs = append(r.refs, pgtype.UUID{Bytes: ref, Valid: true})
	r.companies, r.user, r.segments = append(r.companies, company), append(r.user, user), append(r.segments, segments)
}

func (r *deferredReturns) write(ctx context.Context, tx pgx.Tx) error {
	if len(r.refs) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `INSERT INTO returns (ref, company_id, user_id, segments)
		SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[]) ON CONFLICT DO NOTHING`,
		r.refs, r.companies, r.user, r.segments); err != nil {
		return fmt.Errorf("storing deferred refunds: %w", err)
	}
	return nil
}

const (
	// payLockTimeout is how long PayOwed waits for the lock of one balance or pool.
	payLockTimeout = "200ms"
	// maxHeld is how many locked balances and pools PayOwed meets before it ends;
	// payAtOnce is how many messages one transaction pays.
	maxHeld   = 5
	payAtOnce = 5_000
)

// PayOwed pays the returns that GiveBack had to defer. It returns how many messages
// were refunded to companies, and how many balances and pools are still locked by
// other transactions; after five of those it ends and leaves the rest to the next
// call.
func (l *Ledger) PayOwed(ctx context.Context) (refunded, held int, err error) {
	rows, err := l.pool.Query(ctx, `SELECT DISTINCT coalesce(company_id, 0), coalesce(user_id, 0) FROM returns`)
	if err != nil {
		return 0, 0, fmt.Errorf("reading deferred refunds: %w", err)
	}
	type payee struct{ Company, User int64 } // one of the two
	payees, err := pgx.CollectRows(rows, pgx.RowToStructByPos[payee])
	if err != nil {
		return 0, 0, fmt.Errorf("reading deferred refunds: %w", err)
	}
	for _, p := range payees { // in no fixed order: if many are locked, other ones come first the next time
		n, err := l.pay(ctx, p.Company, p.User)
		switch refunded += n; {
		case postgres.Locked(err):
			if held++; held == maxHeld {
				return refunded, held, nil
			}
		case err != nil:
			return refunded, held, err
		}
	}
	return refunded, held, nil
}

// pay pays the deferred returns of one company or one account.
func (l *Ledger) pay(ctx context.Context, company, user int64) (refunded int, err error) {
	for n := payAtOnce; n == payAtOnce; {
		var now int
		err := postgres.InTx(ctx, l.pool, func(tx pgx.Tx) error {
			now = 0 // of a try before
			if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '`+payLockTimeout+`'`); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, `SELECT ref, segments FROM returns WHERE coalesce(company_id, 0) = $1 AND coalesce(user_id, 0) = $2
				ORDER BY ref LIMIT $3 FOR UPDATE SKIP LOCKED`, company, user, payAtOnce)
			if err != nil {
				return err
			}
			var refs []pgtype.UUID
			var debits []Debit
			var back amounts
			var ref pgtype.UUID
			var segments int64
			if _, err := pgx.ForEachRow(rows, []any{&ref, &segments}, func() error {
				refs = append(refs, ref)
				if user != 0 {
					back.add(user, segments)
				} else {
					debits = append(debits, Debit{CompanyID: company, Amount: segments, Ref: ref.Bytes})
				}
				return nil
			}); err != nil {
				return err
			}
			if n = len(refs); n == 0 {
				return nil
			}
			if err := returnTests(ctx, tx, back); err != nil {
				return err
			}
			if now, err = Refund(ctx, tx, debits); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `DELETE FROM returns WHERE ref = ANY($1)`, refs)
			return err
		})
		if err != nil {
			return refunded, fmt.Errorf("paying deferred refunds: %w", err)
		}
		refunded += now
	}
	return refunded, nil
}

// Refund gives back what messages cost, each once: a message that was refunded before
// is skipped. It waits for locked balances, and returns how many messages were
// refunded now.
func Refund(ctx context.Context, tx pgx.Tx, refunds []Debit) (int, error) {
	if len(refunds) == 0 {
		return 0, nil
	}
	var companies []int64
	for _, r := range refunds {
		companies = append(companies, r.CompanyID)
	}
	balances, err := lock(ctx, tx, sortedUnique(companies))
	if err != nil {
		return 0, err
	}
	return refund(ctx, tx, refunds, balances)
}

// refund is Refund for balances that this transaction has locked.
func refund(ctx context.Context, tx pgx.Tx, refunds []Debit, balances map[int64]int64) (int, error) {
	if len(refunds) == 0 {
		return 0, nil
	}
	refs := make([]pgtype.UUID, len(refunds))
	for i, r := range refunds {
		refs[i] = pgtype.UUID{Bytes: r.Ref, Valid: true}
	}
	// No other transaction can write refunds now: it would need the locks of the balances.
	rows, err := tx.Query(ctx, `SELECT ref FROM ledger WHERE kind = 'refund' AND ref = ANY($1)`, refs)
	if err != nil {
		return 0, fmt.Errorf("looking up refunds: %w", err)
	}
	done := make(map[[16]byte]bool)
	var ref [16]byte
	if _, err := pgx.ForEachRow(rows, []any{&ref}, func() error { done[ref] = true; return nil }); err != nil {
		return 0, fmt.Errorf("looking up refunds: %w", err)
	}
	var entries entries
	for _, r := range refunds {
		have, ok := balances[r.CompanyID]
		if !ok || r.Amount < 1 || done[r.Ref] {
			continue
		}
		done[r.Ref] = true
		balances[r.CompanyID] = have + r.Amount
		entries.add(r.CompanyID, r.Amount, have+r.Amount, r.Ref)
	}
	if len(entries.company) == 0 {
		return 0, nil
	}
	if err := entries.write(ctx, tx, "refund", balances); err != nil {
		return 0, err
	}
	return len(entries.company), nil
}

// Held returns which of companies and users have a balance or a test pool that another
// transaction has locked now.
func Held(ctx context.Context, tx pgx.Tx, companies, users []int64) (heldCompanies, heldUsers map[int64]bool, err error) {
	heldCompanies, heldUsers = make(map[int64]bool), make(map[int64]bool)
	note := func(held map[int64]bool) func(pgx.Rows) error {
		return func(rows pgx.Rows) error {
			var id int64
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error { held[id] = true; return nil })
			return err
		}
	}
	// A row is held if it exists but SKIP LOCKED leaves it out.
	batch := &pgx.Batch{}
	batch.Queue(`WITH free AS MATERIALIZED (SELECT user_id FROM test_pools WHERE user_id = ANY($1) ORDER BY user_id FOR UPDATE SKIP LOCKED)
		SELECT user_id FROM test_pools WHERE user_id = ANY($1) AND user_id NOT IN (SELECT user_id FROM free)`, sortedUnique(slices.Clone(users))).Query(note(heldUsers))
	batch.Queue(`WITH free AS MATERIALIZED (SELECT company_id FROM balances WHERE company_id = ANY($1) ORDER BY company_id FOR UPDATE SKIP LOCKED)
		SELECT company_id FROM balances WHERE company_id = ANY($1) AND company_id NOT IN (SELECT company_id FROM free)`, sortedUnique(slices.Clone(companies))).Query(note(heldCompanies))
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, fmt.Errorf("looking for locked balances and test pools: %w", err)
	}
	return heldCompanies, heldUsers, nil
}

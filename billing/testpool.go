package billing

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// TestSpend is the segments that one test message takes from an account's pool.
type TestSpend struct {
	UserID   int64
	Segments int // at least 1
}

// TestReceipt is the result of one TestSpend.
type TestReceipt struct {
	Admitted  bool
	Remaining int // segments left of the quota after it; what is left when not admitted
}

// SpendTests takes segments of accounts' test pools (rule api 4.4.5) for many test
// messages at once, in two round trips: it locks the pools in the order of user ids,
// admits the messages of each account in the given order, and skips those that exceed
// the rest of the quota. It returns one TestReceipt for each TestSpend, in the same
// order.
func SpendTests(ctx context.Context, tx pgx.Tx, spends []TestSpend, quota int) ([]TestReceipt, error) {
	if len(spends) == 0 {
		return nil, nil
	}
	var users []int64
	for _, s := range spends {
		users = append(users, s.UserID)
	}
	users = sortedUnique(users)
	used := make(map[int64]int64, len(users))
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO test_pools (user_id) SELECT u FROM unnest($1::bigint[]) u ORDER BY u ON CONFLICT DO NOTHING`, users)
	lockPools(batch, users, "", used)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("locking test pools: %w", err)
	}

	receipts := make([]TestReceipt, len(spends))
	var spent amounts
	for i, s := range spends {
		have := int64(quota) - used[s.UserID]
		if s.Segments < 1 || int64(s.Segments) > have {
			receipts[i] = TestReceipt{Remaining: int(max(have, 0))}
			continue
		}
		used[s.UserID] += int64(s.Segments)
		receipts[i] = TestReceipt{Admitted: true, Remaining: int(have) - s.Segments}
		spent.add(s.UserID, int64(s.Segments))
	}
	if len(spent.owners) == 0 {
		return receipts, nil
	}
	batch = &pgx.Batch{}
	batch.Queue(`UPDATE test_pools p SET used = p.used + u.n FROM unnest($1::bigint[], $2::bigint[]) u(user_id, n)
		WHERE p.user_id = u.user_id`, spent.owners, spent.n)
	if err := postgres.Later(ctx, tx, "taking segments of test pools", batch); err != nil {
		return nil, err
	}
	return receipts, nil
}

// returnTests returns segments to pools that this transaction has locked.
func returnTests(ctx context.Context, tx pgx.Tx, back amounts) error {
	if len(back.owners) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE test_pools p SET used = greatest(p.used - u.n, 0) FROM unnest($1::bigint[], $2::bigint[]) u(user_id, n)
		WHERE p.user_id = u.user_id`, back.owners, back.n); err != nil {
		return fmt.Errorf("returning segments to test pools: %w", err)
	}
	return nil
}

// lockPools queues the statement that locks pools in the order of user ids and reads
// into used how many segments of each are used. With how "SKIP LOCKED", pools that
// another transaction has locked are left out.
func lockPools(batch *pgx.Batch, users []int64, how string, used map[int64]int64) {
	batch.Queue(`SELECT user_id, used FROM test_pools WHERE user_id = ANY($1) ORDER BY user_id FOR UPDATE `+how, users).
		Query(func(rows pgx.Rows) error {
			var id, n int64
			_, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error { used[id] = n; return nil })
			return err
		})
}

// amounts are sums by owner, as columns for unnest.
type amounts struct{ owners, n []int64 }

func (a *amounts) add(whose, n int64) {
	if i := slices.Index(a.owners, whose); i >= 0 {
		a.n[i] += n
		return
	}
	a.owners, a.n = append(a.owners, whose), append(a.n, n)
}

// sortedUnique returns the ids in the order in which their rows are locked, each once.
func sortedUnique(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// TestUsed returns how many segments of an account's test pool are used: those of test
// messages that are sent or pending.
func (l *Ledger) TestUsed(ctx context.Context, userID int64) (segments int, err error) {
	err = l.pool.QueryRow(ctx, `SELECT coalesce((SELECT used FROM test_pools WHERE user_id = $1), 0)`, userID).Scan(&segments)
	if err != nil {
		return 0, fmt.Errorf("reading the test pool of user %d: %w", userID, err)
	}
	return segments, nil
}

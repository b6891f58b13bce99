package billing

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// SpendTest reserves segments of an account's test pool (contract 4.4.5) for a
// test message. It answers what is left of quota afterwards, or admitted =
// false when there is not enough left; then nothing was changed.
func SpendTest(ctx context.Context, tx pgx.Tx, userID int64, segments, quota int) (remaining int, admitted bool, err error) {
	if _, err := tx.Exec(ctx, `INSERT INTO test_pools (user_id) VALUES ($1) ON CONFLICT DO NOTHING`, userID); err != nil {
		return 0, false, fmt.Errorf("opening the test pool of user %d: %w", userID, err)
	}
	var used int
	err = tx.QueryRow(ctx, `SELECT used FROM test_pools WHERE user_id = $1 FOR UPDATE`, userID).Scan(&used)
	if err != nil {
		return 0, false, fmt.Errorf("locking the test pool of user %d: %w", userID, err)
	}
	if used+segments > quota {
		return max(quota-used, 0), false, nil
	}
	if _, err := tx.Exec(ctx, `UPDATE test_pools SET used = used + $2 WHERE user_id = $1`, userID, segments); err != nil {
		return 0, false, fmt.Errorf("spending of the test pool of user %d: %w", userID, err)
	}
	return quota - used - segments, true, nil
}

// ReturnTest gives the segments of a failed test message back to its pool. The
// caller calls it once a message, in the transaction that makes it failed.
func ReturnTest(ctx context.Context, tx pgx.Tx, userID int64, segments int) error {
	if _, err := tx.Exec(ctx, `UPDATE test_pools SET used = greatest(used - $2, 0) WHERE user_id = $1`, userID, segments); err != nil {
		return fmt.Errorf("giving back to the test pool of user %d: %w", userID, err)
	}
	return nil
}

// TestUsed answers how many segments of an account's test pool are used: those
// of test messages that are sent or still pending.
func (l *Ledger) TestUsed(ctx context.Context, userID int64) (segments int, err error) {
	err = l.pool.QueryRow(ctx, `SELECT coalesce((SELECT used FROM test_pools WHERE user_id = $1), 0)`, userID).Scan(&segments)
	if err != nil {
		return 0, fmt.Errorf("reading the test pool of user %d: %w", userID, err)
	}
	return segments, nil
}

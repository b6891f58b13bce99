package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// sandboxDay is how long a sandbox message counts against its user's quota.
const sandboxDay = 24 * time.Hour

// SandboxUsed returns how many sandbox messages each of users has had within a day; users without one are left out.
func (s *Store) SandboxUsed(ctx context.Context, tx pgx.Tx, users []int64) (map[int64]int, error) {
	used := make(map[int64]int, len(users))
	var user int64
	var n int
	return used, postgres.Each(ctx, tx, "counting messages of the sandbox", []any{&user, &n},
		func() error { used[user] = n; return nil },
		`SELECT user_id, count(*) FROM sandbox
		WHERE user_id = ANY($1) AND created_at > now() - $2::interval GROUP BY user_id`, users, sandboxDay)
}

// SandboxDue takes up to limit sandbox messages whose time has come and returns their verdicts, for Finish in the same
// transaction.
func (s *Store) SandboxDue(ctx context.Context, tx pgx.Tx, limit int) ([]Final, error) {
	return postgres.All(ctx, tx, "taking messages of the sandbox", func(row pgx.CollectableRow) (f Final, err error) {
		err = row.Scan(&f.MessageID, &f.Status, &f.At, &f.Reason)
		return f, err
	}, `
		WITH due AS (
			SELECT message_id FROM sandbox WHERE NOT settled AND due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
		)
		UPDATE sandbox s SET settled = true FROM due WHERE s.message_id = due.message_id
		RETURNING s.message_id, s.status, now(), s.reason`, limit)
}

// ForgetSandbox deletes rows of settled messages that no quota counts any more, up to 20,000 a call, and returns how
// many.
func (s *Store) ForgetSandbox(ctx context.Context) (int64, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM sandbox WHERE message_id IN (
		SELECT message_id FROM sandbox WHERE settled AND created_at < now() - $1::interval
		ORDER BY created_at LIMIT 20000 FOR UPDATE SKIP LOCKED)`, sandboxDay)
	if err != nil {
		return 0, fmt.Errorf("forgetting messages of the sandbox: %w", err)
	}
	return tag.RowsAffected(), nil
}

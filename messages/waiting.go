package messages

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Queues counts by company what no carrier has yet, of all that waits.
func (s *Store) Queues(ctx context.Context) (map[int64]int64, error) {
	rows, err := s.pool.Query(ctx, `SELECT company_id, count(*) FROM outbox GROUP BY company_id`)
	if err != nil {
		return nil, fmt.Errorf("counting what companies have queued: %w", err)
	}
	queues := make(map[int64]int64)
	var company, n int64
	if _, err := pgx.ForEachRow(rows, []any{&company, &n}, func() error { queues[company] = n; return nil }); err != nil {
		return nil, fmt.Errorf("counting what companies have queued: %w", err)
	}
	return queues, nil
}

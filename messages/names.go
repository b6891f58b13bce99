package messages

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"
)

// ULIDs are the ULIDs of messages by their ids, for a log. Unknown ids are not
// in the answer.
func (s *Store) ULIDs(ctx context.Context, ids []int64) (map[int64]ulid.ULID, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, ulid FROM messages WHERE id = ANY($1)`, ids)
	if err != nil {
		return nil, fmt.Errorf("looking up the ULIDs of %d messages: %w", len(ids), err)
	}
	names := make(map[int64]ulid.ULID, len(ids))
	var id int64
	var name pgtype.UUID
	if _, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error {
		names[id] = name.Bytes
		return nil
	}); err != nil {
		return nil, fmt.Errorf("looking up the ULIDs of %d messages: %w", len(ids), err)
	}
	return names, nil
}

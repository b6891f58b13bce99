package messages

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/sms"
)

// Filter says which of a company's messages a list has; a zero field all.
type Filter struct {
	Status *sms.Status
	Batch  *ulid.ULID
	Number sms.Number
	From   time.Time // created then or later
	To     time.Time // created before then
}

// scanned is how many of a company's messages one page looks through: what a
// page costs is bounded however rare a filter makes its messages.
const scanned = 20_000

// skew bounds how far messages that were recorded at the same time may lie
// apart: ids are given out during a transaction, created_at is its start.
const skew = time.Minute

// List returns up to limit of a company's messages, the newest first, from the
// first with an id below before (0: the newest there is) on, and where to go
// on from: 0 when there are no more. A page that a filter makes rare may have
// fewer than limit messages, even none, and still go on.
func (s *Store) List(ctx context.Context, company int64, f Filter, before int64, limit int) (page []Record, next int64, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	if f.Batch != nil {
		return s.listBatch(ctx, company, f, before, limit)
	}
	after := int64(0)
	if !f.To.IsZero() {
		bound, err := s.idAt(ctx, f.To.Add(skew))
		if err != nil {
			return nil, 0, err
		}
		before = min(before, bound)
	}
	if !f.From.IsZero() {
		if after, err = s.idAt(ctx, f.From.Add(-skew)); err != nil {
			return nil, 0, err
		}
	}
	var last, seen int64 // how far the page looked
	rows, err := s.pool.Query(ctx, `
		WITH reach AS (
			SELECT id FROM messages WHERE company_id = $1 AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT $4
		)
		SELECT coalesce(min(id), 0), count(*) FROM reach`, company, before, after, scanned)
	if err != nil {
		return nil, 0, fmt.Errorf("listing messages: %w", err)
	}
	if _, err := pgx.ForEachRow(rows, []any{&last, &seen}, func() error { return nil }); err != nil {
		return nil, 0, fmt.Errorf("listing messages: %w", err)
	}
	if seen == 0 {
		return nil, 0, nil
	}
	page, err = s.records(ctx, `m.company_id = $1 AND m.id < $2 AND m.id >= $3`, company, before, last, f, limit)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case len(page) > limit:
		page = page[:limit]
		return page, page[limit-1].ID, nil
	case seen == scanned:
		return page, last, nil
	}
	return page, 0, nil
}

// listBatch lists the messages of one batch, which are few.
func (s *Store) listBatch(ctx context.Context, company int64, f Filter, before int64, limit int) (page []Record, next int64, err error) {
	var batch int64
	err = s.pool.QueryRow(ctx, `SELECT id FROM batches WHERE ulid = $1 AND company_id = $2`, uuid(*f.Batch), company).Scan(&batch)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("looking up a batch: %w", err)
	}
	page, err = s.records(ctx, `m.company_id = $1 AND m.batch_id = $3 AND m.id < $2`, company, before, batch, f, limit)
	if err != nil || len(page) <= limit {
		return page, 0, err
	}
	page = page[:limit]
	return page, page[limit-1].ID, nil
}

// records reads one message more than limit, so that it shows whether there
// are more. The condition uses $1 to $3.
func (s *Store) records(ctx context.Context, condition string, company, before, third int64, f Filter, limit int) ([]Record, error) {
	args := []any{company, before, third, limit + 1}
	with := func(filter string, arg any) {
		args = append(args, arg)
		condition += fmt.Sprintf(filter, len(args))
	}
	if f.Status != nil {
		with(` AND m.status = $%d`, int16(*f.Status))
	}
	if f.Number != "" {
		with(` AND m.phone_number = $%d`, string(f.Number))
	}
	if !f.From.IsZero() {
		with(` AND m.created_at >= $%d`, f.From)
	}
	if !f.To.IsZero() {
		with(` AND m.created_at < $%d`, f.To)
	}
	rows, err := s.pool.Query(ctx, `SELECT `+recordColumns+` WHERE `+condition+` ORDER BY m.id DESC LIMIT $4`, args...)
	if err != nil {
		return nil, fmt.Errorf("listing messages: %w", err)
	}
	page, err := pgx.CollectRows(rows, scanRecord)
	if err != nil {
		return nil, fmt.Errorf("listing messages: %w", err)
	}
	return page, nil
}

// idAt answers an id that divides the messages created before a time from the
// others, give or take skew. There is no index on created_at, since ids grow
// with it: the boundary is found by halving the range of ids, in some forty
// reads of one row by its key.
func (s *Store) idAt(ctx context.Context, at time.Time) (int64, error) {
	var low, high int64 // the boundary is in [low, high]
	err := s.pool.QueryRow(ctx, `SELECT coalesce((SELECT id FROM messages ORDER BY id LIMIT 1), 0),
		coalesce((SELECT id FROM messages ORDER BY id DESC LIMIT 1), 0) + 1`).Scan(&low, &high)
	if err != nil {
		return 0, fmt.Errorf("looking for the messages of a time: %w", err)
	}
	for low < high {
		middle := low + (high-low)/2
		var id int64
		var created time.Time
		err := s.pool.QueryRow(ctx, `SELECT id, created_at FROM messages WHERE id >= $1 ORDER BY id LIMIT 1`, middle).Scan(&id, &created)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			high = middle
		case err != nil:
			return 0, fmt.Errorf("looking for the messages of a time: %w", err)
		case created.Before(at):
			low = id + 1
		default:
			high = middle
		}
	}
	return low, nil
}

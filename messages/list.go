package messages

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Filter selects a company's messages; a zero field selects all.
type Filter struct {
	Status *sms.Status
	Batch  *ulid.ULID
	Number sms.Number
	From   time.Time // created: inclusive
	To     time.Time // exclusive

	Reference  string // the customer's own name, exactly
	CostCenter string // the customer's own label, exactly
}

// narrows reports whether the filter excludes messages or, with a Reference or a CostCenter, excludes some of those that
// have it, which are together in an index.
func (f *Filter) narrows() bool {
	return f.Reference != "" && f.CostCenter != "" || f.Status != nil || f.Batch != nil || f.Number != "" || !f.From.IsZero() || !f.To.IsZero()
}

// scanned is how many of a company's messages one page reads at most, even if few match the filter.
const scanned = 5_000

// skew bounds how far ids and created_at may be out of order: an id is drawn during its transaction, created_at is the
// transaction's start.
const skew = time.Minute

// List returns up to limit of a company's messages, the newest first, with ids below before (0: from the newest), and
// the next page's before, 0 for none. When few messages match the filter, a page may have fewer than limit messages,
// even none, and still have a next one; FilterNumbers' filters find the messages to a number however old they are.
func (s *Store) List(ctx context.Context, of sms.CompanyID, f Filter, before int64, limit int) (page []Record, next int64, err error) {
	company := int64(of)
	if !of.Valid() {
		return nil, 0, nil
	}
	if before == 0 {
		before = math.MaxInt64
	}
	if f.Batch != nil {
		return s.listBatch(ctx, company, f, before, limit)
	}
	after, until, err := s.reach(ctx, f)
	if err != nil {
		return nil, 0, err
	}
	before = min(before, until)
	last, more := after, false // how far the page reads, and whether older ones follow
	if f.Number != "" {
		var floor int64
		if before, floor, err = s.skip(ctx, of, f.Number, before); err != nil {
			return nil, 0, err
		}
		if floor > after {
			last, more = floor, true
		}
	}
	theirs := ofCompany
	if f.Reference != "" || f.CostCenter != "" { // indexes of their own
		theirs = `m.company_id = $1 AND m.id < $2 AND m.id >= $3 AND m.id > ` + purgedFloor
	}
	if f.narrows() {
		var edge int64
		args, condition := []any{company, before, last, scanned - 1}, ""
		switch {
		case f.Reference != "":
			args, condition = append(args, f.Reference), ` AND client_reference = $5`
		case f.CostCenter != "":
			args, condition = append(args, f.CostCenter), ` AND cost_center = $5`
		}
		err := s.pool.QueryRow(ctx, `SELECT id FROM messages m WHERE `+theirs+condition+newestFirst+` OFFSET $4 LIMIT 1`, args...).Scan(&edge)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return nil, 0, fmt.Errorf("listing messages: %w", err)
		default:
			last, more = edge, true
		}
	}
	page, err = s.records(ctx, theirs, company, before, last, f, limit)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case len(page) > limit:
		page = page[:limit]
		return page, page[limit-1].ID, nil
	case more:
		return page, last, nil
	}
	return page, 0, nil
}

// ofCompany is a condition on messages m: those of company $1 from id $3 on and below $2, in the order of newestFirst.
// Only the index of the company's messages has such ranges. With company_id = $1 the planner may take the primary key for
// a company with many messages, and so read those of all companies since its newest one.
const (
	ofCompany   = `(m.company_id, m.id) < ($1, $2) AND (m.company_id, m.id) >= ($1, greatest($3, ` + purgedFloor + ` + 1))`
	newestFirst = ` ORDER BY m.company_id DESC, m.id DESC`
)

// listBatch lists the messages of one batch.
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

// records reads one message more than limit, to show whether more follow. The condition uses $1 to $3.
func (s *Store) records(ctx context.Context, condition string, company, before, third int64, f Filter, limit int) ([]Record, error) {
	args := []any{company, before, third, limit + 1}
	with := func(filter string, arg any) {
		args = append(args, arg)
		condition += fmt.Sprintf(filter, len(args))
	}
	if f.Reference != "" {
		with(` AND m.client_reference = $%d`, f.Reference)
	}
	if f.CostCenter != "" {
		with(` AND m.cost_center = $%d`, f.CostCenter)
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
	// Select the page before the batches are joined: the planner, which cannot estimate the condition, would otherwise
	// join and sort all its rows.
	page := `(SELECT m.* FROM messages m WHERE ` + condition + newestFirst + ` LIMIT $4)`
	return postgres.All(ctx, s.pool, "listing messages", scanRecord, recordsOf(page)+` ORDER BY m.id DESC`, args...)
}

// reach returns the ids of a filter's period, after included and until excluded.
func (s *Store) reach(ctx context.Context, f Filter) (after, until int64, err error) {
	until = math.MaxInt64
	batch := &pgx.Batch{}
	if !f.From.IsZero() {
		batch.Queue(idAt, f.From.Add(-skew)).QueryRow(func(row pgx.Row) error { return row.Scan(&after) })
	}
	if !f.To.IsZero() {
		batch.Queue(idAt, f.To.Add(skew)).QueryRow(func(row pgx.Row) error { return row.Scan(&until) })
	}
	if batch.Len() == 0 {
		return after, until, nil
	}
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return 0, 0, fmt.Errorf("looking for the messages of a time: %w", err)
	}
	return after, until, nil
}

// idAt finds an id that separates the messages created before a time from the others, within skew. created_at has no
// index, because ids grow with it: a binary search over the ids takes some thirty reads of one row by its key. (A ULID
// has a time too, but of another machine's clock.)
const idAt = `
	WITH RECURSIVE halves AS (
		SELECT coalesce((SELECT id FROM messages WHERE id > ` + purgedFloor + ` ORDER BY id LIMIT 1), 0) AS low,
			coalesce((SELECT id FROM messages WHERE id > ` + purgedFloor + ` ORDER BY id DESC LIMIT 1), 0) + 1 AS high -- the boundary is in [low, high]
		UNION ALL
		SELECT CASE WHEN m.created_at < $1 THEN m.id + 1 ELSE h.low END, CASE WHEN m.created_at < $1 THEN h.high ELSE (h.low + h.high) / 2 END
		FROM halves h LEFT JOIN LATERAL (
			SELECT id, created_at FROM messages WHERE id >= (h.low + h.high) / 2 ORDER BY id LIMIT 1
		) m ON true
		WHERE h.low < h.high
	)
	SELECT low FROM halves WHERE low >= high`

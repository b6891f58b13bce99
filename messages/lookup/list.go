package lookup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
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

// narrows reports whether the filter excludes messages or, with a Reference or a CostCenter, excludes some of those
// that have it, which are together in an index.
func (f *Filter) narrows() bool {
	return f.Reference != "" && f.CostCenter != "" || f.Status != nil || f.Batch != nil || f.Number != "" ||
		!f.From.IsZero() || !f.To.IsZero()
}

// scanned is how many of a company's messages one page reads at most, even if few match the filter.
const scanned = 5_000

// List returns up to limit of a company's messages, the newest first, with ids below before (0: from the newest), and
// the next page's before, 0 for none. When few messages match the filter, a page may have fewer than limit messages,
// even none, and still have a next one; the filters of numberfilter find the messages to a number however old they are.
func (s *Store) List(ctx context.Context, of sms.CompanyID, f Filter, before int64, limit int) (
	page []Record, next int64, err error) {
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
	after, until, err := messages.Reach(ctx, s.pool, f.From, f.To)
	if err != nil {
		return nil, 0, err
	}
	before = min(before, until)
	last, more := after, false // how far the page reads, and whether older ones follow
	if f.Number != "" {
		var floor int64
		if before, floor, err = s.filters.Skip(ctx, of, f.Number, before); err != nil {
			return nil, 0, err
		}
		if floor > after {
			last, more = floor, true
		}
	}
	theirs := messages.OfCompany
	if f.Reference != "" || f.CostCenter != "" { // indexes of their own
		theirs = `m.company_id = $1 AND m.id < $2 AND m.id >= $3 AND m.id > ` + messages.PurgedFloor
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
		err := s.pool.QueryRow(ctx, `SELECT id FROM messages m WHERE `+theirs+condition+messages.NewestFirst+
			` OFFSET $4 LIMIT 1`, args...).Scan(&edge)
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

// listBatch lists the messages of one batch.
func (s *Store) listBatch(ctx context.Context, company int64, f Filter, before int64, limit int) (
	page []Record, next int64, err error) {
	var batch int64
	err = s.pool.QueryRow(ctx, `SELECT id FROM batches WHERE ulid = $1 AND company_id = $2`, [16]byte(*f.Batch),
		company).Scan(&batch)
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
func (s *Store) records(ctx context.Context, condition string, company, before, third int64, f Filter, limit int) (
	[]Record, error) {
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
	page := `(SELECT m.* FROM messages m WHERE ` + condition + messages.NewestFirst + ` LIMIT $4)`
	return postgres.All(ctx, s.pool, "listing messages", scanRecord, recordsOf(page)+` ORDER BY m.id DESC`, args...)
}

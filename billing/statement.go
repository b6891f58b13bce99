package billing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"intumwa/sms"
)

// Kinds of ledger rows.
const (
	KindAdjustment = "adjustment" // by hand: bought, given, taken
	KindSend       = "send"       // of one API request
	KindRefund     = "refund"     // of one message
)

// Entry is one row of a company's statement.
type Entry struct {
	ID           int64
	At           time.Time
	Kind         string
	Amount       int64     // credits; negative: taken
	BalanceAfter int64     // the running balance
	Ref          *[16]byte // ULID: of the message or the batch (send), of the message (refund); nil: an adjustment
	Note         string
}

// StatementFilter says which rows a statement has; a zero field all.
type StatementFilter struct {
	Kind string
	From time.Time // then or later
	To   time.Time // before then
}

const (
	// statementScanned is how many of a company's rows one page looks through: what
	// a page costs is bounded however rare a filter makes its rows.
	statementScanned = 20_000
	// statementSkew bounds how far rows written at the same time may lie apart: ids
	// are given out during a transaction, created_at is its start.
	statementSkew = time.Minute
	statementPage = 1000 // rows that a stream reads at a time
)

// Statement returns up to limit rows of a company's statement, the latest first,
// from the first with an id below before (0: the latest there is) on, and where
// to go on from: 0 when there are no more. A page that a filter makes rare may
// have fewer rows than limit, even none, and still go on.
func (l *Ledger) Statement(ctx context.Context, company sms.CompanyID, f StatementFilter, before int64, limit int) (page []Entry, next int64, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	from, to, err := l.bounds(ctx, company, f)
	if err != nil {
		return nil, 0, err
	}
	return l.stretch(ctx, company, f, from, min(to, before), limit, true)
}

// Entries goes over a company's statement from the oldest row on, however long it
// is, in pages of its own: for a file that is written while it is read. Rows
// written meanwhile are in it if they are in the filter. It ends with the first
// error.
func (l *Ledger) Entries(ctx context.Context, company sms.CompanyID, f StatementFilter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		from, to, err := l.bounds(ctx, company, f)
		for err == nil && from < to {
			var page []Entry
			var next int64
			page, next, err = l.stretch(ctx, company, f, from, to, statementPage, false)
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if next == 0 {
				break
			}
			from = next + 1
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// bounds answers between which ids the rows of a filter's time lie: from the
// first on, below the second.
func (l *Ledger) bounds(ctx context.Context, company sms.CompanyID, f StatementFilter) (from, to int64, err error) {
	to = math.MaxInt64
	if !f.From.IsZero() {
		if from, err = l.entryAt(ctx, company, f.From.Add(-statementSkew)); err != nil {
			return 0, 0, err
		}
	}
	if !f.To.IsZero() {
		if to, err = l.entryAt(ctx, company, f.To.Add(statementSkew)); err != nil {
			return 0, 0, err
		}
	}
	return from, to, nil
}

// stretch reads rows with ids in [from, to), in the order of their ids or, latest
// first, against it. next is the id of the last row looked at, 0 when nothing is
// left behind it.
func (l *Ledger) stretch(ctx context.Context, company sms.CompanyID, f StatementFilter, from, to int64, limit int, latestFirst bool) (page []Entry, next int64, err error) {
	order, last := "ASC", "max"
	if latestFirst {
		order, last = "DESC", "min"
	}
	var end, seen int64 // how far the page looks
	err = l.pool.QueryRow(ctx, `SELECT coalesce(`+last+`(id), 0), count(*) FROM (
			SELECT id FROM ledger WHERE company_id = $1 AND id >= $2 AND id < $3 ORDER BY id `+order+` LIMIT $4) reach`,
		int64(company), from, to, statementScanned).Scan(&end, &seen)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the statement of company %d: %w", company, err)
	}
	if seen == 0 {
		return nil, 0, nil
	}
	if latestFirst {
		from = end
	} else {
		to = end + 1
	}
	args := []any{int64(company), from, to, limit + 1}
	condition := `company_id = $1 AND id >= $2 AND id < $3`
	with := func(filter string, arg any) {
		args = append(args, arg)
		condition += fmt.Sprintf(filter, len(args))
	}
	if f.Kind != "" {
		with(` AND kind = $%d`, f.Kind)
	}
	if !f.From.IsZero() {
		with(` AND created_at >= $%d`, f.From)
	}
	if !f.To.IsZero() {
		with(` AND created_at < $%d`, f.To)
	}
	rows, err := l.pool.Query(ctx, `SELECT id, created_at, kind, amount, balance_after, ref, note FROM ledger
		WHERE `+condition+` ORDER BY id `+order+` LIMIT $4`, args...)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the statement of company %d: %w", company, err)
	}
	page, err = pgx.CollectRows(rows, scanEntry)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the statement of company %d: %w", company, err)
	}
	switch {
	case len(page) > limit:
		page = page[:limit]
		return page, page[limit-1].ID, nil
	case seen == statementScanned:
		return page, end, nil
	}
	return page, 0, nil
}

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	var ref pgtype.UUID
	err = row.Scan(&e.ID, &e.At, &e.Kind, &e.Amount, &e.BalanceAfter, &ref, &e.Note)
	if ref.Valid {
		e.Ref = &ref.Bytes
	}
	return e, err
}

// entryAt answers an id that divides a company's rows written before a time from
// the others, give or take statementSkew. There is no index on created_at, since
// ids grow with it: the boundary is found by halving the range of the company's
// ids, in some forty reads of one row by its key.
func (l *Ledger) entryAt(ctx context.Context, company sms.CompanyID, at time.Time) (int64, error) {
	fail := func(err error) (int64, error) {
		return 0, fmt.Errorf("looking for the ledger of a time: %w", err)
	}
	var low, high int64 // the boundary is in [low, high]
	err := l.pool.QueryRow(ctx, `SELECT coalesce((SELECT id FROM ledger WHERE company_id = $1 ORDER BY id LIMIT 1), 0),
		coalesce((SELECT id FROM ledger WHERE company_id = $1 ORDER BY id DESC LIMIT 1), 0) + 1`, int64(company)).Scan(&low, &high)
	if err != nil {
		return fail(err)
	}
	for low < high {
		middle := low + (high-low)/2
		var id int64
		var created time.Time
		err := l.pool.QueryRow(ctx, `SELECT id, created_at FROM ledger WHERE company_id = $1 AND id >= $2 ORDER BY id LIMIT 1`, int64(company), middle).Scan(&id, &created)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			high = middle
		case err != nil:
			return fail(err)
		case created.Before(at):
			low = id + 1
		default:
			high = middle
		}
	}
	return low, nil
}

// Sheet returns up to limit rows of a company's statement from the oldest on:
// those with an id above after (0: from the first), and where to go on from, 0
// when there are no more. As a page of [Ledger.Statement] it may have fewer rows
// than limit and still go on.
func (l *Ledger) Sheet(ctx context.Context, company sms.CompanyID, f StatementFilter, after int64, limit int) (page []Entry, next int64, err error) {
	from, to, err := l.bounds(ctx, company, f)
	if err != nil {
		return nil, 0, err
	}
	return l.stretch(ctx, company, f, max(from, after+1), to, limit, false)
}

// Period answers the balance at the beginning and at the end of the time of a
// filter, whatever its kind.
func (l *Ledger) Period(ctx context.Context, company sms.CompanyID, f StatementFilter) (opening, closing int64, err error) {
	f.Kind = ""
	from, to, err := l.bounds(ctx, company, f)
	if err != nil {
		return 0, 0, err
	}
	// Outside the rows that match there is at most what statementSkew lets through.
	const within = `company_id = $1 AND id >= $2 AND id < $3 AND ($4::timestamptz IS NULL OR created_at >= $4) AND ($5::timestamptz IS NULL OR created_at < $5)`
	args := []any{int64(company), from, to, orNull(f.From), orNull(f.To)}
	var first, last *int64 // nil: no row is in the period
	err = l.pool.QueryRow(ctx, `SELECT
		(SELECT balance_after - amount FROM ledger WHERE `+within+` ORDER BY id LIMIT 1),
		(SELECT balance_after FROM ledger WHERE `+within+` ORDER BY id DESC LIMIT 1)`, args...).Scan(&first, &last)
	switch {
	case err == nil && first != nil && last != nil:
		return *first, *last, nil
	case err == nil:
		err = l.pool.QueryRow(ctx, `SELECT coalesce((SELECT balance_after FROM ledger WHERE company_id = $1 AND id < $2
			AND ($3::timestamptz IS NULL OR created_at < $3) ORDER BY id DESC LIMIT 1), 0)`, int64(company), to, orNull(f.To)).Scan(&closing)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("reading the balances of company %d: %w", company, err)
	}
	return closing, closing, nil
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

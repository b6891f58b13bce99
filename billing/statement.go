package billing

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Entry is one row of a company's statement.
type Entry struct {
	ID           int64
	At           time.Time
	Kind         string
	Amount       int64 // credits; negative: a debit
	BalanceAfter int64 // running balance
	// ULID of the message or batch (send) or of the message (refund); key of an adjustment, if it has one
	Ref  *[16]byte
	Note string
}

// StatementFilter selects rows of a statement; a zero field selects all.
type StatementFilter struct {
	Kind string
	From time.Time // inclusive
	To   time.Time // exclusive
}

const (
	// statementScanned is how many of a company's rows one page reads at most, even if few match the filter.
	statementScanned = 20_000
	// statementSkew is how much ids and created_at may be out of order: an id is drawn during its transaction, created_at
	// is the transaction's start.
	statementSkew = time.Minute
	statementPage = 1000 // rows that a stream reads at a time
)

// Statement returns up to limit rows of a company's statement with ids below before (0: from the latest), the latest
// first, and the next page's before, 0 for none. When few rows match the filter, a page may have fewer rows than limit,
// even none, and still have a next one.
func (l *Ledger) Statement(ctx context.Context, company sms.CompanyID, f StatementFilter, before int64, limit int) (
	page []Entry, next int64, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	from, to, err := l.idRange(ctx, company, f)
	if err != nil {
		return nil, 0, err
	}
	return l.readRange(ctx, company, f, from, min(to, before), limit, true)
}

// Entries iterates over a company's statement from the oldest row on, page by page, for downloads of any length. Rows
// that are written meanwhile are included if they match the filter. It ends with the first error. It reads each page
// within a call of turn, which limits concurrent reads; nil: no limit.
func (l *Ledger) Entries(ctx context.Context, company sms.CompanyID, f StatementFilter,
	turn func(read func() error) error) iter.Seq2[Entry, error] {
	if turn == nil {
		turn = func(read func() error) error { return read() }
	}
	return func(yield func(Entry, error) bool) {
		var from, to int64
		err := turn(func() (err error) {
			from, to, err = l.idRange(ctx, company, f)
			return err
		})
		for err == nil && from < to {
			var page []Entry
			var next int64
			err = turn(func() (err error) {
				page, next, err = l.readRange(ctx, company, f, from, to, statementPage, false)
				return err
			})
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

// idRange returns the ids of a filter's period: from the first, below the second.
func (l *Ledger) idRange(ctx context.Context, company sms.CompanyID, f StatementFilter) (from, to int64, err error) {
	edges, err := edgesOf(ctx, l.pool, company, []time.Time{f.first(), f.beyond()})
	if err != nil {
		return 0, 0, err
	}
	return edges[0].from, edges[1].to, nil
}

// readRange reads rows with ids in [from, to), in ascending or, with latestFirst, descending order. next is the id of
// the last row read, 0 when none is left after it.
func (l *Ledger) readRange(ctx context.Context, company sms.CompanyID, f StatementFilter, from, to int64, limit int,
	latestFirst bool) (page []Entry, next int64, err error) {
	order, last := "ASC", "max"
	if latestFirst {
		order, last = "DESC", "min"
	}
	var end, seen int64 // how far the page reads
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
	page, err = postgres.All(ctx, l.pool, fmt.Sprintf("reading the statement of company %d", company), scanEntry,
		`SELECT id, created_at, kind, amount, balance_after, ref, note
			FROM ledger
		WHERE `+condition+` ORDER BY id `+order+` LIMIT $4`, args...)
	if err != nil {
		return nil, 0, err
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

// Sheet returns up to limit rows of a company's statement with ids above after (0: from the first), the oldest first,
// and the next sheet's after, 0 for none. Like a page of [Ledger.Statement] it may have fewer rows than limit and still
// have a next one.
func (l *Ledger) Sheet(ctx context.Context, company sms.CompanyID, f StatementFilter, after int64, limit int) (
	page []Entry, next int64, err error) {
	from, to, err := l.idRange(ctx, company, f)
	if err != nil {
		return nil, 0, err
	}
	return l.readRange(ctx, company, f, max(from, after+1), to, limit, false)
}

// Period returns the balance at the beginning and at the end of a filter's period; the filter's kind is ignored.
func (l *Ledger) Period(ctx context.Context, company sms.CompanyID, f StatementFilter) (opening, closing int64,
	err error) {
	balances, _, err := balancesAt(ctx, l.pool, company, []time.Time{f.first(), f.beyond()})
	if err != nil {
		return 0, 0, err
	}
	return balances[0], balances[1], nil
}

// first returns From, or a time before every row.
func (f StatementFilter) first() time.Time {
	if f.From.IsZero() {
		return time.Unix(0, 0)
	}
	return f.From
}

// beyond returns To, or a time after every row.
func (f StatementFilter) beyond() time.Time {
	if f.To.IsZero() {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return f.To
}

package handsets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// OptOut means that a number gets no messages from a company's sender.
type OptOut struct {
	ID        int64
	Number    sms.Number
	Sender    string // "": all of the company's
	Source    Source
	CreatedAt time.Time
}

// Source is the origin of an entry.
type Source string

// Sources.
const (
	ByHandset Source = "handset" // by the number's owner, with an MO
	ByAPI     Source = "api"     // by the company
)

// MaxOptOuts is how many entries a company can make by API and dashboard.
const MaxOptOuts = 1_000_000

// ErrListFull means that a company's list has MaxOptOuts entries.
var ErrListFull = errors.New("the opt-out list is full")

// OptOut adds numbers to a company's list and returns how many were new. Concurrent calls wait for each other only at
// the same entry.
func (s *Store) OptOut(ctx context.Context, company sms.CompanyID, entries []OptOut) (added int64, err error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b OptOut) int { // one order prevents deadlocks
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Sender, b.Sender))
	})
	numbers, senders, sources := make([]string, len(entries)), make([]string, len(entries)), make([]string, len(entries))
	for i, e := range entries {
		numbers[i], senders[i], sources[i] = string(e.Number), e.Sender, string(e.Source)
	}
	// An entry that is there may be of a COMMIT without an answer, which no standby has yet.
	err = s.pool.QueryRow(ctx, `WITH added AS (INSERT INTO opt_outs (company_id, phone_number, sender, source)
			SELECT $1, n, f, s FROM unnest($2::text[], $3::text[], $4::text[]) u(n, f, s) ON CONFLICT DO NOTHING RETURNING 1)
		SELECT count(*), CASE WHEN count(*) < $5 THEN `+postgres.Confirming+` END FROM added`,
		int64(company), numbers, senders, sources, len(entries)).Scan(&added, nil)
	if err != nil {
		return 0, fmt.Errorf("entering %d numbers into the opt-out list of company %d: %w", len(entries), company, err)
	}
	return added, nil
}

// OptOutWithin is OptOut for the company's own entries; ErrListFull when the list has MaxOptOuts. A list with room is
// counted again after some ten thousand entries of this process: concurrent processes may exceed the limit by that
// much.
func (s *Store) OptOutWithin(ctx context.Context, company sms.CompanyID, entries []OptOut) (added int64, err error) {
	if !s.rooms.take(company, len(entries)) {
		var size int
		err = s.pool.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM opt_outs WHERE company_id = $1 LIMIT $2) l`,
			int64(company), s.rooms.most).Scan(&size)
		if err != nil {
			return 0, fmt.Errorf("counting the opt-outs of company %d: %w", company, err)
		}
		if size >= s.rooms.most {
			return 0, ErrListFull
		}
		s.rooms.counted(company, s.rooms.most-size-len(entries))
	}
	return s.OptOut(ctx, company, entries)
}

// rooms is how many entries companies may add before their lists are counted again: counting a million takes long, and
// requests add 500.
type rooms struct {
	most int // entries of a list

	mu sync.Mutex
	of map[sms.CompanyID]int
}

const (
	roomMost  = 20_000
	roomsKept = 10_000 // companies
)

// take reserves room for entries; it returns false when too little is left.
func (r *rooms) take(company sms.CompanyID, entries int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[company] < entries {
		return false
	}
	r.of[company] -= entries
	return true
}

func (r *rooms) counted(company sms.CompanyID, room int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) >= roomsKept {
		clear(r.of)
	}
	r.of[company] = min(room, roomMost)
}

// OptIn removes a number from a company's list and returns the number of removed entries: of one sender; with nil all;
// with "" the entry for all senders.
func (s *Store) OptIn(ctx context.Context, company sms.CompanyID, number sms.Number, sender *string) (
	removed int64, err error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM opt_outs WHERE company_id = $1 AND phone_number = $2 AND ($3::text IS NULL
		OR lower(sender) = lower($3))`,
		int64(company), string(number), sender)
	if err != nil {
		return 0, fmt.Errorf("taking a number off the opt-out list of company %d: %w", company, err)
	}
	return tag.RowsAffected(), nil
}

// OptOutFilter selects entries; a zero field selects all.
type OptOutFilter struct {
	Number sms.Number
	Sender *string // case-insensitive; "": the entries for all senders
}

// scanned is how many of a company's entries one page reads at most, even if a sender has few.
const scanned = 5_000

// OptOuts returns up to limit entries of a company's list, the latest first, with ids below before (0: from the
// latest), and the next page's before, 0 for none. A page for a sender may have fewer, even none, and still have a next
// one.
func (s *Store) OptOuts(ctx context.Context, company sms.CompanyID, f OptOutFilter, before int64, limit int) (
	page []OptOut, next int64, err error) {
	if !company.Valid() {
		return nil, 0, nil
	}
	if before == 0 {
		before = math.MaxInt64
	}
	const columns = `id, phone_number, sender, source, created_at`
	if f.Number != "" { // at most as many as the company has senders, by the unique index
		page, err = s.optOuts(ctx, `SELECT `+columns+` FROM opt_outs WHERE company_id = $1 AND phone_number = $2 AND id < $3
			AND ($4::text IS NULL OR lower(sender) = lower($4)) ORDER BY id DESC LIMIT $5`, int64(company), string(f.Number),
			before, f.Sender, limit+1)
	} else {
		var last int64
		if f.Sender != nil {
			err = s.pool.QueryRow(ctx, `SELECT coalesce((SELECT id FROM opt_outs WHERE company_id = $1 AND id < $2
				ORDER BY id DESC OFFSET $3 LIMIT 1), 0)`,
				int64(company), before, scanned-1).Scan(&last)
			if err != nil {
				return nil, 0, fmt.Errorf("listing opt-outs: %w", err)
			}
		}
		page, err = s.optOuts(ctx, `SELECT `+columns+` FROM opt_outs WHERE company_id = $1 AND id < $2 AND id >= $3
			AND ($4::text IS NULL OR lower(sender) = lower($4)) ORDER BY id DESC LIMIT $5`, int64(company), before, last,
			f.Sender, limit+1)
		next = last
	}
	if err != nil {
		return nil, 0, err
	}
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].ID
	}
	return page, next, nil
}

func (s *Store) optOuts(ctx context.Context, query string, args ...any) ([]OptOut, error) {
	return postgres.All(ctx, s.pool, "listing opt-outs", pgx.RowToStructByPos[OptOut], query, args...)
}

// Pair is a message's company, sender and recipient.
type Pair struct {
	CompanyID int64
	Number    sms.Number
	Sender    string
}

// entries is the FROM and WHERE of the entries that bar the number in a column from messages of the sender in another,
// of the company in a third. Names of senders are case-insensitive.
func entries(company, number, sender string) string {
	return `FROM opt_outs e WHERE e.company_id = ` + company + ` AND e.phone_number = ` + number +
		` AND lower(e.sender) IN ('', lower(` + sender + `))`
}

// OptedOut is an SQL condition for statements that choose messages to send: the number in a column has opted out of the
// sender in another, of the company in a third. It costs one index look-up.
func OptedOut(company, number, sender string) string {
	return `EXISTS (SELECT ` + entries(company, number, sender) + `)`
}

// Barred returns the indexes of the pairs that must not get a message ([OptedOut]), in one statement. A decision in the
// same transaction counts all committed entries; a later one may miss newer ones.
func Barred(ctx context.Context, db postgres.Querier, pairs []Pair) (map[int]bool, error) {
	companies, numbers, senders := make([]int64, len(pairs)), make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		companies[i], numbers[i], senders[i] = p.CompanyID, string(p.Number), p.Sender
	}
	barred := map[int]bool{}
	var n int64
	err := postgres.Each(ctx, db, "looking for opt-outs", []any{&n}, func() error { barred[int(n-1)] = true; return nil },
		`
		SELECT u.n FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS u(company, number, sender, n)
		CROSS JOIN LATERAL (SELECT `+entries("u.company", "u.number", "u.sender")+` LIMIT 1) e`,
		companies, numbers, senders)
	return barred, err
}

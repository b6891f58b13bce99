package lookup

import (
	"context"
	"fmt"
	"math"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/numberfilter"
	"intumwa/sms"
)

// Look-ups for operators, over all companies.

// ByNumberScanned is how many messages one page of OperatorsByNumber reads.
const ByNumberScanned = 50_000

// OperatorsByNumber returns up to limit messages of all companies to a number, the newest first. It reads
// ByNumberScanned ids below before (0: from the newest) and the rest of the last chunk, without the chunks that
// the filters of numberfilter exclude. back is when the oldest of those was created; next is where the next call
// continues, 0 at the end.
func (s *Store) OperatorsByNumber(ctx context.Context, number sms.Number, before int64, limit int) (
	page []Record, back time.Time, next int64, err error) {
	fail := func(err error) ([]Record, time.Time, int64, error) {
		return nil, time.Time{}, 0, fmt.Errorf("looking for the messages to a number: %w", err)
	}
	if before <= 0 {
		before = math.MaxInt64
	}
	for looked := int64(0); looked < ByNumberScanned && len(page) <= limit; {
		if before, _, err = s.filters.Skip(ctx, numberfilter.AllCompanies, number, before); err != nil {
			return fail(err)
		}
		var newest int64 // below before
		err = s.pool.QueryRow(ctx, `SELECT coalesce((SELECT id FROM messages WHERE id < $1 AND id > `+messages.PurgedFloor+
			` ORDER BY id DESC LIMIT 1), 0)`, before).Scan(&newest)
		if err != nil {
			return fail(err)
		}
		if newest == 0 {
			return page, back, 0, nil
		}
		last := max(newest/numberfilter.Chunk*numberfilter.Chunk, 1) // the rest of its chunk
		more, err := postgres.All(ctx, s.pool, "reading a page", scanRecord,
			recordsOf(`messages`)+` WHERE m.id <= $1 AND m.id >= $2 AND m.phone_number = $3 ORDER BY m.id DESC LIMIT $4`,
			newest, last, string(number), limit+1-len(page))
		if err != nil {
			return fail(err)
		}
		page = append(page, more...)
		err = s.pool.QueryRow(ctx, `SELECT created_at FROM messages WHERE id >= $1 ORDER BY id LIMIT 1`, last).Scan(&back)
		if err != nil {
			return fail(err)
		}
		looked += newest - last + 1
		before = last
	}
	if len(page) > limit {
		page = page[:limit]
		return page, page[limit-1].CreatedAt, page[limit-1].ID, nil
	}
	if next, _, err = s.filters.Skip(ctx, numberfilter.AllCompanies, number, before); err != nil {
		return fail(err)
	}
	var below bool
	if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM messages WHERE id < $1 AND id > `+messages.PurgedFloor+`)`,
		next).Scan(&below); err != nil {
		return fail(err)
	}
	if !below { // older ones are not to the number
		next = 0
	}
	return page, back, next, nil
}

// countedMost is how many of a company's latest messages Count reads.
const countedMost = 20_000

// Counts are a company's messages by status.
type Counts struct {
	Pending, Sent, Failed int
	More                  bool // older ones were not counted
}

// Count counts the company's messages created since a time, at most the latest 20,000.
func (s *Store) Count(ctx context.Context, company sms.CompanyID, since time.Time) (c Counts, err error) {
	if !company.Valid() {
		return c, nil
	}
	var after int64
	if err := s.pool.QueryRow(ctx, messages.IDAt, since.Add(-messages.Skew)).Scan(&after); err != nil {
		return c, fmt.Errorf("counting the messages of company %d: %w", company, err)
	}
	var seen int
	err = s.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status = 1),
		count(*) FILTER (WHERE status = 2), count(*)
		FROM (SELECT status, created_at FROM messages m WHERE `+messages.OfCompany+messages.NewestFirst+
		` LIMIT $4) m WHERE created_at >= $5`,
		int64(company), int64(math.MaxInt64), after, countedMost, since).Scan(&c.Pending, &c.Sent, &c.Failed, &seen)
	if err != nil {
		return c, fmt.Errorf("counting the messages of company %d: %w", company, err)
	}
	c.More = seen == countedMost
	return c, nil
}

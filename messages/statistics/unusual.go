package statistics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// Limits of a usual hour of a company. A stolen token, a program in a loop and traffic pumping (to numbers whose owner
// earns by them) exceed them, and so may a company's first mailing.
const (
	unusualSpan    = time.Hour
	unusualPast    = 35        // days, to include a monthly mailing
	unusualCounted = 1_000_000 // messages of a company's hour, at most
	unusualSample  = 20_000    // latest messages whose recipients are read
	unusualShare   = 0.5       // of these to one block of 10,000 numbers
	unusualMost    = 100       // companies
	blockLength    = len("+2577912")
)

// Unusual is a company with an unusual last hour.
type Unusual struct {
	Company  sms.CompanyID
	Messages int64   // within the hour, at most a million
	Busiest  int64   // messages of its busiest day of the 35 before today
	Volume   bool    // the hour has more messages than that day
	Block    string  // the prefix of the numbers that got most, "+2577912": 10,000 numbers
	Share    float64 // of its latest messages
	OneBlock bool    // Share is at least a half
}

// Unusual returns the companies that have sent at least this many messages within an unusual hour, those with the most
// first, at most 100. It reads an index entry of each message of the hour, and up to 20,000 messages of each such
// company.
func (s *Store) Unusual(ctx context.Context, least int64) (list []Unusual, err error) {
	fail := func(err error) ([]Unusual, error) {
		return nil, fmt.Errorf("looking for unusual sending: %w", err)
	}
	var first int64
	if err := s.pool.QueryRow(ctx, messages.IDAt, postgres.Now().Add(-unusualSpan)).Scan(&first); err != nil {
		return fail(err)
	}
	// From company to company by its newest message: purged rows are at the other end.
	busy, err := postgres.All(ctx, s.pool, "counting the hour", func(row pgx.CollectableRow) (u Unusual, err error) {
		err = row.Scan(&u.Company, &u.Messages)
		return u, err
	}, `
		WITH RECURSIVE sender AS (
			(SELECT company_id FROM messages WHERE company_id > 0 ORDER BY company_id DESC, id DESC LIMIT 1)
			UNION ALL
			SELECT (SELECT m.company_id FROM messages m WHERE m.company_id < s.company_id AND m.company_id > 0
				ORDER BY m.company_id DESC, m.id DESC LIMIT 1)
			FROM sender s WHERE s.company_id IS NOT NULL
		)
		SELECT s.company_id, hour.messages FROM sender s
		CROSS JOIN LATERAL (SELECT count(*) AS messages FROM (SELECT FROM messages m WHERE m.company_id = s.company_id
		AND m.id >= $1 LIMIT $3) m) hour
		WHERE hour.messages >= $2 ORDER BY hour.messages DESC, s.company_id LIMIT $4`, first, max(least, 1), unusualCounted,
		unusualMost)
	if err != nil {
		return fail(err)
	}
	for _, u := range busy {
		err := s.pool.QueryRow(ctx, `SELECT coalesce(max(messages), 0) FROM (
				SELECT sum(messages)::bigint AS messages FROM tallies, (SELECT `+burundiNow+` AS today) now
				WHERE company_id = $1 AND day < today AND day >= today - $2::int GROUP BY day) days`, int64(u.Company),
			unusualPast).Scan(&u.Busiest)
		if err != nil {
			return fail(err)
		}
		err = s.pool.QueryRow(ctx, `SELECT left(phone_number, $4), count(*)::float8 / sum(count(*)) OVER () FROM (
				SELECT phone_number FROM messages m WHERE `+messages.OfCompany+messages.NewestFirst+` LIMIT $5
			) latest GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1`, int64(u.Company), int64(math.MaxInt64), first, blockLength,
			unusualSample).Scan(&u.Block, &u.Share)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) { // purged meanwhile
			return fail(err)
		}
		if u.Volume, u.OneBlock = u.Messages > u.Busiest, u.Share >= unusualShare; u.Volume || u.OneBlock {
			list = append(list, u)
		}
	}
	return list, nil
}

package rerouting

import (
	"context"
	"fmt"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/messages/statistics"
)

// Sum counts messages of one kind at a carrier. The gateway's own belong to no company, and they and test messages cost
// no credits.
type Sum struct {
	Messages  int64 `json:"messages"`
	Segments  int64 `json:"segments"`
	Companies int64 `json:"companies"`
	Credits   int64 `json:"credits"`
	More      bool  `json:"more"` // there may be more, which are not counted

	CountedAt *time.Time `json:"counted_at,omitempty"` // when the oldest of them were counted; nil: now

	companies map[int64]bool
}

func (s *Sum) add(company, segments int64, test bool) {
	s.Messages++
	s.Segments += segments
	if company == 0 {
		return
	}
	if !test {
		s.Credits += segments
	}
	if s.companies == nil {
		s.companies = map[int64]bool{}
	}
	s.companies[company] = true
	s.Companies = int64(len(s.companies))
}

// Affected are the pending messages of one carrier.
type Affected struct {
	Leaving      Sum // Waiting and Scheduled: what leaves a carrier that is retired
	Unregistered Sum // of these, those whose senders do not work at the carrier that takes over: they fail
	Waiting      Sum // no carrier may have any of them
	Scheduled    Sum
	InHand       Sum // a dispatcher submits them now: those that the carrier does not get wait again
	AtCarrier    Sum // the carrier may have something of them: they await a receipt, or their end
}

// What Affected reads and counts. No index of scheduled has the carrier, so the rows of other carriers are read too.
const (
	affectedMost      = 10_000  // rows of the outbox that are read, and scheduled messages that are counted
	affectedScheduled = 100_000 // rows of scheduled that are read
)

// Places of messages.
const (
	waiting = iota
	scheduled
	inHand
	nowhere
)

// Affected counts the pending messages of a carrier from which another (to, or To{}: none) takes over. It reads the
// first 10,000 messages of the outbox, and counts 10,000 scheduled ones at most. AtCarrier is as last counted by Tally,
// and leaves out the gateway's own messages.
func (s *Store) Affected(ctx context.Context, carrier string, to To) (a Affected, err error) {
	var place int
	var company, segments, outbox, later int64
	var test, works bool
	if err := postgres.Each(ctx, s.pool, "counting what waits for "+carrier,
		[]any{&place, &company, &segments, &test, &works, &outbox, &later}, func() error {
			a.Waiting.More, a.Scheduled.More = outbox == affectedMost, later == affectedScheduled
			switch place {
			case nowhere:
				return nil
			case inHand:
				a.InHand.add(company, segments, test)
				return nil
			case scheduled:
				a.Scheduled.add(company, segments, test)
			case waiting:
				a.Waiting.add(company, segments, test)
			}
			a.Leaving.add(company, segments, test)
			if !works {
				a.Unregistered.add(company, segments, test)
			}
			return nil
		}, affectedStatement(to), carrier, affectedMost, affectedScheduled, to.Carrier); err != nil {
		return a, err
	}
	a.Scheduled.More = a.Scheduled.More || a.Scheduled.Messages == affectedMost
	a.Leaving.More = a.Waiting.More || a.Scheduled.More
	a.InHand.More, a.Unregistered.More = a.Waiting.More, a.Leaving.More
	at := &a.AtCarrier
	if err := s.pool.QueryRow(ctx, atCarrier, carrier).Scan(&at.Messages, &at.Segments, &at.Companies, &at.Credits,
		&at.More, &at.CountedAt); err != nil {
		return a, fmt.Errorf("counting the messages at %s: %w", carrier, err)
	}
	return a, nil
}

// affectedStatement returns the messages that wait, each with the numbers of rows that were read. There is always a
// row.
func affectedStatement(to To) string {
	return fmt.Sprintf(`WITH o AS MATERIALIZED (
			SELECT message_id, claimed_by FROM outbox WHERE carrier = $1 ORDER BY lane, message_id LIMIT $2
		), s AS MATERIALIZED (
			SELECT count(*) AS n, (array_agg(message_id) FILTER (WHERE carrier = $1))[:$2] AS ids
				FROM (SELECT message_id, carrier FROM scheduled LIMIT $3) l
		)
		SELECT coalesce(p.place, %d), coalesce(p.company_id, 0), coalesce(p.segments, 0), coalesce(p.test, false),
			coalesce(p.works, true), r.outbox, r.scheduled
		FROM (SELECT (SELECT count(*) FROM o) AS outbox, (SELECT n FROM s) AS scheduled) r LEFT JOIN (
			SELECT w.place, m.company_id, m.segments, m.test, %s AS works FROM (
				SELECT message_id AS id, CASE WHEN claimed_by IS NULL THEN %d ELSE %d END AS place FROM o
					WHERE claimed_by IS NOT NULL OR NOT %s
				UNION ALL SELECT unnest(ids), %d FROM s
			) w JOIN messages m ON m.id = w.id
		) p ON true`, nowhere, to.registeredAt("$4"), waiting, inHand, receipts.MayHave("o.message_id"), scheduled)
}

// atCarrier counts what a carrier may have: only the rows of open chunks have such messages.
var atCarrier = `WITH ` + statistics.Newest(``, `company_id <> 0`) + `, counted AS MATERIALIZED (
		SELECT c.chunk, c.up_to > 0 OR c.counted_at > '-infinity' AS ever, greatest(c.counted_at, c.changed_at) AS at
			FROM tally_chunks c JOIN open ON open.chunk = c.chunk
		WHERE open.stored AND (c.pending > 0 OR c.counted_at = '-infinity')
	)
	SELECT coalesce(sum(messages), 0)::bigint, coalesce(sum(segments), 0)::bigint, count(DISTINCT company_id),
		coalesce(sum(segments) FILTER (WHERE kind <> 2), 0)::bigint,
		EXISTS (SELECT FROM counted WHERE NOT ever), (SELECT min(at) FROM counted WHERE ever)
	FROM (
		SELECT company_id, kind, messages, segments FROM tallies WHERE company_id <> 0 AND carrier = $1 AND status = 3
			AND chunk >= 0 AND chunk IN (SELECT chunk FROM counted)
		UNION ALL
		SELECT m.company_id, CASE WHEN m.test THEN 2 ELSE 0 END, 1, m.segments FROM live m WHERE m.status = 0
			AND m.carrier = $1 AND ` + receipts.MayHave("m.id") + `
	) t`

// Leavable counts the messages that may still leave a retired carrier: what waits for it, and what a dispatcher has in
// hand.
func (s *Store) Leavable(ctx context.Context, carrier string) (n int64, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM outbox WHERE carrier = $1 AND due_at <> expires_at)
		+ (SELECT count(*) FROM scheduled WHERE carrier = $1)`, carrier).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting what waits for %s: %w", carrier, err)
	}
	return n, nil
}

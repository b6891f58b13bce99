package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
)

// WalkRows is how many rows of a lane one call of Walk reads at most.
const WalkRows = 20_000

// Stretch is the rows of one carrier's lane that Walk reads: those with ids above After, in order.
type Stretch struct {
	Carrier  string
	Lane     int
	After    int64
	Stranded bool // no dispatcher serves the carrier

	// Queued is the longest time that the queue may have had a message of the lane: older pushes are lost. nil: no
	// process takes from the queue, and nothing is lost.
	Queued *time.Duration
}

// Seen is the content of a stretch. A claimed message counts in Claimants only.
type Seen struct {
	Rows        int64     // less than WalkRows: the lane ends here
	First, Last int64     // the ids; 0: there are no rows
	Due         time.Time // since when the longest due one is due; zero: there are no rows
	Claimants   []int64   // the dispatchers that have messages claimed, ascending
	Expired     []int64   // past their validity
	Lost        []Waiting // due, and pushed so long ago that the queue has lost them
	Stranded    []int64   // due, of a carrier that no dispatcher serves
	Quiet       []int64   // of batches in their companies' quiet hours, untried and not postponed yet
}

// Walk reads stretches of the outbox in one statement. quiet has the companies whose batches are to be postponed. next
// is an id that was not drawn when Walk began: rows of older ids that appear later were put back, rerouted, or written
// by a transaction in progress.
//
// Its cost does not grow with the rest of the outbox.
func (s *Store) Walk(ctx context.Context, stretches []Stretch, quiet Quiet) (seen []Seen, next int64, err error) {
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(ByIndex)
		statement, args := walk(stretches, quiet)
		b.Queue(statement, args...).Query(func(rows pgx.Rows) (err error) {
			seen, next, err = collectSeen(rows, stretches)
			return err
		})
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, 0, fmt.Errorf("walking over the outbox: %w", err)
	}
	return seen, next, nil
}

// ByIndex keeps the planner of a transaction from reading a whole lane and sorting it: it overestimates a stretch, and
// the cost of its pages.
const ByIndex = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`

func collectSeen(rows pgx.Rows, stretches []Stretch) (seen []Seen, next int64, err error) {
	seen = make([]Seen, 0, len(stretches))
	var l Seen
	var due *time.Time
	var lost, whose []int64 // ids, and their companies
	if _, err := pgx.ForEachRow(rows, []any{&next, &l.Rows, &l.First, &l.Last, &due, &l.Claimants, &l.Expired, &lost,
		&whose, &l.Stranded, &l.Quiet}, func() error {
		st := &stretches[len(seen)]
		for i, id := range lost {
			l.Lost = append(l.Lost, Waiting{ID: id, CompanyID: whose[i], Carrier: st.Carrier, Lane: st.Lane})
		}
		if due != nil {
			l.Due = *due
		}
		for _, ids := range [][]int64{l.Claimants, l.Expired, l.Stranded, l.Quiet} { // a join has no order
			slices.Sort(ids)
		}
		slices.SortFunc(l.Lost, func(a, b Waiting) int { return cmp.Compare(a.ID, b.ID) })
		l.Claimants = slices.Compact(l.Claimants)
		seen = append(seen, l)
		l, due, lost, whose = Seen{}, nil, nil, nil
		return nil
	}); err != nil {
		return nil, 0, err
	}
	return seen, next, nil
}

// walk returns the statement of a walk, with its arguments. Without quiet hours it does not join the companies, which
// nearly doubles its time.
func walk(stretches []Stretch, quiet Quiet) (statement string, args []any) {
	n := len(stretches)
	carriers, lanes, after := make([]string, n), make([]int16, n), make([]int64, n)
	stranded, queued := make([]bool, n), make([]*time.Duration, n)
	for i, st := range stretches {
		carriers[i], lanes[i], after[i], stranded[i], queued[i] = st.Carrier, int16(st.Lane), st.After, st.Stranded, st.Queued
	}
	args = []any{carriers, lanes, after, stranded, queued}
	if !quiet.Some() {
		return walkPlain, args
	}
	companies, until, otherwise := quiet.args()
	return walkQuiet, append(args, companies, until, otherwise)
}

// The statements without and with quiet hours.
var walkPlain, walkQuiet = walkStatement(`NULL::bigint[]`, ``), walkStatement(fmt.Sprintf(
	`array_agg(o.message_id) FILTER (WHERE s.lane = %d AND o.claimed_by IS NULL AND o.attempts = 0 AND o.due_at <
		CASE WHEN h.company IS NULL THEN $8::timestamptz ELSE h.until END)`, messages.LaneBatch),
	`LEFT JOIN unnest($6::bigint[], $7::timestamptz[]) h(company, until) ON h.company = o.company_id`)

// walkStatement sums up each stretch by the index of its lane. The lane is a range in the condition, so that no other
// index has the order. quiet is the aggregate for quiet hours, which join adds.
func walkStatement(quiet, join string) string {
	return fmt.Sprintf(`
	SELECT (SELECT last_value + 1 FROM messages_id_seq), w.*
	FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::boolean[], $5::interval[]) WITH ORDINALITY s(carrier, lane,
	after, stranded, queued, n)
	CROSS JOIN LATERAL (
		SELECT count(*), coalesce(min(o.message_id), 0), coalesce(max(o.message_id), 0), min(o.due_at),
			array_agg(o.claimed_by) FILTER (WHERE o.claimed_by IS NOT NULL),
			array_agg(o.message_id) FILTER (WHERE o.over),
			array_agg(o.message_id) FILTER (WHERE o.ready AND o.pushed_at < now() - s.queued),
			array_agg(o.company_id) FILTER (WHERE o.ready AND o.pushed_at < now() - s.queued),
			array_agg(o.message_id) FILTER (WHERE o.ready AND s.stranded),
			%[2]s
		FROM (
			SELECT r.message_id, r.company_id, r.claimed_by, r.attempts, r.due_at, r.pushed_at,
				r.claimed_by IS NULL AND r.expires_at <= now() AS over, r.claimed_by IS NULL AND r.expires_at > now()
				AND r.due_at <= now() AS ready
			FROM outbox r WHERE r.carrier = s.carrier AND (r.lane, r.message_id) > (s.lane, s.after) AND r.lane <= s.lane
			ORDER BY r.lane, r.message_id LIMIT %[1]d
		) o
		%[3]s
	) w
	ORDER BY s.n`, WalkRows, quiet, join)
}

// OutboxCarriers lists the carriers of all rows in the outbox. Its cost grows with their number.
func (s *Store) OutboxCarriers(ctx context.Context) ([]string, error) {
	return postgres.All(ctx, s.pool, "listing the carriers in the outbox", pgx.RowTo[string], `
		WITH RECURSIVE c(carrier) AS (
			(SELECT carrier FROM outbox ORDER BY carrier, lane, message_id LIMIT 1)
			UNION ALL
			SELECT n.carrier FROM c CROSS JOIN LATERAL (SELECT o.carrier FROM outbox o WHERE o.carrier > c.carrier
				ORDER BY o.carrier, o.lane, o.message_id LIMIT 1) n
		)
		SELECT carrier FROM c`)
}

// Counted is the number of waiting messages of one carrier's lane.
type Counted struct {
	Carrier  string
	Lane     int
	Messages int64
	First    int64     // the oldest; 0: there is none
	Due      time.Time // since when the longest due one is due; zero: there is none
	Partial  bool      // the lane was not counted to its end: larger recorded counts stay
}

// KeepBacklogs stores the counts of all lanes for [Store.Backlogs] and deletes those of others. It does not write
// unchanged ones. A crash may lose the last counts; the next walk restores them.
func (s *Store) KeepBacklogs(ctx context.Context, lanes []Counted) error {
	n := len(lanes)
	carriers, numbers, counts, firsts, due := make([]string, n), make([]int16, n), make([]int64, n), make([]int64, n),
		make([]*time.Time, n)
	partial := make([]bool, n)
	for i, l := range lanes {
		carriers[i], numbers[i], counts[i], firsts[i], due[i], partial[i] = l.Carrier, int16(l.Lane), l.Messages, l.First,
			postgres.OrNull(l.Due), l.Partial
	}
	if _, err := s.pool.Exec(ctx, `
		WITH lane AS (
			SELECT l.carrier, l.lane, l.messages, coalesce((SELECT o.since FROM outbox o WHERE o.message_id = l.first),
				m.created_at) AS created_at, l.due, l.partial
			FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::boolean[]) l(carrier,
			lane, messages, first, due, partial)
			LEFT JOIN messages m ON m.id = l.first
		), others AS (
			DELETE FROM backlogs WHERE (carrier, lane) NOT IN (SELECT carrier, lane FROM lane)
		)
		INSERT INTO backlogs AS b (carrier, lane, messages, oldest_at, due_at)
		SELECT l.carrier, l.lane, l.messages, l.created_at, l.due FROM lane l, set_config('synchronous_commit', 'off', true)
		WHERE NOT (l.partial AND EXISTS (SELECT FROM backlogs k WHERE (k.carrier, k.lane) = (l.carrier, l.lane)
		AND k.messages > l.messages))
		ORDER BY carrier, lane
		ON CONFLICT (carrier, lane) DO UPDATE SET messages = excluded.messages, oldest_at = excluded.oldest_at,
		due_at = excluded.due_at
			WHERE (b.messages, b.oldest_at, b.due_at) IS DISTINCT FROM (excluded.messages, excluded.oldest_at, excluded.due_at)`,
		carriers, numbers, counts, firsts, due, partial); err != nil {
		return fmt.Errorf("storing the backlogs: %w", err)
	}
	return nil
}

// Backlog is the waiting messages of one carrier's lane.
type Backlog struct {
	Carrier  string
	Lane     int
	Messages int64
	Oldest   time.Time     // when the longest waiting one was accepted, or was to be sent
	Due      time.Duration // how long the longest due one has been due; 0: none is
}

// Backlogs returns the waiting messages by carrier and lane, as last counted by the walk over the outbox
// ([Store.KeepBacklogs]).
func (s *Store) Backlogs(ctx context.Context) ([]Backlog, error) {
	return postgres.All(ctx, s.pool, "reading the backlogs", pgx.RowToStructByPos[Backlog],
		`SELECT carrier, lane, messages, coalesce(oldest_at, now()), greatest(now() - due_at, interval '0') FROM backlogs
			WHERE messages > 0`)
}

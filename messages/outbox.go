package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// Claim is one dispatcher's right to carry a message. Epoch fences it: a message
// that is given back and claimed again has a higher one, so that what is written
// late under the claim before changes nothing.
type Claim struct {
	MessageID int64
	Epoch     int
}

// Claimed is a message that one dispatcher alone may carry now.
type Claimed struct {
	ID        int64
	Epoch     int
	ULID      ulid.ULID
	CompanyID int64
	Carrier   string
	Lane      int
	Sender    string
	Number    sms.Number
	Body      string
	Segments  int
	ConcatRef byte // of its id where it was billed as one segment: a carrier's alphabet may make more of it
	Attempt   int  // 1 for the first; 0: it is none, as the message is turned away (OptedOut)
	CreatedAt time.Time
	ExpiresAt time.Time
	Accepted  []int // segments (from 1) that a carrier has already, ascending

	// Unanswered are segments that were written once and never answered: the
	// carrier may have them. None of them is among Accepted.
	Unanswered []int

	// Begun says that the claim counts as begun already: it need not be noted (Begin).
	Begun bool

	// InDoubt says that a dispatcher died after its claim had begun: the carrier may
	// have any segment.
	InDoubt bool

	// Pushed says that it was put on the queue.
	Pushed bool

	// OptedOut: the number has opted out of the sender, and no carrier has or may have any
	// of the message. It must not be sent.
	OptedOut bool
}

// Claim is the claim under which m is carried.
func (m *Claimed) Claim() Claim { return Claim{m.ID, m.Epoch} }

// claimOptedOut is true for a message whose recipient has opted out. The statement that claims checks it, so an opt-out that was
// committed before counts, however long the message has waited. Such a claim is no attempt: it sets attempts to 0, by which Free
// recognises that the dead process did not submit the message.
var claimOptedOut = `NOT o.in_doubt AND NOT m.test AND ` + handsets.OptedOut("o.company_id", "m.phone_number", "m.sender") + ` AND NOT ` + receipts.MayHave("o.message_id")

const claimedColumns = `o.message_id, o.epoch, o.begun, o.in_doubt, o.carrier, m.ulid, o.company_id, o.lane, m.sender, m.phone_number, m.body, m.segments,
	coalesce(m.concat_ref, (m.id % 256)::smallint) AS ref, o.attempts, m.created_at, o.expires_at, o.pushed_at IS NOT NULL AS pushed`

// claimedNames are the names of claimedColumns.
const claimedNames = `message_id, epoch, begun, in_doubt, carrier, ulid, company_id, lane, sender, phone_number, body, segments, ref, attempts, created_at, expires_at, pushed`

// Claim takes the outbox rows of ids for dispatcher and returns what it got.
// It does not get a row that is done, not due, expired, claimed, or of another carrier
// by now, so an id that is on the queue twice does no harm.
//
// It passes by rows that another transaction has locked: a claim that waited would delay a
// whole lane. The walk over the outbox finds them again. (The lock costs a record of the
// log, 54 bytes a message.)
//
// Appending an empty string to carrier keeps the planner from the lane's index: with statistics from a time when
// the lane was empty, it would read the whole lane instead of finding the rows by id.
//
// With marks the dispatcher records the beginning of each claim before it submits
// anything of the message (Begin). Without, the claim counts as begun at once.
//
// After an error dispatcher may have claimed some of them (ClaimsOf).
func (s *Store) Claim(ctx context.Context, dispatcher int64, carrier string, ids []int64, marks bool) ([]*Claimed, error) {
	return s.claim(ctx, claimStatement, dispatcher, !marks, ids, carrier)
}

var claimStatement = claimFree(`message_id = ANY($3) AND carrier || '' = $4 AND claimed_by IS NULL AND due_at <= now() AND expires_at > now()`)

// claimFree is the statement that claims the rows of the outbox that free selects. Those that must not be carried now
// (claimHolds) it puts off instead. OFFSET keeps the planner from checking that once for each column.
func claimFree(free string) string {
	return `
	WITH free AS (
		SELECT message_id FROM outbox WHERE ` + free + ` FOR UPDATE SKIP LOCKED
	), claim AS (
		UPDATE outbox o SET claimed_by = CASE WHEN NOT h.held THEN $1::bigint END, begun = $2,
			attempts = CASE WHEN h.held THEN o.attempts WHEN ` + claimOptedOut + ` THEN 0 ELSE o.attempts + 1 END,
			epoch = CASE WHEN h.held THEN o.epoch ELSE o.epoch + 1 END,
			due_at = CASE WHEN h.held THEN ` + heldUntil + ` ELSE o.due_at END,
			pushed_at = CASE WHEN NOT h.held THEN o.pushed_at END
		FROM free JOIN messages m ON m.id = free.message_id CROSS JOIN LATERAL (SELECT ` + claimHolds + ` AS held OFFSET 0) h
		WHERE o.message_id = free.message_id
		RETURNING ` + claimedColumns + `, h.held
	), noted AS (
		` + noteHolds("claim") + `
	)
	SELECT ` + claimedNames + ` FROM claim WHERE NOT held`
}

// ClaimDue takes up to limit rows of one lane without the queue, the oldest
// first: those that have been due for age, and if they are on the queue, were put
// there as long ago. marks is as for Claim. What it costs grows with the rows that
// it passes by: claimed, or not due.
func (s *Store) ClaimDue(ctx context.Context, dispatcher int64, carrier string, lane, limit int, age time.Duration, marks bool) ([]*Claimed, error) {
	return s.claim(ctx, claimFree(`carrier = $3 AND lane = $4 AND claimed_by IS NULL AND greatest(due_at, pushed_at) <= now() - $6::interval AND expires_at > now()
		ORDER BY message_id LIMIT $5`), dispatcher, !marks, carrier, lane, limit, age)
}

func (s *Store) claim(ctx context.Context, query string, args ...any) ([]*Claimed, error) {
	claimed, err := postgres.All(ctx, s.pool, "claiming messages", scanClaimed, query, args...)
	if err != nil {
		return nil, err
	}
	for _, c := range claimed {
		c.OptedOut = c.Attempt == 0
	}
	// Read behind the commit: a settlement that gave a row back just before it was
	// claimed also wrote which segments are out.
	if err := segmentsOut(ctx, s.pool, claimed); err != nil {
		return nil, err
	}
	return claimed, nil
}

func scanClaimed(row pgx.CollectableRow) (*Claimed, error) {
	var c Claimed
	var id [16]byte
	var number string
	var ref int16
	if err := row.Scan(&c.ID, &c.Epoch, &c.Begun, &c.InDoubt, &c.Carrier, &id, &c.CompanyID, &c.Lane, &c.Sender, &number, &c.Body, &c.Segments,
		&ref, &c.Attempt, &c.CreatedAt, &c.ExpiresAt, &c.Pushed); err != nil {
		return nil, err
	}
	c.ULID, c.Number, c.ConcatRef = id, sms.Number(number), byte(ref)
	return &c, nil
}

// segmentsOut notes in messages that are not at their first attempt which of
// their segments are out already. What another carrier left unanswered says
// nothing of this one, nor does what one made of a message that was sent on since.
func segmentsOut(ctx context.Context, db postgres.Querier, claimed []*Claimed) error {
	var ids []int64
	var carriers []string
	byID := make(map[int64]*Claimed)
	for _, c := range claimed {
		if c.Attempt > 1 {
			ids, carriers = append(ids, c.ID), append(carriers, c.Carrier)
			byID[c.ID] = c
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return receipts.Out(ctx, db, ids, carriers, func(id int64, segment int, accepted bool) {
		if c := byID[id]; accepted {
			c.Accepted = append(c.Accepted, segment)
		} else {
			c.Unanswered = append(c.Unanswered, segment)
		}
	})
}

// Release gives claimed messages back unsent: they are due again after delay (0:
// as they were) and the attempt does not count. Claims that are over are left alone.
func (s *Store) Release(ctx context.Context, dispatcher int64, claims []Claim, delay time.Duration) error {
	retries := make([]Retry, len(claims))
	for i, c := range claims {
		retries[i] = Retry{Claim: c, Delay: delay}
	}
	b := &pgx.Batch{}
	if (Ends{Dispatcher: dispatcher, Retries: retries}).queue(b); b.Len() == 0 {
		return nil
	}
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("releasing %d messages: %w", len(claims), err)
	}
	return nil
}

// Begin notes that claimed messages are about to be submitted: if the dispatcher dies
// from now on, the carrier may have them. It returns the messages of which that is
// noted. The claims of the others are over: they must not be submitted, because another
// dispatcher may have them.
func (s *Store) Begin(ctx context.Context, dispatcher int64, claims []Claim) (begun []int64, err error) {
	ids, epochs := inOrder(claims)
	return postgres.All(ctx, s.pool, fmt.Sprintf("noting that %d messages begin", len(claims)), pgx.RowTo[int64],
		`UPDATE outbox o SET begun = true FROM unnest($2::bigint[], $3::int[]) u(id, epoch)
		WHERE o.message_id = u.id AND o.epoch = u.epoch AND o.claimed_by = $1 RETURNING o.message_id`, dispatcher, ids, epochs)
}

// ClaimsOf lists what a dispatcher has claimed, by the database. It reads all that
// waits.
func (s *Store) ClaimsOf(ctx context.Context, dispatcher int64) ([]Claim, error) {
	return postgres.All(ctx, s.pool, fmt.Sprintf("reading the claims of dispatcher %d", dispatcher), pgx.RowToStructByPos[Claim],
		`SELECT message_id, epoch FROM outbox WHERE claimed_by = $1`, dispatcher)
}

// Claimants lists the dispatchers that have messages claimed. It reads all that
// waits.
func (s *Store) Claimants(ctx context.Context) ([]int64, error) {
	return postgres.All(ctx, s.pool, "asking who has messages claimed", pgx.RowTo[int64],
		`SELECT DISTINCT claimed_by FROM outbox WHERE claimed_by IS NOT NULL`)
}

// wasBegun is the condition that a dispatcher that died may have submitted the message of
// a row o: its claim had begun, and it was no claim that only turned the message away.
const wasBegun = `o.begun AND o.attempts > 0`

// Free gives out again what is claimed by dead dispatchers, and returns how many
// messages that were. Those whose claims had begun are in doubt from now on
// (Claimed.InDoubt). Of the carriers in decided they are left to TakeBegun.
func (s *Store) Free(ctx context.Context, dead []int64, decided []string) (int64, error) {
	if len(dead) == 0 {
		return 0, nil
	}
	// A row that somebody holds at this moment is freed the next time.
	tag, err := s.pool.Exec(ctx, `
		WITH dead AS (
			SELECT message_id FROM outbox o WHERE claimed_by = ANY($1) AND NOT (`+wasBegun+` AND carrier = ANY($2)) FOR UPDATE SKIP LOCKED
		)
		UPDATE outbox o SET claimed_by = NULL, pushed_at = NULL, in_doubt = o.in_doubt OR `+wasBegun+`
		FROM dead WHERE o.message_id = dead.message_id`, dead, append([]string{}, decided...))
	if err != nil {
		return 0, fmt.Errorf("freeing the claims of dead dispatchers: %w", err)
	}
	return tag.RowsAffected(), nil
}

// TakeBegun takes up to limit messages of a carrier off the outbox that dead
// dispatchers may have submitted. It is for a carrier that is not sent again what it
// may have.
func (s *Store) TakeBegun(ctx context.Context, tx pgx.Tx, carrier string, dead []int64, limit int) ([]*Claimed, error) {
	begun, err := postgres.All(ctx, tx, "taking what dead dispatchers had begun", scanClaimed,
		`SELECT `+claimedColumns+` FROM outbox o JOIN messages m ON m.id = o.message_id
		WHERE o.claimed_by = ANY($1) AND o.carrier = $2 AND `+wasBegun+` ORDER BY o.message_id LIMIT $3 FOR UPDATE OF o SKIP LOCKED`, dead, carrier, limit)
	if err != nil {
		return nil, err
	}
	for _, c := range begun {
		c.Attempt = max(c.Attempt, 2) // it may have segments out
	}
	if err := segmentsOut(ctx, tx, begun); err != nil {
		return nil, err
	}
	ids := make([]int64, len(begun))
	for i, c := range begun {
		ids[i] = c.ID
	}
	if _, err := tx.Exec(ctx, `WITH gone AS (DELETE FROM outbox o WHERE message_id = ANY($1) RETURNING `+goneColumns+`)`+holdGone, ids); err != nil {
		return nil, fmt.Errorf("taking what dead dispatchers had begun: %w", err)
	}
	return begun, nil
}

// Waiting is an outbox row that is due and not on the queue.
type Waiting struct {
	ID        int64
	CompanyID int64
	Carrier   string
	Lane      int
}

// Unpushed returns up to limit unclaimed due rows of lanes of carriers, named in
// pairs, that were not put on the queue since they became due again: those due
// longest first. What it costs does not grow with what else waits.
func (s *Store) Unpushed(ctx context.Context, carriers []string, lanes []int16, limit int) ([]Waiting, error) {
	return postgres.All(ctx, s.pool, "looking for messages that are due again", pgx.RowToStructByPos[Waiting], `
		SELECT message_id, company_id, carrier, lane FROM outbox
		WHERE pushed_at IS NULL AND due_at <= now() AND claimed_by IS NULL AND expires_at > now()
			AND (carrier, lane) IN (SELECT * FROM unnest($1::text[], $2::smallint[]))
		ORDER BY due_at LIMIT $3`, carriers, lanes, limit)
}

// Pushed notes that the messages are on the queue (now). One that somebody is
// just claiming needs no note.
func (s *Store) Pushed(ctx context.Context, ids []int64) error {
	if _, err := s.pool.Exec(ctx, `
		WITH free AS (SELECT message_id FROM outbox WHERE message_id = ANY($1) AND claimed_by IS NULL FOR UPDATE SKIP LOCKED)
		UPDATE outbox o SET pushed_at = now() FROM free WHERE o.message_id = free.message_id`, ids); err != nil {
		return fmt.Errorf("noting pushed messages: %w", err)
	}
	return nil
}

// Queues counts by company what no carrier has yet, of all that waits. It reads all
// of it: it is for an operator who asks.
func (s *Store) Queues(ctx context.Context) (map[int64]int64, error) {
	queues := make(map[int64]int64)
	var company, n int64
	if err := postgres.Each(ctx, s.pool, "counting what companies have queued", []any{&company, &n}, func() error { queues[company] = n; return nil },
		`SELECT company_id, count(*) FROM outbox GROUP BY company_id`); err != nil {
		return nil, err
	}
	return queues, nil
}

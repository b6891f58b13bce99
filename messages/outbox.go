package messages

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// Claim is one dispatcher's right to deliver a message. Epoch fences it: a message that is released and claimed again
// has a higher one, so late writes under the earlier claim change nothing.
type Claim struct {
	MessageID int64
	Epoch     int
}

// Claimed is a message that only this dispatcher may submit now.
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
	ConcatRef byte // of its id if billed as one segment: a carrier's alphabet may need more
	Attempt   int  // 1 for the first; 0: it is not to be submitted (OptedOut)
	CreatedAt time.Time
	ExpiresAt time.Time
	Accepted  []int // segments (from 1) that a carrier has, ascending

	// Unanswered are segments that were written and never answered: the carrier may have them. None of them is in
	// Accepted.
	Unanswered []int

	// Begun means that the claim counts as begun: Begin is not needed.
	Begun bool

	// InDoubt means that a dispatcher died after its claim had begun: the carrier may have any segment.
	InDoubt bool

	// Pushed means that it was put on the queue.
	Pushed bool

	// OptedOut means that the number has opted out of the sender, and no carrier has or may have any of the message. It
	// must not be sent.
	OptedOut bool
}

// Claim returns the claim of m.
func (m *Claimed) Claim() Claim { return Claim{m.ID, m.Epoch} }

// claimOptedOut is true for a message whose recipient has opted out. The claiming statement checks it, so an opt-out
// that was committed before counts, however long the message has waited. Such a claim is no attempt: it sets attempts
// to 0, by which Free sees that the dead process did not submit the message.
var claimOptedOut = `NOT o.in_doubt AND NOT m.test AND ` + handsets.OptedOut("o.company_id", "m.phone_number", "m.sender") + ` AND NOT ` + receipts.MayHave("o.message_id")

const claimedColumns = `o.message_id, o.epoch, o.begun, o.in_doubt, o.carrier, m.ulid, o.company_id, o.lane, m.sender, m.phone_number, m.body, m.segments,
	coalesce(m.concat_ref, (m.id % 256)::smallint) AS ref, o.attempts, m.created_at, o.expires_at, o.pushed_at IS NOT NULL AS pushed`

// claimedNames are the names of claimedColumns.
const claimedNames = `message_id, epoch, begun, in_doubt, carrier, ulid, company_id, lane, sender, phone_number, body, segments, ref, attempts, created_at, expires_at, pushed`

// Claim claims the outbox rows of ids for dispatcher and returns those that it got: not a row that is deleted, not due,
// expired, claimed, or of another carrier by now, so an id that is on the queue twice does no harm.
//
// It does not wait for rows that another transaction has locked, because that would delay a whole lane; the walk finds
// them later.
//
// With marks the dispatcher records the beginning of each claim (Begin) before it submits anything of the message.
// Without, the claim counts as begun at once.
//
// After an error dispatcher may have claimed some of them (ClaimsOf).
func (s *Store) Claim(ctx context.Context, dispatcher int64, carrier string, ids []int64, marks bool) ([]*Claimed, error) {
	claimed, err := s.claim(ctx, claimPlain, dispatcher, !marks, ids, carrier)
	if err != nil && !postgres.Locked(err) {
		return nil, err
	}
	got := make(map[int64]bool, len(claimed))
	for _, c := range claimed {
		got[c.ID] = true
	}
	rest := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return got[id] })
	if len(rest) == 0 {
		return claimed, nil
	}
	others, err := s.claim(ctx, claimOther, dispatcher, !marks, rest, carrier)
	return append(claimed, others...), err
}

// claimPlain claims the messages that may be submitted (not held, not opted out) and whose rows have no xmax: no
// transaction has locked or changed them. So it needs no lock before the update, which would cost a WAL record of 54
// bytes and a second look at each row. If a row is locked after its xmax was read, claimPlain waits for a tenth of a
// second and fails; if it was changed, it has an xmax by now.
//
// claimOther claims the rest: also rows with the xmax of a transaction that is over, because it was rolled back or locked
// the row before it changed it (Free, Pushed, Unhold).
var (
	claimPlain = `
		UPDATE outbox o SET claimed_by = $1, begun = $2, attempts = o.attempts + 1, epoch = o.epoch + 1
		FROM messages m WHERE m.id = o.message_id AND o.xmax = 0 AND ` + claimByID + `
			AND NOT (` + claimHolds + `) AND NOT (` + claimOptedOut + `) AND (SELECT set_config('lock_timeout', '100', true)) IS NOT NULL
		RETURNING ` + claimedColumns
	claimOther = claimFree(claimByID)
)

// claimByID is a condition on a row o of the outbox: it is one that a claim by ids may take.
//
// Appending an empty string to carrier keeps the planner from the lane's index: with statistics from a time when the
// lane was empty, it would read the whole lane instead of finding the rows by id.
const claimByID = `o.message_id = ANY($3) AND o.carrier || '' = $4 AND o.claimed_by IS NULL AND o.due_at <= now() AND o.expires_at > now()`

// claimFree claims the outbox rows o that free selects, and holds those that must be held (claimHolds). OFFSET keeps the
// planner from evaluating that once for each column.
func claimFree(free string) string {
	return `
	WITH free AS (
		SELECT o.message_id FROM outbox o WHERE ` + free + ` FOR UPDATE SKIP LOCKED
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

// ClaimDue claims up to limit rows of one lane without the queue, the oldest first: those that have been due for age
// and, if they were put on the queue, that long ago. marks is as for Claim. Its cost grows with the rows that it skips:
// claimed, or not due.
func (s *Store) ClaimDue(ctx context.Context, dispatcher int64, carrier string, lane, limit int, age time.Duration, marks bool) ([]*Claimed, error) {
	return s.claim(ctx, claimFree(`o.carrier = $3 AND o.lane = $4 AND o.claimed_by IS NULL
		AND greatest(o.due_at, o.pushed_at) <= now() - $6::interval AND o.expires_at > now() ORDER BY o.message_id LIMIT $5`), dispatcher, !marks, carrier, lane, limit, age)
}

func (s *Store) claim(ctx context.Context, query string, args ...any) ([]*Claimed, error) {
	claimed, err := postgres.All(ctx, s.pool, "claiming messages", scanClaimed, query, args...)
	if err != nil {
		return nil, err
	}
	for _, c := range claimed {
		c.OptedOut = c.Attempt == 0
	}
	// Read after the commit: a settlement that released a row just before this claim also recorded its segments.
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

// segmentsOut sets Accepted and Unanswered of messages that are not at their first attempt. Segments that another
// carrier left unanswered do not count, nor does any copy from before a message was sent on.
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

// Release releases claimed messages unsent: they are due after delay (0: as before) and the attempt does not count.
// Ended claims are not affected.
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

// Begin records that claimed messages are about to be submitted: if the dispatcher dies from now on, the carrier may
// have them. It returns the messages for which it did. The claims of the others have ended: do not submit them, another
// dispatcher may have them.
func (s *Store) Begin(ctx context.Context, dispatcher int64, claims []Claim) (begun []int64, err error) {
	ids, epochs := inOrder(claims)
	return postgres.All(ctx, s.pool, fmt.Sprintf("noting that %d messages begin", len(claims)), pgx.RowTo[int64],
		`UPDATE outbox o SET begun = true FROM unnest($2::bigint[], $3::int[]) u(id, epoch)
		WHERE o.message_id = u.id AND o.epoch = u.epoch AND o.claimed_by = $1 RETURNING o.message_id`, dispatcher, ids, epochs)
}

// ClaimsOf lists a dispatcher's claims in the database. It reads the whole outbox.
func (s *Store) ClaimsOf(ctx context.Context, dispatcher int64) ([]Claim, error) {
	return postgres.All(ctx, s.pool, fmt.Sprintf("reading the claims of dispatcher %d", dispatcher), pgx.RowToStructByPos[Claim],
		`SELECT message_id, epoch FROM outbox WHERE claimed_by = $1`, dispatcher)
}

// Claimants lists the dispatchers with claims. It reads the whole outbox.
func (s *Store) Claimants(ctx context.Context) ([]int64, error) {
	return postgres.All(ctx, s.pool, "asking who has messages claimed", pgx.RowTo[int64],
		`SELECT DISTINCT claimed_by FROM outbox WHERE claimed_by IS NOT NULL`)
}

// wasBegun is a condition on a row o: a dead dispatcher may have submitted the message, because its claim had begun and
// was not for an opted-out recipient.
const wasBegun = `o.begun AND o.attempts > 0`

// Free releases the claims of dead dispatchers and returns how many. Messages whose claims had begun are in doubt from
// now on (Claimed.InDoubt), except those of the carriers in decided, which are left to TakeBegun.
func (s *Store) Free(ctx context.Context, dead []int64, decided []string) (int64, error) {
	if len(dead) == 0 {
		return 0, nil
	}
	// A locked row is freed by the next call.
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

// TakeBegun takes up to limit messages of a carrier off the outbox that dead dispatchers may have submitted. It is for
// a carrier that must not get them again.
func (s *Store) TakeBegun(ctx context.Context, tx pgx.Tx, carrier string, dead []int64, limit int) ([]*Claimed, error) {
	begun, err := postgres.All(ctx, tx, "taking what dead dispatchers had begun", scanClaimed,
		`SELECT `+claimedColumns+` FROM outbox o JOIN messages m ON m.id = o.message_id
		WHERE o.claimed_by = ANY($1) AND o.carrier = $2 AND `+wasBegun+` ORDER BY o.message_id LIMIT $3 FOR UPDATE OF o SKIP LOCKED`, dead, carrier, limit)
	if err != nil {
		return nil, err
	}
	for _, c := range begun {
		c.Attempt = max(c.Attempt, 2) // it may have recorded segments
	}
	if err := segmentsOut(ctx, tx, begun); err != nil {
		return nil, err
	}
	ids := make([]int64, len(begun))
	for i, c := range begun {
		ids[i] = c.ID
	}
	if _, err := tx.Exec(ctx, `WITH gone AS (DELETE FROM outbox o WHERE message_id = ANY($1) RETURNING `+goneColumns+`)`+keepUnanswered, ids); err != nil {
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

// Unpushed returns up to limit unclaimed due rows of lanes of carriers, named in pairs, that were not put on the queue
// since they became due: those due longest first. Its cost does not grow with the rest of the outbox.
func (s *Store) Unpushed(ctx context.Context, carriers []string, lanes []int16, limit int) ([]Waiting, error) {
	return postgres.All(ctx, s.pool, "looking for messages that are due again", pgx.RowToStructByPos[Waiting], `
		SELECT message_id, company_id, carrier, lane FROM outbox
		WHERE pushed_at IS NULL AND due_at <= now() AND claimed_by IS NULL AND expires_at > now()
			AND (carrier, lane) IN (SELECT * FROM unnest($1::text[], $2::smallint[]))
		ORDER BY due_at LIMIT $3`, carriers, lanes, limit)
}

// Pushed records that the messages are on the queue now. A row that is just being claimed is skipped.
func (s *Store) Pushed(ctx context.Context, ids []int64) error {
	if _, err := s.pool.Exec(ctx, `
		WITH free AS (SELECT message_id FROM outbox WHERE message_id = ANY($1) AND claimed_by IS NULL FOR UPDATE SKIP LOCKED)
		UPDATE outbox o SET pushed_at = now() FROM free WHERE o.message_id = free.message_id`, ids); err != nil {
		return fmt.Errorf("noting pushed messages: %w", err)
	}
	return nil
}

// Queues counts the messages that no carrier has yet, by company. It reads the whole outbox: for operators only.
func (s *Store) Queues(ctx context.Context) (map[int64]int64, error) {
	queues := make(map[int64]int64)
	var company, n int64
	if err := postgres.Each(ctx, s.pool, "counting what companies have queued", []any{&company, &n}, func() error { queues[company] = n; return nil },
		`SELECT company_id, count(*) FROM outbox GROUP BY company_id`); err != nil {
		return nil, err
	}
	return queues, nil
}

// Package outbox has what waits for a carrier or for its time: the outbox and its claims, scheduled and suspended
// messages, quiet hours, and the walk that finds what was lost. It changes no status.
package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/inbound/handsets"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// Store has what waits in one database.
type Store struct {
	pool *pgxpool.Pool
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

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
	Body      string     // with the mask of the one-time code, if it has one
	Secret    otp.Secret // of that code; nil: none
	Channel   messages.Channel
	Segments  int
	ConcatRef byte // of its id if billed as one segment: a carrier's alphabet may need more
	messages.Form
	Attempt   int // 1 for the first; 0: it is not to be submitted (OptedOut)
	CreatedAt time.Time
	ExpiresAt time.Time

	// Records are the submit records of its segments. Unread means that they could not be read: the message must be
	// released, not submitted.
	Records []submission.Record
	Unread  bool

	// Begun means that the claim counts as begun: Begin is not needed.
	Begun bool

	// Pushed means that it was put on the queue.
	Pushed bool

	// OptedOut means that the number has opted out of the sender, and no carrier has or may have any of the message. It
	// must not be sent.
	OptedOut bool
}

// Claim returns the claim of m.
func (m *Claimed) Claim() messages.Claim { return messages.Claim{MessageID: m.ID, Epoch: m.Epoch} }

// claimOptedOut is true for a message whose recipient has opted out. The claiming statement checks it, so an opt-out
// that was committed before counts, however long the message has waited. Such a claim is not an attempt: it sets
// attempts to 0, by which Free sees that the dead process did not submit the message.
var claimOptedOut = `NOT m.test AND ` + handsets.OptedOut("o.company_id", "m.phone_number", "m.sender") + ` AND NOT ` +
	receipts.MayHave("o.message_id")

const claimedColumns = `o.message_id, o.epoch, o.begun, o.carrier, m.ulid, o.company_id, o.lane, m.sender,
	m.phone_number, m.body, m.segments,
	coalesce(m.concat_ref, (m.id % 256)::smallint) AS ref, o.attempts, m.created_at, o.expires_at,
	o.pushed_at IS NOT NULL AS pushed,
	coalesce(m.message_class, -1::smallint) AS class, coalesce(m.part, 0) AS part, m.secret,
	coalesce(m.channel, 0::smallint) AS channel`

// claimedNames are the names of claimedColumns.
const claimedNames = `message_id, epoch, begun, carrier, ulid, company_id, lane, sender, phone_number, body,
	segments, ref, attempts, created_at, expires_at, pushed, class, part, secret, channel`

// Claim claims the outbox rows of ids for dispatcher and returns those that it got: not a row that is deleted, not due,
// expired, claimed, or of another carrier by now, so an id that is on the queue twice does no harm.
//
// It does not wait for rows that another transaction has locked, because that would delay a whole lane; the walk finds
// them later.
//
// With marks the dispatcher records the beginning of each claim (Begin) before it submits anything of the message.
// Without, the claim counts as begun at once.
//
// With an error the returned messages are claimed too, and dispatcher may have claimed others (Claims).
func (s *Store) Claim(ctx context.Context, dispatcher int64, carrier string, ids []int64, marks bool) (
	[]*Claimed, error) {
	claimed, err := s.claim(ctx, carrier, claimPlain, dispatcher, !marks, ids, carrier)
	if err != nil && !postgres.Locked(err) {
		return claimed, err
	}
	got := make(map[int64]bool, len(claimed))
	for _, c := range claimed {
		got[c.ID] = true
	}
	if ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return got[id] }); len(ids) == 0 {
		return claimed, nil
	}
	others, err := s.claim(ctx, carrier, claimOther, dispatcher, !marks, ids, carrier)
	return append(claimed, others...), err
}

// claimPlain claims the messages that may be submitted (not suspended, not opted out) and whose rows have no xmax: no
// transaction has locked or changed them. So it needs no lock before the update, which would cost a WAL record of 54
// bytes and a second look at each row. If a row is locked after its xmax was read, claimPlain waits for a tenth of a
// second and fails; if it was changed, it has an xmax by now.
//
// claimOther claims the rest: also rows with the xmax of a transaction that is over, because it was rolled back or
// locked the row before it changed it (Free, Pushed, FollowApproval).
var (
	claimPlain = `
		UPDATE outbox o SET claimed_by = $1, begun = $2, attempts = o.attempts + 1, epoch = o.epoch + 1
		FROM messages m WHERE m.id = o.message_id AND o.xmax = 0 AND ` + claimByID + `
			AND NOT (` + claimSuspends + `) AND NOT (` + claimOptedOut +
		`) AND (SELECT set_config('lock_timeout', '100', true)) IS NOT NULL
		RETURNING ` + claimedColumns
	claimOther = claimFree(claimByID)
)

// claimByID is a condition on a row o of the outbox: it is one that a claim by ids may take.
//
// Appending an empty string to carrier keeps the planner from the lane's index: with statistics from a time when the
// lane was empty, it would read the whole lane instead of finding the rows by id. For 32 of 100,000 messages that is
// 3,165 pages and 52 ms instead of 69 pages and 0.1 ms.
const claimByID = `o.message_id = ANY($3) AND o.carrier || '' = $4 AND o.claimed_by IS NULL AND o.due_at <= now()
	AND o.expires_at > now()`

// claimFree claims the outbox rows o that free selects, and suspends those that must be (claimSuspends). OFFSET keeps
// the planner from evaluating that once for each column.
func claimFree(free string) string {
	return `
	WITH free AS (
		SELECT o.message_id FROM outbox o WHERE ` + free + ` FOR UPDATE SKIP LOCKED
	), claim AS (
		UPDATE outbox o SET claimed_by = CASE WHEN NOT h.suspended THEN $1::bigint END, begun = $2,
			attempts = CASE WHEN h.suspended THEN o.attempts WHEN ` + claimOptedOut + ` THEN 0 ELSE o.attempts + 1 END,
			epoch = CASE WHEN h.suspended THEN o.epoch ELSE o.epoch + 1 END,
			due_at = CASE WHEN h.suspended THEN ` + suspendedUntil + ` ELSE o.due_at END,
			pushed_at = CASE WHEN NOT h.suspended THEN o.pushed_at END
		FROM free JOIN messages m ON m.id = free.message_id
			CROSS JOIN LATERAL (SELECT ` + claimSuspends + ` AS suspended OFFSET 0) h
		WHERE o.message_id = free.message_id
		RETURNING ` + claimedColumns + `, h.suspended
	), noted AS (
		` + noteSuspensions("claim") + `
	)
	SELECT ` + claimedNames + ` FROM claim WHERE NOT suspended`
}

// ClaimDue claims up to limit rows of one lane without the queue, the oldest first: those that have been due for age
// and, if they were put on the queue, that long ago. marks is as for Claim. Its cost grows with the rows that it skips:
// claimed, or not due.
func (s *Store) ClaimDue(ctx context.Context, dispatcher int64, carrier string, lane, limit int, age time.Duration,
	marks bool) ([]*Claimed, error) {
	return s.claim(ctx, carrier, claimFree(`o.carrier = $3 AND o.lane = $4 AND o.claimed_by IS NULL
		AND greatest(o.due_at, o.pushed_at) <= now() - $6::interval AND o.expires_at > now() ORDER BY o.message_id LIMIT $5`),
		dispatcher, !marks, carrier, lane, limit, age)
}

func (s *Store) claim(ctx context.Context, carrier, query string, args ...any) ([]*Claimed, error) {
	claimed, err := readClaimed(ctx, s.pool, "claiming messages", query, args...)
	if err != nil {
		return nil, err
	}
	var tried []*Claimed
	for _, c := range claimed {
		if c.OptedOut = c.Attempt == 0; c.Attempt > 1 {
			tried = append(tried, c)
		}
	}
	// Read after the commit: a settlement that released a row just before this claim also recorded its segments.
	return claimed, readRecords(ctx, s.pool, carrier, tried)
}

// readClaimed returns the rows of a query of claimedColumns.
func readClaimed(ctx context.Context, db postgres.Querier, doing, query string, args ...any) (all []*Claimed,
	err error) {
	var c Claimed // of each row: the targets are allocated once
	var id [16]byte
	var ref, class int16
	var part int64
	err = postgres.Each(ctx, db, doing, []any{&c.ID, &c.Epoch, &c.Begun, &c.Carrier, &id, &c.CompanyID, &c.Lane, &c.Sender,
		&c.Number, &c.Body, &c.Segments, &ref, &c.Attempt, &c.CreatedAt, &c.ExpiresAt, &c.Pushed, &class, &part, &c.Secret,
		&c.Channel}, func() error {
		c.ULID, c.ConcatRef, c.Part, c.Class = id, byte(ref), messages.PartOf(part), nil
		if class >= 0 {
			c.Class = new(uint8(class))
		}
		all = append(all, new(c))
		return nil
	}, query, args...)
	return all, err
}

// readRecords sets the Records of messages of a carrier, or with an error their Unread.
func readRecords(ctx context.Context, db postgres.DB, carrier string, claimed []*Claimed) error {
	if len(claimed) == 0 {
		return nil
	}
	ids := make([]int64, len(claimed))
	for i, c := range claimed {
		ids[i] = c.ID
	}
	records, err := receipts.Records(ctx, db, carrier, ids)
	for _, c := range claimed {
		c.Records, c.Unread = records[c.ID], err != nil
	}
	return err
}

// Release releases claimed messages unsent: they are due after delay (0: as before) and the attempt does not count.
// Ended claims are not affected.
func (s *Store) Release(ctx context.Context, dispatcher int64, claims []messages.Claim, delay time.Duration) error {
	again := make([]messages.Retry, len(claims))
	for i, c := range claims {
		again[i] = messages.Retry{Claim: c, Delay: delay}
	}
	b := &pgx.Batch{}
	if (messages.Rows{Dispatcher: dispatcher, Again: again}).Queue(b); b.Len() == 0 {
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
func (s *Store) Begin(ctx context.Context, dispatcher int64, claims []messages.Claim) (begun []int64, err error) {
	ids, epochs := messages.InOrder(claims)
	return postgres.All(ctx, s.pool, fmt.Sprintf("noting that %d messages begin", len(claims)), pgx.RowTo[int64],
		`UPDATE outbox o SET begun = true FROM unnest($2::bigint[], $3::int[]) u(id, epoch)
		WHERE o.message_id = u.id AND o.epoch = u.epoch AND o.claimed_by = $1 RETURNING o.message_id`, dispatcher, ids,
		epochs)
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

// Pushed records that due messages are on a carrier's queue now. A row that is just being claimed is skipped, and so is
// one that was postponed or moved since it was read: its mark would keep Unpushed from it.
//
// The empty string is for the planner, as in claimByID.
func (s *Store) Pushed(ctx context.Context, carrier string, ids []int64) error {
	if _, err := s.pool.Exec(ctx, `
		WITH free AS (SELECT message_id FROM outbox WHERE message_id = ANY($2) AND carrier || '' = $1 AND due_at <= now()
			AND claimed_by IS NULL FOR UPDATE SKIP LOCKED)
		UPDATE outbox o SET pushed_at = now() FROM free WHERE o.message_id = free.message_id`, carrier, ids); err != nil {
		return fmt.Errorf("noting pushed messages: %w", err)
	}
	return nil
}

// Queues counts the messages that no carrier has yet, by company. It reads the whole outbox: for operators only.
func (s *Store) Queues(ctx context.Context) (map[int64]int64, error) {
	queues := make(map[int64]int64)
	var company, n int64
	return queues, postgres.Each(ctx, s.pool, "counting what companies have queued", []any{&company, &n},
		func() error { queues[company] = n; return nil },
		`SELECT company_id, count(*) FROM outbox GROUP BY company_id`)
}

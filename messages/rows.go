package messages

import (
	"cmp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Claim is one dispatcher's right to deliver a message. Epoch fences it: a message that is released and claimed again
// has a higher one, so late writes under the earlier claim change nothing.
type Claim struct {
	MessageID int64
	Epoch     int
}

// Rows is what becomes of messages' rows in the outbox (submission.Row). A claim that has ended meanwhile, and a later
// claim of the same message, are not affected.
//
// No dispatcher works on a pending message without a row in the outbox: everything that a carrier may have of it is
// in the submit records of its segments.
type Rows struct {
	Dispatcher int64
	Leave      []Claim   // these leave the outbox, if the row is under this claim or under none
	Again      []Retry   // these claims end, and their messages are due again
	Reenter    []Reentry // these return to the outbox, unless they are in it
	Tried      []int64   // those of Leave, by id, that a carrier may have refused before
	Told       []int64   // those of Leave, by id, whose sender may have asked for a report of it (Kannel)

	Carrier  string        // of the returning messages; those that are at another one by now stay
	Validity time.Duration // of returning messages without an end of their own
}

// Retry is the end of a claim whose message is to be tried again after Delay.
type Retry struct {
	Claim
	Delay  time.Duration // 0: it stays due as before
	Counts bool          // whether this attempt counts

	Refused string // why the carrier refused it; "": it did not
}

// Reentry is a message that comes back to the outbox, if it is pending and valid, and is due after Delay. Its next
// claim counts as a second attempt, and so reads its submit records.
type Reentry struct {
	MessageID int64
	Delay     time.Duration
}

// Queue adds the statements to a pipeline.
func (r Rows) Queue(b *pgx.Batch) {
	if len(r.Tried) > 0 {
		b.Queue(`WITH `+KeptRefusals+` SELECT`, r.Tried)
	}
	if len(r.Leave) > 0 {
		ids, epochs := InOrder(r.Leave)
		b.Queue(`DELETE FROM outbox o USING (SELECT unnest($1::bigint[]) AS id, unnest($3::int[]) AS epoch) u
			WHERE o.message_id = u.id AND (o.claimed_by IS NULL OR o.claimed_by = $2 AND o.epoch = u.epoch)`, ids, r.Dispatcher,
			epochs)
	}
	r.queueAgain(b)
	r.queueReentries(b)
}

// KeptRefusals is a part of a WITH clause. It keeps with the messages of $1 why a carrier last refused them: until then
// their rows of the outbox, which are about to go, have that.
const KeptRefusals = `kept AS (UPDATE messages m SET refused = o.refused, refused_at = o.refused_at
		FROM outbox o WHERE m.id = ANY($1) AND o.message_id = m.id AND o.refused IS NOT NULL)`

func (r Rows) queueAgain(b *pgx.Batch) {
	if len(r.Again) == 0 {
		return
	}
	slices.SortFunc(r.Again, func(a, b Retry) int { return cmp.Compare(a.MessageID, b.MessageID) })
	n := len(r.Again)
	ids, epochs, delays, counts, refused := make([]int64, n), make([]int32, n), make([]float64, n), make([]bool, n),
		make([]*string, n)
	for i, a := range r.Again {
		if a.Refused != "" {
			refused[i] = &a.Refused
		}
		ids[i], epochs[i], delays[i], counts[i] = a.MessageID, int32(a.Epoch), a.Delay.Seconds(), a.Counts
	}
	b.Queue(`UPDATE outbox o SET claimed_by = NULL, pushed_at = NULL,
			due_at = CASE WHEN u.delay > 0 THEN now() + make_interval(secs => u.delay) ELSE o.due_at END,
			attempts = CASE WHEN u.counts THEN o.attempts ELSE greatest(o.attempts - 1, 0) END,
			refused = coalesce(u.refused, o.refused), refused_at = CASE WHEN u.refused IS NULL THEN o.refused_at ELSE now() END
		FROM unnest($2::bigint[], $3::int[], $4::float8[], $5::boolean[], $6::text[]) u(id, epoch, delay, counts, refused)
		WHERE o.message_id = u.id AND o.epoch = u.epoch AND o.claimed_by = $1`, r.Dispatcher, ids, epochs, delays, counts,
		refused)
}

// ReentryEpoch is the first epoch of a row that returns: far from those of its earlier claims, whose late writes must
// not change it.
const ReentryEpoch = `(random() * 1000000000)::int`

func (r Rows) queueReentries(b *pgx.Batch) {
	if len(r.Reenter) == 0 {
		return
	}
	n := len(r.Reenter)
	ids, delays := make([]int64, n), make([]float64, n)
	for i, one := range r.Reenter {
		ids[i], delays[i] = one.MessageID, one.Delay.Seconds()
	}
	b.Queue(`INSERT INTO outbox AS o (message_id, company_id, carrier, lane, attempts, due_at, expires_at, pushed_at,
		epoch, since)
		SELECT m.id, m.company_id, m.carrier, `+LaneOf+`, 1, now() + make_interval(secs => u.delay), `+Expiry("$3")+
		`, NULL, `+ReentryEpoch+`, m.send_at
		FROM (SELECT id, max(delay) AS delay FROM unnest($1::bigint[], $2::float8[]) u(id, delay) GROUP BY id) u
		JOIN messages m ON m.id = u.id
		WHERE m.status = 0 AND m.carrier = $4 AND `+Expiry("$3")+` > now()
		ORDER BY m.id ON CONFLICT (message_id) DO UPDATE SET due_at = excluded.due_at, pushed_at = NULL
			WHERE o.claimed_by IS NULL AND o.due_at = o.expires_at -- it was put off to its end because its carrier was retired`,
		ids, delays, r.Validity, r.Carrier)
}

// InOrder returns claims by column, in the order of locking.
func InOrder(claims []Claim) (ids []int64, epochs []int32) {
	slices.SortFunc(claims, func(a, b Claim) int { return cmp.Compare(a.MessageID, b.MessageID) })
	ids, epochs = make([]int64, len(claims)), make([]int32, len(claims))
	for i, c := range claims {
		ids[i], epochs[i] = c.MessageID, int32(c.Epoch)
	}
	return ids, epochs
}

// LaneOf is the lane of a message m, in SQL: 0 single, 1 batch.
const LaneOf = `CASE WHEN m.batch_id IS NULL AND (m.smpp_key IS NULL OR m.urgent) THEN 0::smallint ELSE 1::smallint END`

// Expiry is the SQL of the end of a message m's validity, given the interval of those without an end of their own.
// While a message waits, its row in outbox or scheduled has that time.
func Expiry(validity string) string {
	return `coalesce(m.expire_at, greatest(m.created_at, m.send_at) + ` + validity + `::interval)`
}

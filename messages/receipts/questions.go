package receipts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/submission"
)

// Conditions and pipeline parts about the submit records of segments, for other packages' statements; they cost no
// round trip of their own. [submission.Record] says what a submit record and its marks mean.

// MayHave is an SQL condition: a carrier has, or may have, something of the message with the id in column. It is
// [submission.MayHave] in SQL.
func MayHave(column string) string {
	return `EXISTS (SELECT FROM segments s WHERE s.message_id = ` + column + ` AND ` + counts + `)`
}

// Has is [MayHave] for submit records that a carrier has answered.
func Has(column string) string {
	return `EXISTS (SELECT FROM segments s WHERE s.message_id = ` + column + ` AND ` + counts + ` AND ` + answeredKey + `)`
}

// Proven is [Has] that also counts what only a receipt has told.
func Proven(column string) string {
	return `EXISTS (SELECT FROM segments s WHERE s.message_id = ` + column + ` AND ` + counts + ` AND ` + proven + `)`
}

// Keeps is [MayHave] without the submit records that an operator has sent again.
func Keeps(column string) string {
	return `EXISTS (SELECT FROM segments s WHERE s.message_id = ` + column + ` AND s.mark IS NULL)`
}

// KeepsAt is [Keeps] for one carrier, an SQL value.
func KeepsAt(column, carrier string) string {
	return `EXISTS (SELECT FROM segments s WHERE s.message_id = ` + column + ` AND s.carrier = ` + carrier +
		` AND s.mark IS NULL)`
}

// Open is an SQL table of the messages (message_id), each once, with segments that a carrier has neither answered nor
// reported and that were not sent again, and the number of those segments: those whose submit records s meet a
// condition. Its cost grows with the submit records without an answer that meet it.
func Open(condition string) string {
	return `(SELECT s.message_id, count(DISTINCT s.segment) AS segments FROM segments s WHERE ` + condition + ` AND ` +
		openSegment + ` GROUP BY s.message_id)`
}

// namedMost is how many messages Named returns.
const namedMost = 1000

// Named returns the messages with a segment to which a carrier gave that id, in either base, the newest first.
func Named(ctx context.Context, db postgres.Querier, carrierID string) (ids []int64, err error) {
	key := Key(carrierID)
	if key == "" || key[0] == '?' || key[0] == '!' { // keys of segments without an id
		return nil, nil
	}
	return postgres.All(ctx, db, "looking for a carrier's id", pgx.RowTo[int64],
		`SELECT DISTINCT message_id FROM segments WHERE key = ANY($1) ORDER BY message_id DESC LIMIT $2`, forms(key),
		namedMost)
}

// WithoutAnswer returns the segments of messages that a carrier has neither answered nor reported, by message,
// ascending; each as often as it has such submit records. The caller holds the carrier's lock: they stay so until its
// transaction ends.
func WithoutAnswer(ctx context.Context, tx pgx.Tx, messages []int64) (map[int64][]int, error) {
	open := make(map[int64][]int, len(messages))
	var id int64
	var segment int
	return open, postgres.Each(ctx, tx, "reading which segments have no answer", []any{&id, &segment},
		func() error { open[id] = append(open[id], segment); return nil },
		`SELECT message_id, segment FROM segments s WHERE message_id = ANY($1) AND `+openSegment+
			` ORDER BY message_id, segment`, messages)
}

// WithoutAnswerUpTo returns the message of the nth submit record without an answer, decided or not, after those of a
// message; 0: there are fewer.
func WithoutAnswerUpTo(ctx context.Context, tx pgx.Tx, after int64, n int) (id int64, err error) {
	if err := tx.QueryRow(ctx, `SELECT coalesce((
			SELECT s.message_id FROM segments s WHERE `+unansweredKey+
		` AND s.message_id > $1 ORDER BY s.message_id OFFSET $2 LIMIT 1
		), 0)`, after, n-1).Scan(&id); err != nil {
		return 0, fmt.Errorf("counting the submit records without an answer: %w", err)
	}
	return id, nil
}

// QueueMark adds to a pipeline a mark on all submit records of messages.
func QueueMark(b *pgx.Batch, messages []int64, mark submission.Mark) {
	b.Queue(`UPDATE segments SET mark = $2 WHERE message_id = ANY($1)`, messages, int16(mark))
}

// Overrule marks the open submit records of messages at a carrier: an operator sends their segments again. The caller
// holds the carrier's lock.
func Overrule(ctx context.Context, tx pgx.Tx, carrier string, messages []int64) error {
	if _, err := tx.Exec(ctx, `UPDATE segments s SET mark = $3 WHERE message_id = ANY($1) AND carrier = $2 AND `+
		openRecord, messages, carrier, int16(submission.Overruled)); err != nil {
		return fmt.Errorf("marking the unanswered segments of %d messages: %w", len(messages), err)
	}
	return nil
}

// Submitted is an SQL table of the messages (message_id), each once, of which a carrier has, or may have, a segment.
const Submitted = `(SELECT DISTINCT message_id FROM segments s WHERE ` + counts + `)`

// QueueAccepted adds to a pipeline a query for the messages of which a carrier has a segment, by its answer or a
// receipt; it fills the set when the results are read.
func QueueAccepted(b *pgx.Batch, messages []int64) (accepted map[int64]bool) {
	accepted = make(map[int64]bool, len(messages))
	var id int64
	postgres.EachQueued(b.Queue(`SELECT DISTINCT message_id FROM segments s
		WHERE message_id = ANY($1) AND (`+answeredKey+` OR s.state IS NOT NULL)`, messages), []any{&id},
		func() error { accepted[id] = true; return nil })
	return accepted
}

// Records returns the submit records of the segments of messages that are at a carrier now.
func Records(ctx context.Context, db postgres.DB, carrier string, messages []int64) (map[int64][]submission.Record,
	error) {
	b := &pgx.Batch{}
	records := QueueRecords(b, carrier, messages)
	if err := db.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("reading the segments of %d messages: %w", len(messages), err)
	}
	return records, nil
}

// QueueRecords is [Records] in a pipeline; it fills the map when the results are read.
func QueueRecords(b *pgx.Batch, carrier string, messages []int64) map[int64][]submission.Record {
	records := make(map[int64][]submission.Record, len(messages))
	var id int64
	var c submission.Record
	var code string
	postgres.EachQueued(b.Queue(`SELECT message_id, segment, total, `+answeredKey+
		`, coalesce(state, 0), coalesce(receipt_at, submitted_at),
			coalesce(receipt, ''), coalesce(error, ''), coalesce(mark, 0), carrier <> $2, coalesce(receipt_at - submitted_at,
			'0')
		FROM segments s WHERE message_id = ANY($1)`, messages, carrier),
		[]any{&id, &c.Segment, &c.Total, &c.Answered, &c.Status, &c.At, &c.Receipt, &code, &c.Mark, &c.Other, &c.After},
		func() error {
			c.Reason = reasonOf(c.Receipt, code)
			records[id] = append(records[id], c)
			return nil
		})
	return records
}

// Refusal is a carrier's late refusal of a segment that was recorded as unanswered: nothing of it is there.
type Refusal struct {
	MessageID int64
	Segment   int // from 1
	At        time.Time
}

// Refuse deletes, for each refusal, the oldest unanswered submit record of its segment from before it: by its address
// (ctid), because the table has no key. The caller holds the carrier's lock.
func Refuse(ctx context.Context, tx pgx.Tx, carrier string, refusals []Refusal) error {
	n := len(refusals)
	if n == 0 {
		return nil
	}
	messages, segments, at := make([]int64, n), make([]int16, n), make([]time.Time, n)
	for i, r := range refusals {
		messages[i], segments[i], at[i] = r.MessageID, int16(r.Segment), r.At
	}
	if _, err := tx.Exec(ctx, `DELETE FROM segments s USING (SELECT message_id, segment, count(*) AS n, max(at) AS at
			FROM unnest($2::bigint[], $3::smallint[], $4::timestamptz[]) u(message_id, segment, at) GROUP BY 1, 2) l
		CROSS JOIN LATERAL (
			SELECT s.ctid AS address FROM segments s
			WHERE s.message_id = l.message_id AND s.segment = l.segment AND s.carrier = $1 AND `+unansweredKey+
		` AND s.state IS NULL AND s.submitted_at <= l.at
			ORDER BY s.submitted_at LIMIT l.n
		) one WHERE s.ctid = one.address`, carrier, messages, segments, at); err != nil {
		return fmt.Errorf("deleting %d refused submit records: %w", n, err)
	}
	return nil
}

// QueuePurge adds the deletion of messages' segments and receipts to a pipeline.
func QueuePurge(b *pgx.Batch, messages []int64) {
	b.Queue(`DELETE FROM segments WHERE message_id = ANY($1)`, messages)
	b.Queue(`DELETE FROM receipts WHERE message_id = ANY($1)`, messages)
}

// proven is a condition on a row s of segments: the carrier has, or had, the segment, by its answer or a receipt.
const proven = `(` + answeredKey + ` OR s.state IS NOT NULL)`

// Times is an SQL table of messages' times at the carriers, one row for each message (message_id) with submit records
// that meet the condition on their message's id, s.message_id: whether a carrier has or may have something of it
// (may_have), when the first carrier and the present one first had a segment (first_at, at), and the present one's
// first and last receipt (reported, reported_last).
func Times(condition string) string {
	return `(SELECT s.message_id, bool_or(` + counts + `) AS may_have, min(s.submitted_at) FILTER (WHERE ` + proven +
		`) AS first_at,
			min(s.submitted_at) FILTER (WHERE ` + proven + ` AND ` + counts + `) AS at,
			min(s.receipt_at) FILTER (WHERE ` + counts + `) AS reported, max(s.receipt_at) FILTER (WHERE ` + counts +
		`) AS reported_last
		FROM segments s WHERE ` + condition + ` GROUP BY s.message_id)`
}

// Carried is an SQL table of the submit records that meet such a condition: message_id, carrier, link, submitted_at,
// and whether the carrier has it, by its answer or a receipt (accepted); otherwise it may have it.
func Carried(condition string) string {
	return `(SELECT s.message_id, s.carrier, s.link, s.submitted_at, ` + proven + ` AS accepted FROM segments s WHERE ` +
		condition + `)`
}

// Accepted is an SQL table of the submit records that meet a condition on the columns of segments s and that the
// carrier accepted, by its answer or a receipt: message_id, link, key, carrier_id as the carrier wrote it (empty if it
// gave none), submitted_at.
func Accepted(condition string) string {
	return `(SELECT s.message_id, s.link, s.key, CASE WHEN s.key LIKE '?%' OR s.key LIKE '!%' THEN ''
		ELSE coalesce(s.carrier_id, s.key) END AS carrier_id, s.submitted_at
		FROM segments s WHERE ` + proven + ` AND ` + condition + `)`
}

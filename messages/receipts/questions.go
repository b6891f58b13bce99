package receipts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/submission"
)

// Conditions and pipeline parts about segments, for other packages' statements; they cost no round trip of their own.
// Of a message that was sent on to another carrier (QueuePassed), the earlier copies count only in its history and its
// refund.

// MayHave is an SQL condition: a carrier has, or may have, a segment of the message with the id in column.
func MayHave(column string) string {
	return `EXISTS (SELECT FROM segments s WHERE s.message_id = ` + column + ` AND s.passed IS NULL)`
}

// Has is [MayHave] for segments that a carrier has answered.
func Has(column string) string {
	return `EXISTS (SELECT FROM segments s WHERE s.message_id = ` + column + ` AND s.passed IS NULL AND ` + answeredKey + `)`
}

// LeftUnanswered is [MayHave] for segments that a carrier has neither answered nor reported.
func LeftUnanswered(column string) string {
	return `EXISTS (SELECT FROM segments s WHERE s.message_id = ` + column + ` AND s.passed IS NULL AND s.state IS NULL AND ` + unansweredKey + `)`
}

// UnansweredSegments is an SQL expression: the number of segments of the message with the id in column that a carrier
// has neither answered nor reported.
func UnansweredSegments(column string) string {
	return `(SELECT count(DISTINCT s.segment) FROM segments s WHERE s.message_id = ` + column + ` AND s.passed IS NULL AND s.state IS NULL AND ` + unansweredKey + `)`
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
		`SELECT DISTINCT message_id FROM segments WHERE key = ANY($1) ORDER BY message_id DESC LIMIT $2`, forms(key), namedMost)
}

// WithoutAnswer returns the segments of messages that a carrier has neither answered nor reported, by message,
// ascending; each as often as it has such copies. The caller holds the carrier's lock: they stay so until its
// transaction ends.
func WithoutAnswer(ctx context.Context, tx pgx.Tx, messages []int64) (map[int64][]int, error) {
	open := make(map[int64][]int, len(messages))
	var id int64
	var segment int
	if err := postgres.Each(ctx, tx, "reading which segments have no answer", []any{&id, &segment}, func() error { open[id] = append(open[id], segment); return nil },
		`SELECT message_id, segment FROM segments s
		WHERE message_id = ANY($1) AND passed IS NULL AND state IS NULL AND `+unansweredKey+` ORDER BY message_id, segment`, messages); err != nil {
		return nil, err
	}
	return open, nil
}

// QueuePassed adds to a pipeline the mark that messages were sent on to another carrier.
func QueuePassed(b *pgx.Batch, messages []int64) {
	b.Queue(`UPDATE segments SET passed = true WHERE message_id = ANY($1)`, messages)
}

// Submitted is an SQL table of the messages (message_id), each once, of which a carrier has, or may have, a segment.
const Submitted = `(SELECT DISTINCT message_id FROM segments WHERE passed IS NULL)`

// QueueAccepted adds to a pipeline a query for the messages of which a carrier has a segment, by its answer or a
// receipt; it calls accepted for each.
func QueueAccepted(b *pgx.Batch, messages []int64, accepted func(message int64)) {
	b.Queue(`SELECT DISTINCT message_id FROM segments s WHERE message_id = ANY($1) AND (`+answeredKey+` OR s.state IS NOT NULL)`, messages).
		Query(func(rows pgx.Rows) error {
			var id int64
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error { accepted(id); return nil })
			return err
		})
}

// Out calls out for each segment of messages that need not be submitted: accepted by any carrier, or left unanswered by
// the message's own in carriers. Segments that another carrier left unanswered do not count. A message's segments are
// in order.
func Out(ctx context.Context, db postgres.Querier, messages []int64, carriers []string, out func(message int64, segment int, accepted bool)) error {
	var id int64
	var segment int
	var accepted bool
	if err := postgres.Each(ctx, db, "reading which segments are out", []any{&id, &segment, &accepted}, func() error { out(id, segment, accepted); return nil },
		`SELECT s.message_id, s.segment, bool_or(`+answeredKey+` OR coalesce(s.state = 1, false))
		FROM segments s JOIN unnest($1::bigint[], $2::text[]) o(message_id, carrier) USING (message_id)
		WHERE s.passed IS NULL AND (s.carrier = o.carrier OR `+answeredKey+` OR s.state = 1)
		GROUP BY s.message_id, s.segment ORDER BY s.message_id, s.segment`, messages, carriers); err != nil {
		return err
	}
	return nil
}

// Copies returns the copies of the segments of messages, for their verdicts.
func Copies(ctx context.Context, tx pgx.Tx, messages []int64) (copies map[int64][]submission.Copy, err error) {
	b := &pgx.Batch{}
	copies = QueueCopies(b, messages)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("reading the segments of %d messages: %w", len(messages), err)
	}
	return copies, nil
}

// QueueCopies is [Copies] in a pipeline; it fills the map when the results are read.
func QueueCopies(b *pgx.Batch, messages []int64) map[int64][]submission.Copy {
	copies := make(map[int64][]submission.Copy, len(messages))
	b.Queue(`SELECT message_id, segment, `+answeredKey+`, coalesce(state, 0), coalesce(receipt_at, submitted_at),
		coalesce(receipt, ''), coalesce(error, ''), passed IS NOT NULL, coalesce(receipt_at - submitted_at, '0') FROM segments s WHERE message_id = ANY($1)`, messages).
		Query(func(rows pgx.Rows) error {
			var id int64
			var c submission.Copy
			var code string
			_, err := pgx.ForEachRow(rows, []any{&id, &c.Segment, &c.Answered, &c.Status, &c.At, &c.Receipt, &code, &c.Passed, &c.After}, func() error {
				c.Reason = reasonOf(c.Receipt, code)
				copies[id] = append(copies[id], c)
				return nil
			})
			return err
		})
	return copies
}

// NotTaken is an SQL statement that deletes unanswered copies of segments, by message and number from 1: the carrier
// has refused them. The arguments are SQL, the first two arrays. It returns the message of each deleted copy. The
// caller holds the carrier's lock (Matcher.Lock).
func NotTaken(messages, segments, carrier string) string {
	return `DELETE FROM segments s USING (SELECT message_id, segment, count(*) AS n FROM unnest(` + messages + `, ` + segments + `) u(message_id, segment) GROUP BY 1, 2) l
		CROSS JOIN LATERAL (
			SELECT s.ctid AS address FROM segments s
			WHERE s.message_id = l.message_id AND s.segment = l.segment AND s.carrier = ` + carrier + ` AND ` + unansweredKey + ` AND s.state IS NULL
			ORDER BY s.submitted_at LIMIT l.n
		) one WHERE s.ctid = one.address RETURNING s.message_id`
}

// QueuePurge adds the deletion of messages' segments and receipts to a pipeline.
func QueuePurge(b *pgx.Batch, messages []int64) {
	b.Queue(`DELETE FROM segments WHERE message_id = ANY($1)`, messages)
	b.Queue(`DELETE FROM receipts WHERE message_id = ANY($1)`, messages)
}

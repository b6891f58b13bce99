package receipts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// handset returns the part that all forms of an address share, national or international, with or without a plus: its
// last eight digits; nil for an address that is not a number.
func handset(address string) *int32 {
	digits := strings.TrimLeft(sms.CompactAddress(postgres.Text(address)), "+")
	if len(digits) < 8 || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	n, err := strconv.ParseInt(digits[len(digits)-8:], 10, 32)
	if err != nil {
		return nil
	}
	last := int32(n)
	return &last
}

// QueueObscure adds the removal of messages' numbers from segments and receipts to a pipeline. The messages must be
// final: later receipts are not compared with the number.
func QueueObscure(b *pgx.Batch, messages []int64) {
	b.Queue(`UPDATE segments SET handset = NULL WHERE message_id = ANY($1) AND handset IS NOT NULL`, messages)
	b.Queue(`UPDATE receipts SET number = '', handset = NULL WHERE message_id = ANY($1)`, messages)
}

// Sought is a handset that receipts may name since a time.
type Sought struct {
	Number sms.Number
	Since  time.Time
}

// Stray is a handset's receipts in the inbox.
type Stray struct {
	Count  int          // 0: none
	Sent   int          // ids with a receipt that means sent
	Failed int          // ids with one that means failed
	Latest InboxReceipt // the last of them
}

// Means returns the status of all unanswered messages to the number, which have this many segments: Sent with a receipt
// for each segment that means sent and none that means failed; Failed with one for each message that means failed and
// none that means sent; else Pending.
func (s Stray) Means(messages, segments int) sms.Status {
	switch {
	case s.Failed == 0 && s.Sent > 0 && s.Sent >= segments:
		return sms.Sent
	case s.Failed > 0 && s.Failed >= messages && s.Sent == 0:
		return sms.Failed
	}
	return sms.Pending
}

// Handsets are the numbers as the column handset of segments has them.
func Handsets(numbers []sms.Number) []*int32 {
	handsets := make([]*int32, len(numbers))
	for i, number := range numbers {
		handsets[i] = handset(string(number))
	}
	return handsets
}

// Strays returns each handset's receipts in the inbox since a time, in the order of sought, of every carrier: a message
// may have gone to another one than its own. It reads the whole inbox.
func Strays(ctx context.Context, pool *pgxpool.Pool, sought []Sought) ([]Stray, error) {
	n := len(sought)
	if n == 0 {
		return nil, nil
	}
	index, handsets, since := make([]int32, n), make([]*int32, n), make([]time.Time, n)
	for i, s := range sought {
		index[i], handsets[i], since[i] = int32(i), handset(string(s.Number)), s.Since
	}
	strays := make([]Stray, n)
	var i int32
	var s Stray
	l := &s.Latest
	targets := []any{&i, &s.Count, &s.Sent, &s.Failed, &l.ID, &l.At, &l.Carrier, &l.Link, &l.CarrierID, &l.Number,
		&l.State, &l.Error, &l.Unmarked}
	return strays, postgres.Each(ctx, pool, "looking for receipts of no message", targets,
		func() error { strays[i] = s; return nil },
		`SELECT g.n, g.count, g.sent, g.failed, `+inboxColumns+` FROM (
			SELECT u.n, count(*), count(DISTINCT (r.carrier, r.key)) FILTER (WHERE r.status = $4) AS sent,
				count(*) FILTER (WHERE r.status = $5) AS failed, max(r.id) AS latest
			FROM unnest($1::int[], $2::int[], $3::timestamptz[]) u(n, handset, since)
			JOIN receipts r ON r.handset = u.handset AND r.received_at >= u.since
			WHERE r.message_id IS NULL GROUP BY u.n
		) g JOIN receipts r ON r.id = g.latest`, index, handsets, since, sms.Sent, sms.Failed)
}

// Naming returns the receipts of the inbox that name a number, of all carriers. It reads the whole inbox.
func Naming(ctx context.Context, pool *pgxpool.Pool, number sms.Number) ([]InboxReceipt, error) {
	return postgres.All(ctx, pool, "looking for the receipts of a number", pgx.RowToStructByPos[InboxReceipt],
		`SELECT `+inboxColumns+` FROM receipts r WHERE message_id IS NULL AND handset = $1 ORDER BY id`,
		handset(string(number)))
}

// Erase deletes the receipts of [Naming] and returns how many.
func Erase(ctx context.Context, pool *pgxpool.Pool, number sms.Number) (int64, error) {
	tag, err := pool.Exec(ctx, `DELETE FROM receipts WHERE message_id IS NULL AND handset = $1`, handset(string(number)))
	if err != nil {
		return 0, fmt.Errorf("deleting the receipts of a number: %w", err)
	}
	return tag.RowsAffected(), nil
}

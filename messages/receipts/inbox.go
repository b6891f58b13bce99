package receipts

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
)

// inboxScanned is how many receipts one page of Inbox reads.
const inboxScanned = 5_000

// InboxReceipt is a receipt without a message.
type InboxReceipt struct {
	ID        int64
	At        time.Time // when it last arrived
	Carrier   string
	Link      string
	CarrierID string // as the receipt writes it
	Number    string // the handset, as the carrier writes it
	State     string
	Error     string
	Unmarked  bool // only its text says that it is a receipt
}

// inboxColumns are the columns of a row r of receipts for InboxReceipt.
const inboxColumns = `r.id, r.received_at, r.carrier, r.link, r.carrier_id, r.number, r.state, r.error, r.checked`

// Inbox returns up to limit receipts without a message, of all carriers, the latest first, with ids below before (0:
// from the latest), and the next page's before, 0 for none. Receipts whose message is found later leave the list.
func Inbox(ctx context.Context, pool *pgxpool.Pool, before int64, limit int) (page []InboxReceipt, next int64,
	err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	var last, seen int64
	b := &pgx.Batch{}
	b.Queue(`SELECT coalesce(min(id), 0), count(*) FROM (SELECT id FROM receipts WHERE id < $1 ORDER BY id DESC
		LIMIT $2) r`, before, inboxScanned).
		QueryRow(func(row pgx.Row) error { return row.Scan(&last, &seen) })
	b.Queue(`SELECT `+inboxColumns+` FROM (SELECT * FROM receipts WHERE id < $1 ORDER BY id DESC LIMIT $2) r
		WHERE message_id IS NULL ORDER BY id DESC LIMIT $3`, before, inboxScanned, limit+1).
		Query(func(rows pgx.Rows) (err error) {
			page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[InboxReceipt])
			return err
		})
	if err := pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, 0, fmt.Errorf("listing receipts of no message: %w", err)
	}
	switch {
	case len(page) > limit:
		page = page[:limit]
		return page, page[limit-1].ID, nil
	case seen == inboxScanned:
		return page, last, nil
	}
	return page, 0, nil
}

// Word is a state of a carrier's receipts that is not final.
type Word struct {
	Carrier string
	State   string
	Count   int64
	Latest  time.Time
}

// wordsMost is how many words Words returns.
const wordsMost = 1_000

// Words returns the states of the kept receipts that are not final, the most frequent first, at most 1,000. It reads
// all receipts that settled nothing.
func Words(ctx context.Context, pool *pgxpool.Pool) ([]Word, error) {
	return postgres.All(ctx, pool, "looking for the states of receipts", pgx.RowToStructByPos[Word],
		`SELECT carrier, state, count(*), max(received_at) FROM receipts WHERE status IS NULL AND NOT checked
		GROUP BY carrier, state ORDER BY count(*) DESC, carrier, state LIMIT $1`, wordsMost)
}

// FirstSince returns the id of the first receipt without a message that arrived, also as a repetition, at since or
// later: [Inbox] has none of these with a smaller id. Without any it is larger than all ids.
func FirstSince(ctx context.Context, pool *pgxpool.Pool, since time.Time) (id int64, err error) {
	if since.IsZero() {
		return 0, nil
	}
	// MATERIALIZED keeps the planner from walking over all ids to the first match.
	if err := pool.QueryRow(ctx, `WITH came AS MATERIALIZED (SELECT id FROM receipts WHERE received_at >= $1
		AND message_id IS NULL)
		SELECT coalesce(min(id), $2) FROM came`, since, int64(math.MaxInt64)).Scan(&id); err != nil {
		return 0, fmt.Errorf("looking for the first receipt of no message since: %w", err)
	}
	return id, nil
}

// Echoed returns the indexes of the segments whose final receipt is in the inbox: it echoes their Reference and names
// their Number.
func (m *Matcher) Echoed(ctx context.Context, pool *pgxpool.Pool, segments []Segment) ([]int, error) {
	n := len(segments)
	index, references, handsets := make([]int32, n), make([]int32, n), make([]*int32, n)
	for i := range segments {
		index[i], references[i], handsets[i] = int32(i), int32(segments[i].Reference), handset(string(segments[i].Number))
	}
	return postgres.All(ctx, pool, fmt.Sprintf("looking for receipts of %d unanswered segments", n), pgx.RowTo[int], `
		SELECT u.n FROM unnest($2::int[], $3::int[], $4::int[]) u(n, reference, handset)
		WHERE EXISTS (SELECT FROM receipts r WHERE r.reference = u.reference AND r.carrier = $1 AND r.message_id IS NULL
			AND r.status IS NOT NULL AND r.received_at > now() - $5::interval AND r.handset = u.handset)`,
		m.carrier, index, references, handsets, inboxReach)
}

// forgetLimit is the most that one call of Forget deletes.
const forgetLimit = 20_000

// Forget deletes receipts older than life, of the inbox and of messages, up to 20,000 a call, and returns how many.
func Forget(ctx context.Context, pool *pgxpool.Pool, life time.Duration) (int64, error) {
	tag, err := pool.Exec(ctx, `DELETE FROM receipts WHERE id IN (
		SELECT id FROM receipts WHERE received_at < now() - $1::interval ORDER BY received_at LIMIT $2
			FOR UPDATE SKIP LOCKED)`, life, forgetLimit)
	if err != nil {
		return 0, fmt.Errorf("forgetting receipts: %w", err)
	}
	return tag.RowsAffected(), nil
}

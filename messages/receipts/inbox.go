package receipts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Unanswered is a segment that a carrier has not answered yet.
type Unanswered struct {
	Number    sms.Number // of its message
	Reference uint16     // its user_message_reference
}

// Echoed returns the indexes of the segments whose final receipt is in the inbox: it echoes their reference and names
// their handset.
func (m *Matcher) Echoed(ctx context.Context, pool *pgxpool.Pool, segments []Unanswered) ([]int, error) {
	n := len(segments)
	index, references, handsets := make([]int32, n), make([]int32, n), make([]*int32, n)
	for i, seg := range segments {
		index[i], references[i], handsets[i] = int32(i), int32(seg.Reference), handset(string(seg.Number))
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
		SELECT id FROM receipts WHERE received_at < now() - $1::interval ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, life, forgetLimit)
	if err != nil {
		return 0, fmt.Errorf("forgetting receipts: %w", err)
	}
	return tag.RowsAffected(), nil
}

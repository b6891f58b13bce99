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

// Unanswered is a segment that a carrier has left unanswered so far.
type Unanswered struct {
	Number    sms.Number // of its message
	Reference uint16     // its user_message_reference
}

// Echoed returns those of segments, by their indexes, whose final receipt waits in
// the inbox: it echoes their reference and names their handset.
func (m *Matcher) Echoed(ctx context.Context, pool *pgxpool.Pool, segments []Unanswered) ([]int, error) {
	n := len(segments)
	index, references, handsets := make([]int32, n), make([]int32, n), make([]*int32, n)
	for i, seg := range segments {
		index[i], references[i], handsets[i] = int32(i), int32(seg.Reference), handset(string(seg.Number))
	}
	rows, err := pool.Query(ctx, `
		SELECT u.n FROM unnest($2::int[], $3::int[], $4::int[]) u(n, reference, handset)
		WHERE EXISTS (SELECT FROM receipts r WHERE r.reference = u.reference AND r.carrier = $1 AND r.message_id IS NULL
			AND r.status IS NOT NULL AND r.received_at > now() - $5::interval AND r.handset = u.handset)`,
		m.carrier, index, references, handsets, inboxReach)
	if err != nil {
		return nil, fmt.Errorf("looking for receipts of %d unanswered segments: %w", n, err)
	}
	echoed, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, fmt.Errorf("looking for receipts of %d unanswered segments: %w", n, err)
	}
	return echoed, nil
}

// A receipt is looked for under other formats once it has waited for inboxAge:
// by then its own response is in, if it was only late.
const (
	inboxAge    = 2 * time.Second
	inboxLimit  = 1000
	inboxRounds = 5 // a walk looks at so many times inboxLimit
)

// Rematching is one walk over a carrier's inbox, for receipts that were found under
// no format of their id that was tried. It goes on where the last one ended.
type Rematching struct {
	m      *Matcher
	end    int64 // what is older is committed, whoever's it is
	rounds int

	// Of the last Some.
	looked int
	after  int64
	found  []vote
}

// Rematch begins a walk. No transaction that records receipts may take longer than
// longest.
func (m *Matcher) Rematch(ctx context.Context, pool *pgxpool.Pool, longest time.Duration) (*Rematching, error) {
	if m.seen == 0 {
		end, err := inboxEnd(ctx, pool, inboxReach)
		if err != nil {
			return nil, err
		}
		m.seen = end
	}
	end, err := inboxEnd(ctx, pool, inboxAge+longest)
	if err != nil {
		return nil, err
	}
	return &Rematching{m: m, end: end}, nil
}

// inboxEnd is the id of the youngest receipt older than age.
func inboxEnd(ctx context.Context, pool *pgxpool.Pool, age time.Duration) (id int64, err error) {
	err = pool.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM receipts WHERE received_at < now() - $1::interval`, age).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("finding the end of the inbox: %w", err)
	}
	return id, nil
}

// Some looks at the next receipts of the walk, up to 1,000, in the caller's
// transaction, and returns the segments that they have settled. When that was rolled
// back it may be called again.
func (w *Rematching) Some(ctx context.Context, tx pgx.Tx) ([]SegmentState, error) {
	w.looked, w.after, w.found = 0, w.m.seen, nil
	inbox, err := w.m.inbox(ctx, tx, inboxAge, inboxLimit)
	if err != nil || len(inbox) == 0 {
		return nil, err
	}
	w.looked, w.after = len(inbox), inbox[len(inbox)-1].id
	rows := w.m.newMatching(nil, nil, 0)
	for i := range inbox {
		for _, format := range known {
			inbox[i].keys = append(inbox[i].keys, receiptKey(format, inbox[i].CarrierID))
		}
		rows.reports = append(rows.reports, inbox[i].reported)
	}
	b := &pgx.Batch{}
	b.Queue(lockCarrier, w.m.carrier)
	rows.load(b)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("looking for the segments of %d receipts: %w", len(inbox), err)
	}
	for n, format := range known {
		for i := range inbox {
			w.try(rows, &inbox[i], inbox[i].keys[n], format)
		}
	}
	b = &pgx.Batch{}
	rows.write(b)
	return rows.recorded().Settled, postgres.Later(ctx, tx, "taking receipts out of the inbox", b)
}

// try settles the segment of a receipt whose id is in a format by that key: one of its handset.
// A receipt settles one segment.
func (w *Rematching) try(rows *matching, r *waiting, key string, format Format) {
	if r.taken || r.handset == nil || key == r.key {
		return
	}
	if one := r.best(rows.byKey[key], func(one *row) bool { return one.open() && one.same(r.handset) }); one != nil {
		one.settle(&r.reported)
		rows.take(r)
		rows.settled, w.found = append(rows.settled, one), append(w.found, vote{r.Link, format})
	}
}

// Committed says that the transaction of the last Some was committed. It returns
// the links of the receipts that have found their segment, what links' formats became
// known by it, and whether there is more to look at now.
func (w *Rematching) Committed() (matched []string, learnt []Learnt, more bool) {
	w.m.seen = w.after
	for _, v := range w.found {
		matched = append(matched, v.link)
	}
	if w.looked < inboxLimit {
		w.m.seen = max(w.m.seen, w.end) // others' receipts are not looked at again either
	} else {
		w.rounds++
		more = w.rounds < inboxRounds
	}
	return matched, w.m.learn(w.found), more
}

// inbox returns final receipts that have waited for their segment for at least age
// and were not looked at before, oldest first, at most limit.
func (m *Matcher) inbox(ctx context.Context, tx pgx.Tx, age time.Duration, limit int) ([]waiting, error) {
	rows, err := tx.Query(ctx, `
		SELECT id, link, carrier_id, key, handset, state, status, error, received_at FROM receipts
		WHERE id > $2 AND carrier = $1 AND message_id IS NULL AND status IS NOT NULL AND received_at <= now() - $3::interval
		ORDER BY id LIMIT $4`, m.carrier, m.seen, age, limit)
	if err != nil {
		return nil, fmt.Errorf("reading the inbox of %s: %w", m.carrier, err)
	}
	inbox, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r waiting, err error) {
		r.Final = true
		err = row.Scan(&r.id, &r.Link, &r.CarrierID, &r.key, &r.handset, &r.State, &r.Status, &r.Error, &r.At)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the inbox of %s: %w", m.carrier, err)
	}
	return inbox, nil
}

// forgetLimit bounds what one call forgets.
const forgetLimit = 20_000

// Forget deletes receipts older than life, up to 20,000 a call, and
// answers how many: those of the inbox and those kept beside a message.
func Forget(ctx context.Context, pool *pgxpool.Pool, life time.Duration) (int64, error) {
	tag, err := pool.Exec(ctx, `DELETE FROM receipts WHERE id IN (
		SELECT id FROM receipts WHERE received_at < now() - $1::interval ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, life, forgetLimit)
	if err != nil {
		return 0, fmt.Errorf("forgetting receipts: %w", err)
	}
	return tag.RowsAffected(), nil
}

package messages_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/numberfilter"
	"intumwa/messages/outbox"
	"intumwa/messages/receipts"
	"intumwa/messages/rerouting"
	"intumwa/messages/retention"
	"intumwa/messages/statistics"
	"intumwa/messages/submission"
	"intumwa/sms"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const carrier = "lumitel"

// stores are those of messages and of the packages below, on one pool.
type (
	stores struct {
		*messages.Store
		*waiting
		*moves
		*counts
		*purges
		*lookups
		*filters
	}
	waiting = outbox.Store
	moves   = rerouting.Store
	counts  = statistics.Store
	purges  = retention.Store
	lookups = lookup.Store
	filters = numberfilter.Store
)

func storesOf(pool *pgxpool.Pool) stores {
	return stores{messages.New(pool), outbox.New(pool), rerouting.New(pool), statistics.New(pool), retention.New(pool),
		lookup.New(pool), numberfilter.New(pool)}
}

// testStore is the stores of a database of its own, with helpers.
type testStore struct {
	testing.TB
	pool *pgxpool.Pool
	stores
	matcher  *receipts.Matcher
	numbered int
}

func newTestStore(t testing.TB) *testStore {
	pool := testenv.Pool(t)
	testenv.Companies(t, pool, 3)
	return &testStore{TB: t, pool: pool, stores: storesOf(pool), matcher: newMatcher()}
}

// newMatcher returns the matcher of a carrier with the same ids in its receipts.
func newMatcher() *receipts.Matcher { return receipts.New(carrier, receipts.Same) }

// newHotStore returns a testStore whose connections plan like those of dispatcher and intake.
func newHotStore(t testing.TB) *testStore {
	t.Helper()
	pool := testenv.PoolWith(t, postgres.Options{BatchUpdates: true})
	testenv.Companies(t, pool, 3)
	return &testStore{TB: t, pool: pool, stores: storesOf(pool), matcher: newMatcher()}
}

func (d *testStore) tx(do func(ctx context.Context, tx pgx.Tx) error) {
	d.Helper()
	ctx := d.Context()
	if err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return do(ctx, tx) }); err != nil {
		d.Fatal(err)
	}
}

func (d *testStore) exec(statement string, args ...any) {
	d.Helper()
	testenv.Exec(d, d.pool, statement, args...)
}

// count returns a query's only number.
func (d *testStore) count(query string, args ...any) (n int) {
	d.Helper()
	if err := d.pool.QueryRow(d.Context(), query, args...).Scan(&n); err != nil {
		d.Fatal(err)
	}
	return n
}

// column returns the rows of one column.
func column[T any](d *testStore, query string, args ...any) []T {
	d.Helper()
	rows, _ := d.pool.Query(d.Context(), query, args...) // its error is the rows' error
	all, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		d.Fatal(err)
	}
	return all
}

// compose returns a message of one segment from company 1 for carrier.
func (d *testStore) compose(change ...func(*messages.Message)) *messages.Message {
	d.numbered++
	m := &messages.Message{
		ULID: ulid.Make(), CompanyID: 1, UserID: 1, Number: sms.Number(fmt.Sprintf("+25761%06d", d.numbered)), Sender: "DEMO",
		Body: "Hello", Encoding: sms.GSM7, Segments: 1, Carrier: carrier, Validity: time.Hour,
	}
	for _, c := range change {
		c(m)
	}
	return m
}

func segments(n int) func(*messages.Message) { return func(m *messages.Message) { m.Segments = n } }

func to(number sms.Number) func(*messages.Message) {
	return func(m *messages.Message) { m.Number = number }
}

// insert records messages in one transaction.
func (d *testStore) insert(list ...*messages.Message) (ids []int64) {
	d.Helper()
	d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
		ids, err = d.Insert(ctx, tx, list)
		return err
	})
	return ids
}

// pending records n plain messages.
func (d *testStore) pending(n int, change ...func(*messages.Message)) []int64 {
	d.Helper()
	list := make([]*messages.Message, n)
	for i := range list {
		list[i] = d.compose(change...)
	}
	return d.insert(list...)
}

func (d *testStore) claim(dispatcher int64, ids ...int64) []*outbox.Claimed {
	d.Helper()
	claimed, err := d.Claim(d.Context(), dispatcher, carrier, ids, false)
	if err != nil {
		d.Fatal(err)
	}
	return claimed
}

func idsOf(claimed []*outbox.Claimed) []int64 {
	ids := make([]int64, len(claimed))
	for i, c := range claimed {
		ids[i] = c.ID
	}
	return ids
}

func claimsOf(claimed []*outbox.Claimed) []messages.Claim {
	claims := make([]messages.Claim, len(claimed))
	for i, c := range claimed {
		claims[i] = c.Claim()
	}
	return claims
}

func accepted(message int64, id string, change ...func(*receipts.Segment)) receipts.Segment {
	p := receipts.Segment{MessageID: message, Segment: 1, Total: 1, Link: "lumitel-1", CarrierID: id, At: time.Now()}
	for _, c := range change {
		c(&p)
	}
	return p
}

func segment(n, total int) func(*receipts.Segment) {
	return func(p *receipts.Segment) { p.Segment, p.Total = n, total }
}

func at(moment time.Time) func(*receipts.Segment) { return func(p *receipts.Segment) { p.At = moment } }

// receipt returns a receipt with the usual meaning of state.
func receipt(id, state string) receipts.Receipt {
	r := receipts.Receipt{Link: "lumitel-1", CarrierID: id, Number: "25761000001", State: state, At: time.Now()}
	switch state {
	case "DELIVRD", "ACCEPTD":
		r.Status, r.Final = sms.Sent, true
	case "UNDELIV", "EXPIRED", "REJECTD":
		r.Status, r.Final, r.Error = sms.Failed, true, "027"
	}
	return r
}

// record writes segments, each with its message's number, and receipts.
func (d *testStore) record(ctx context.Context, tx pgx.Tx, segments []receipts.Segment, reports ...receipts.Receipt) (
	receipts.Recorded, error) {
	for i := range segments {
		if segments[i].Number != "" {
			continue
		}
		if err := tx.QueryRow(ctx, `SELECT phone_number FROM messages WHERE id = $1`, segments[i].MessageID).Scan(
			&segments[i].Number); err != nil {
			return receipts.Recorded{}, err
		}
	}
	return d.matcher.Record(ctx, tx, segments, reports, 1000)
}

// settlement is the result of one transaction of a settler.
type settlement struct {
	outcomes []receipts.Outcome
	settled  []messages.Settled
}

// settle records accepted segments and receipts as a settler does.
func (d *testStore) settle(segments []receipts.Segment, reports ...receipts.Receipt) settlement {
	d.Helper()
	s, err := d.trySettle(segments, reports...)
	if err != nil {
		d.Fatal(err)
	}
	return s
}

func (d *testStore) trySettle(segments []receipts.Segment, reports ...receipts.Receipt) (s settlement, err error) {
	ctx := d.Context()
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		recorded, err := d.record(ctx, tx, segments, reports...)
		if err != nil {
			return err
		}
		s.outcomes = recorded.Outcomes
		ids := make([]int64, len(recorded.Settled))
		for i, st := range recorded.Settled {
			ids[i] = st.MessageID
		}
		records, err := receipts.Records(ctx, tx, carrier, ids)
		if err != nil {
			return err
		}
		var finals []messages.Final
		for _, st := range recorded.Settled {
			if status, at, reason := submission.Verdict(st.Total, records[st.MessageID]); status.Final() {
				finals = append(finals, messages.Final{MessageID: st.MessageID, Status: status, At: at, Reason: reason})
			}
		}
		s.settled, err = d.Finish(ctx, tx, finals, messages.Rows{})
		return err
	})
	return s, err
}

// settledAs fails the test unless exactly these messages were settled with this status.
func settledAs(t *testing.T, s settlement, status sms.Status, ids ...int64) {
	t.Helper()
	var got []int64
	for _, m := range s.settled {
		got = append(got, m.ID)
		if m.Status != status {
			t.Errorf("message %d became %v, want %v", m.ID, m.Status, status)
		}
	}
	same(t, "settled", got, ids)
}

// claimOf returns a message's current claim.
func (d *testStore) claimOf(id int64) messages.Claim {
	d.Helper()
	return messages.Claim{MessageID: id, Epoch: d.count(`SELECT epoch FROM outbox WHERE message_id = $1`, id)}
}

func (d *testStore) claims(ids ...int64) (claims []messages.Claim) {
	for _, id := range ids {
		claims = append(claims, d.claimOf(id))
	}
	return claims
}

// end changes the rows of the outbox without a verdict.
func (d *testStore) end(ctx context.Context, tx pgx.Tx, rows messages.Rows) error {
	_, err := d.Finish(ctx, tx, nil, rows)
	return err
}

// leaving returns the claimless ends of messages, by id.
func leaving(ids []int64) (claims []messages.Claim) {
	for _, id := range ids {
		claims = append(claims, messages.Claim{MessageID: id})
	}
	return claims
}

// freed frees the claims of a dead dispatcher, whatever it had begun, and returns how many.
func (d *testStore) freed(dead int64) (n int64) {
	d.Helper()
	claims, _, err := d.Claims(d.Context(), 0)
	for _, c := range claims {
		if c.Dispatcher == dead && err == nil {
			var one int64
			one, err = d.Free(d.Context(), d.pool, dead, []messages.Claim{c.Claim})
			n += one
		}
	}
	if err != nil {
		d.Fatal(err)
	}
	return n
}

// statesOf returns the states of the segments of a claimed message.
func statesOf(c *outbox.Claimed) (states []submission.State) {
	for n := 1; n <= c.Segments; n++ {
		states = append(states, submission.StateOf(n, c.Segments, c.Records))
	}
	return states
}

// status returns a message's status and reason.
func (d *testStore) status(id int64) (status sms.Status, reason string) {
	d.Helper()
	err := d.pool.QueryRow(d.Context(), `SELECT status, coalesce(failure_reason, '') FROM messages WHERE id = $1`,
		id).Scan(&status, &reason)
	if err != nil {
		d.Fatal(err)
	}
	return status, reason
}

package receipts

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// testMatcher is a carrier's matcher on its own database. Messages have the ids 1, 2, ...
type testMatcher struct {
	testing.TB
	pool *pgxpool.Pool
	*Matcher
}

// newTest returns the matcher of a carrier with the links l1 and l2, on a pool like the dispatcher's.
func newTest(t testing.TB, format Format) *testMatcher {
	t.Helper()
	pool := testenv.PoolWith(t, postgres.Options{BatchUpdates: true})
	return &testMatcher{TB: t, pool: pool, Matcher: New("lumitel", format)}
}

// numberOf returns a message's number.
func numberOf(message int64) string { return fmt.Sprintf("25761%06d", message) }

func accepted(message int64, id string, change ...func(*Segment)) Segment {
	p := Segment{MessageID: message, Segment: 1, Total: 1, Number: sms.Number("+" + numberOf(message)), Link: "l1",
		CarrierID: id, At: time.Now()}
	for _, c := range change {
		c(&p)
	}
	return p
}

// unanswered returns a segment without an answer.
func unanswered(message int64, reference uint16, change ...func(*Segment)) Segment {
	p := accepted(message, "", change...)
	p.Unanswered, p.Reference = true, reference
	return p
}

func segment(n, total int) func(*Segment) {
	return func(p *Segment) { p.Segment, p.Total = n, total }
}

func on(link string) func(*Segment) { return func(p *Segment) { p.Link = link } }

// receipt returns a handset's receipt; without a number it names none.
func receipt(id, state string, number string) Receipt {
	r := Receipt{Link: "l1", CarrierID: id, Number: number, State: state, At: time.Now()}
	switch state {
	case "DELIVRD", "ACCEPTD":
		r.Status, r.Final = sms.Sent, true
	case "UNDELIV", "EXPIRED", "REJECTD":
		r.Status, r.Final, r.Error = sms.Failed, true, "027"
	}
	return r
}

func (r Receipt) over(link string) Receipt {
	r.Link = link
	return r
}

func (r Receipt) echoing(reference uint16) Receipt {
	r.Reference = &reference
	return r
}

func (d *testMatcher) tx(do func(ctx context.Context, tx pgx.Tx) error) {
	d.Helper()
	ctx := d.Context()
	if err := postgres.InTx(ctx, d.pool, func(tx pgx.Tx) error { return do(ctx, tx) }); err != nil {
		d.Fatal(err)
	}
}

func (d *testMatcher) exec(statement string, args ...any) {
	d.Helper()
	testenv.Exec(d, d.pool, statement, args...)
}

// count returns a query's only number.
func (d *testMatcher) count(query string, args ...any) (n int) {
	d.Helper()
	if err := d.pool.QueryRow(d.Context(), query, args...).Scan(&n); err != nil {
		d.Fatal(err)
	}
	return n
}

// waiting returns how many receipts are in the inbox.
func (d *testMatcher) waiting() int {
	d.Helper()
	return d.count(`SELECT count(*) FROM receipts WHERE message_id IS NULL`)
}

// record records accepted segments and receipts as a settler does.
func (d *testMatcher) record(segments []Segment, receipts ...Receipt) Recorded {
	d.Helper()
	r, err := d.tryRecord(segments, receipts...)
	if err != nil {
		d.Fatal(err)
	}
	return r
}

func (d *testMatcher) tryRecord(segments []Segment, receipts ...Receipt) (r Recorded, err error) {
	ctx := d.Context()
	err = postgres.InTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
		r, err = d.Record(ctx, tx, segments, receipts, 1000)
		return err
	})
	return r, err
}

// outcomes fails the test unless the receipts have these outcomes.
func outcomes(t testing.TB, r Recorded, want ...Outcome) {
	t.Helper()
	if !slices.Equal(r.Outcomes, want) {
		t.Errorf("outcomes %v, want %v", r.Outcomes, want)
	}
}

// settledAs fails the test unless exactly segments of these messages became final, with this status.
func settledAs(t testing.TB, states []SegmentState, status sms.Status, messages ...int64) {
	t.Helper()
	var got []int64
	for _, st := range states {
		got = append(got, st.MessageID)
		if st.Status != status {
			t.Errorf("a segment of message %d became %v, want %v", st.MessageID, st.Status, status)
		}
	}
	slices.Sort(got)
	slices.Sort(messages)
	if !slices.Equal(got, messages) {
		t.Errorf("segments of the messages %v became final, want %v", got, messages)
	}
}

// stateOf returns the state of a message's only segment.
func (d *testMatcher) stateOf(message int64) (status sms.Status) {
	d.Helper()
	if err := d.pool.QueryRow(d.Context(), `SELECT coalesce(state, 0) FROM segments WHERE message_id = $1`, message).Scan(
		&status); err != nil {
		d.Fatal(err)
	}
	return status
}

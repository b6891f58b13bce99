package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/billing"
	"intumwa/dispatcher/core"
	"intumwa/dispatcher/links"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/webhooks"
)

// bench is a settler whose link never runs.
type bench struct {
	*testing.T
	pool   *pgxpool.Pool
	d      *Dispatcher
	worker *links.Worker
	s      *settling.Settler
	n      int
	reg    *prometheus.Registry
}

func newBench(t *testing.T, change ...func(*setup.Carrier)) *bench {
	t.Helper()
	return newBenchOn(t, testenv.PoolWith(t, postgres.Options{BatchUpdates: true}), change...)
}

func newBenchOn(t *testing.T, pool *pgxpool.Pool, change ...func(*setup.Carrier)) *bench {
	t.Helper()
	testenv.Companies(t, pool, 2)
	rdb, prefix := testenv.Redis(t)
	conf := setup.Carrier{Name: "lumitel", Profile: profile.Profile{IDFormat: profile.IDSame},
		Links: []setup.Link{
			{Options: smpp.Options{Name: "l1", Account: smpp.Account{Addresses: []string{"127.0.0.1:1"}, SystemID: "x"},
				Window: 10}}}}
	for _, c := range change {
		c(&conf)
	}
	hooks := webhooks.New(pool, webhooks.Options{AllowPrivate: true})
	reg := prometheus.NewRegistry()
	d, err := New(pool, pool, queue.New(rdb, queue.Options{Prefix: prefix, Patience: 10 * time.Second}), hooks,
		setup.Options{Carriers: []setup.Carrier{conf}, Metrics: reg})
	if err != nil {
		t.Fatal(err)
	}
	d.member.ID.Store(7)
	b := &bench{T: t, pool: pool, d: d, reg: reg}
	at := d.core.Running()[0]
	b.s = b.d.settlers[at.Name]
	b.work()
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if err := billing.Open(t.Context(), tx, 1); err != nil {
			return err
		}
		_, err := billing.Grant(t.Context(), tx, 1, 100, "")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.SetEndpoint(t.Context(), 1, webhooks.Setting{URL: "http://127.0.0.1:1/"}); err != nil {
		t.Fatal(err)
	}
	return b
}

// work makes the link's worker.
func (b *bench) work() {
	b.Helper()
	var err error
	if b.worker, err = b.d.newWorker(b.s.Carrier, &b.s.Carrier.Config().Links[0]); err != nil {
		b.Fatal(err)
	}
}

// in is the bench for a subtest.
func (b *bench) in(t *testing.T) *bench {
	other := *b
	other.T = t
	return &other
}

// configure changes the carrier's configuration.
func (b *bench) configure(change func(*setup.Carrier)) {
	conf := *b.s.Carrier.Config()
	change(&conf)
	b.s.Carrier.Conf.Store(&conf)
}

// cleared deletes every message, so that a table's next case can count rows and reuse
// carrier ids. The link gets a new worker with nothing in flight.
func (b *bench) cleared() {
	b.Helper()
	b.work()
	b.exec(`DELETE FROM outbox; DELETE FROM segments; DELETE FROM receipts; DELETE FROM inbound; DELETE FROM carrier_moves;
		DELETE FROM webhook_deliveries; DELETE FROM messages`)
	b.d.core.InFlight = core.NewInFlightMessages()
}

// begun returns a message with all segments in flight: claimed, with its slots taken.
func (b *bench) begun(segments int) *core.InFlight {
	b.Helper()
	b.n++
	m := &messages.Message{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Number: sms.Number(fmt.Sprintf("+25761%06d", b.n)),
		Sender: "DEMO",
		Body:   "Hello", Segments: segments, Carrier: "lumitel", Validity: time.Hour}
	var ids []int64
	if err := pgx.BeginFunc(b.Context(), b.pool, func(tx pgx.Tx) (err error) {
		if _, err := billing.ChargeAll(b.Context(), tx,
			[]billing.Debit{{CompanyID: 1, Amount: int64(max(segments, 1)), Ref: m.ULID}}, time.Second); err != nil {
			return err
		}
		ids, err = b.d.core.Store.Messages.Insert(b.Context(), tx, []*messages.Message{m})
		return err
	}); err != nil {
		b.Fatal(err)
	}
	return b.claim(ids[0], segments)
}

// inHand returns a claimed message with that many segments in flight.
func inHand(w *links.Worker, m *outbox.Claimed, segments int) *core.InFlight {
	one := w.Attempt(m)
	one.Total, one.Open = segments, segments
	return one
}

// states returns the states of a claimed message's segments.
func states(m *core.InFlight) (states []submission.State) {
	for n := 1; n <= m.Msg.Segments; n++ {
		states = append(states, submission.StateOf(n, m.Msg.Segments, m.Msg.Records))
	}
	return states
}

func (b *bench) claim(id int64, segments int) *core.InFlight {
	b.Helper()
	claimed, err := b.d.core.Store.Outbox.Claim(b.Context(), 7, "lumitel", []int64{id}, b.s.Carrier.Config().Marks())
	if err != nil || len(claimed) != 1 {
		b.Fatalf("%d claimed, %v", len(claimed), err)
	}
	b.worker.Open.Add(1)
	for range segments {
		if err := b.worker.Slots.Take(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	m := inHand(b.worker, claimed[0], segments)
	b.d.core.InFlight.Add(m)
	return m
}

// fate makes the result of one segment.
type fate func(m *core.InFlight, segment int) core.Result

func accepted(id string) fate {
	return func(m *core.InFlight, segment int) core.Result {
		return core.Result{Message: m, Segment: segment, Result: smpp.Result{Outcome: smpp.Accepted, MessageID: id},
			At: time.Now(), Slot: true}
	}
}

func ended(outcome smpp.Outcome, status smpp.Status, err error) fate {
	return func(m *core.InFlight, segment int) core.Result {
		return core.Result{Message: m, Segment: segment, Result: smpp.Result{Outcome: outcome, Status: status, Err: err},
			At: time.Now(), Slot: true}
	}
}

func (b *bench) settle(w settling.Settlement) {
	b.Helper()
	if err := b.s.Commit(w); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) receipt(key, state string) settling.Arrival {
	status, final := b.s.Carrier.Config().Meaning(state)
	return settling.Arrival{Receipt: receipts.Receipt{Link: "l1", CarrierID: key, State: state,
		Status: status, Final: final, At: time.Now()}, PDU: &smpp.Delivery{}}
}

func (b *bench) status(id int64) (status sms.Status, reason string) {
	b.Helper()
	if err := b.pool.QueryRow(b.Context(), `SELECT status, coalesce(failure_reason, '') FROM messages WHERE id = $1`,
		id).Scan(&status, &reason); err != nil {
		b.Fatal(err)
	}
	return status, reason
}

func (b *bench) count(query string, args ...any) (n int) {
	b.Helper()
	if err := b.pool.QueryRow(b.Context(), query, args...).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// metric sums the series of a counter or gauge, or counts the samples of a histogram.
func (b *bench) metric(name string) (sum float64) {
	b.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// clean fails the test if anything is still held.
func (b *bench) clean() {
	b.Helper()
	done := make(chan struct{})
	go func() { b.worker.Open.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		b.Error("messages are still open")
	}
	until(b, "all ten slots are free", func() bool { return b.free() == 10 }) // freed just after the commit
}

// until polls a condition that must become true.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

func (b *bench) free() int {
	return b.worker.Slots.Left()
}

// TestSettle: a message's outcome from the fates of its segments, settled together
// and one by one.
func TestSettle(t *testing.T) {
	t.Parallel()
	type outcome struct {
		status   sms.Status
		reason   string
		waits    bool // in the outbox, to be sent again
		attempt  int  // attempts that count
		delay    time.Duration
		segments int
	}
	gone := errors.New("connection lost")
	cases := []struct {
		name   string
		on     setup.Ambiguous
		by     setup.Confirm
		fates  []fate
		result outcome
	}{
		{"accepted", 0, 0, []fate{accepted("a")}, outcome{segments: 1}},
		{"confirmed by the acceptance", 0, setup.ConfirmBySubmit, []fate{accepted("a"), accepted("b")},
			outcome{status: sms.Sent, segments: 2}},
		{"refused for good", 0, 0, []fate{ended(smpp.Rejected, smpp.StatusInvDstAddr, nil)},
			outcome{status: sms.Failed, reason: "ESME_RINVDSTADR"}},
		{"throttled", 0, 0, []fate{ended(smpp.Rejected, smpp.StatusThrottled, nil)},
			outcome{waits: true, attempt: 1, delay: time.Second}},
		{"a setting of ours", 0, 0, []fate{ended(smpp.Rejected, 0x48, nil)},
			outcome{waits: true, attempt: 1, delay: time.Second}},
		{"not written", 0, 0, []fate{ended(smpp.NotWritten, 0, smpp.ErrNotBound)}, outcome{waits: true}},
		{"cannot be written", 0, 0,
			[]fate{ended(smpp.NotWritten, 0, &smpp.FieldError{Field: "source_addr", Problem: "is odd"})},
			outcome{status: sms.Failed, reason: "smpp: source_addr is odd"}},
		{"unanswered, sent again", setup.AmbiguousResend, 0, []fate{ended(smpp.NoAnswer, 0, gone)},
			outcome{waits: true, attempt: 1, delay: setup.AmbiguousDelay, segments: 1}},
		{"unanswered, held", setup.AmbiguousAwaitReceipt, 0, []fate{ended(smpp.NoAnswer, 0, gone)}, outcome{segments: 1}},
		{"unanswered, given up", setup.AmbiguousFail, 0, []fate{ended(smpp.NoAnswer, 0, gone)},
			outcome{status: sms.Failed, reason: "no_answer", segments: 1}},
		{"half of it throttled", 0, 0, []fate{accepted("a"), ended(smpp.Rejected, smpp.StatusThrottled, nil),
			ended(smpp.NotWritten, 0, nil)},
			outcome{waits: true, attempt: 1, delay: time.Second, segments: 1}},
		// The attempt counts although the rest was never written. The next claim
		// then reads which segments are out.
		{"half of it not written", 0, 0, []fate{accepted("a"), ended(smpp.NotWritten, 0, nil)},
			outcome{waits: true, attempt: 1, segments: 1}},
		{"half of it refused", 0, 0, []fate{accepted("a"), ended(smpp.Rejected, smpp.StatusInvDstAddr, nil), accepted("b")},
			outcome{status: sms.Failed, reason: "ESME_RINVDSTADR", segments: 2}},
	}
	b := newBench(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := b.in(t)
			for _, together := range []bool{true, false} {
				b.cleared()
				b.configure(func(conf *setup.Carrier) { conf.OnAmbiguous, conf.Confirm = c.on, c.by })
				m := b.begun(len(c.fates))
				var w settling.Settlement
				for i, f := range c.fates {
					w.Results = append(w.Results, f(m, i+1))
				}
				before := time.Now()
				if together {
					b.settle(w)
				} else {
					for _, r := range w.Results {
						b.settle(settling.Settlement{Results: []core.Result{r}})
					}
				}
				after := time.Now()
				b.clean()
				var got outcome
				got.status, got.reason = b.status(m.Msg.ID)
				got.segments = b.count(`SELECT count(*) FROM segments WHERE message_id = $1`, m.Msg.ID)
				rest, err := b.d.core.Store.Lookup.HistoryOf(t.Context(), m.Msg.ID)
				if err != nil {
					t.Fatal(err)
				}
				if rest.Waiting != nil {
					got.waits, got.attempt = true, rest.Waiting.Attempts
					if due := rest.Waiting.DueAt; c.result.delay > 0 && due.Before(before.Add(c.result.delay)) ||
						due.After(after.Add(2*c.result.delay)) {
						t.Errorf("it waits until %v after the result, want %v", due.Sub(before), c.result.delay)
					}
					if rest.Waiting.Claimed {
						t.Error("it is still claimed")
					}
				}
				got.delay = c.result.delay
				if got != c.result {
					t.Errorf("%+v, want %+v", got, c.result)
				}
				events := 0
				if c.result.status != sms.Pending {
					events = 1
				}
				if n := b.count(`SELECT count(*) FROM webhook_deliveries`); n != events {
					t.Errorf("%d webhooks, want %d", n, events)
				}
			}
		})
	}
}

// TestResumed: the next attempt sends exactly the segments that no carrier has.
func TestResumed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.begun(3)
	b.settle(settling.Settlement{Results: []core.Result{accepted("a")(m, 1), ended(smpp.NotWritten, 0, nil)(m, 2),
		ended(smpp.NotWritten, 0, nil)(m, 3)}})
	m = b.claim(m.Msg.ID, 2)
	if got := states(m); !slices.Equal(got, []submission.State{submission.Accepted, submission.Waiting,
		submission.Waiting}) {
		t.Errorf("%v, want the first accepted", got)
	}
	b.settle(settling.Settlement{Results: []core.Result{accepted("b")(m, 2), accepted("c")(m, 3)},
		Receipts: []settling.Arrival{b.receipt("a", "DELIVRD"), b.receipt("b", "DELIVRD"), b.receipt("c", "DELIVRD")}})
	if status, _ := b.status(m.Msg.ID); status != sms.Sent {
		t.Errorf("it is %v", status)
	}
	b.clean()
}

// TestPoison: a result or receipt that the database refuses stops nothing else,
// alone or among others. An acceptance is recorded without its id, and not sent again.
func TestPoison(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec(`ALTER TABLE segments ADD CHECK (key <> 'poison'); ALTER TABLE receipts ADD CHECK (key <> 'poison')`)
	good, bad := []*core.InFlight{b.begun(1), b.begun(1)}, b.begun(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.s.Settle(t.Context(), settling.Settlement{
			Results:  []core.Result{accepted("a")(good[0], 1), accepted("poison")(bad, 1), accepted("b")(good[1], 1)},
			Receipts: []settling.Arrival{b.receipt("a", "DELIVRD"), b.receipt("poison", "DELIVRD"), b.receipt("b", "DELIVRD")},
		})
		alone := b.begun(1)
		b.s.Settle(t.Context(), settling.Settlement{Results: []core.Result{accepted("poison")(alone, 1)}})
		b.s.Settle(t.Context(), settling.Settlement{Receipts: []settling.Arrival{b.receipt("poison", "UNDELIV")}})
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("the settler is stuck")
	}
	for _, m := range good {
		if status, _ := b.status(m.Msg.ID); status != sms.Sent {
			t.Errorf("message %d is %v", m.Msg.ID, status)
		}
	}
	if n := b.count(`SELECT count(*) FROM segments WHERE key LIKE '!%'`); n != 2 ||
		b.count(`SELECT count(*) FROM outbox`) != 0 {
		t.Errorf("%d of 2 are recorded without an id, or one is to be sent again", n)
	}
	b.clean()
}

// TestDatabaseAway: results and their slots are kept until they are written.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.begun(1), b.begun(1)
	b.exec(`ALTER TABLE segments RENAME TO away`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.s.Run(ctx) }()
	b.s.Take(accepted("a")(first, 1))
	b.s.Receive(b.receipt("a", "DELIVRD"))
	taken := func() bool { return b.s.Waiting() == 0 }
	until(t, "both are tried", taken)
	b.s.Take(accepted("b")(second, 1))
	b.s.PutBack([]messages.Claim{{MessageID: 999}})
	if free := b.free(); free != 8 {
		t.Errorf("%d slots are free while nothing could be written, want 8", free)
	}
	b.exec(`ALTER TABLE away RENAME TO segments`)
	b.clean()
	if n := b.count(`SELECT count(*) FROM segments`); n != 2 {
		t.Errorf("%d segments recorded, want 2", n)
	}
	cancel()
	<-done
}

// TestEndWithoutDatabase: a settler that cannot write still ends and frees its slots.
func TestEndWithoutDatabase(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.begun(1)
	b.pool.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.s.Run(ctx) }()
	b.s.Take(accepted("a")(m, 1))
	cancel()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	b.clean()
}

// TestExpiredIsRefundedOnce: an expired message that no carrier ever took is refunded,
// and its webhook is posted, once. If a carrier took a segment it is not refunded.
func TestExpiredIsRefundedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	never, half := b.begun(2), b.begun(2)
	b.settle(settling.Settlement{Results: []core.Result{
		ended(smpp.Rejected, smpp.StatusThrottled, nil)(never, 1), ended(smpp.NotWritten, 0, nil)(never, 2),
		accepted("a")(half, 1), ended(smpp.Rejected, smpp.StatusThrottled, nil)(half, 2),
	}})
	b.exec(`UPDATE outbox SET expires_at = now()`)
	for range 2 {
		if err := b.d.recovery.WalkOutbox(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []*core.InFlight{never, half} {
		if status, reason := b.status(m.Msg.ID); status != sms.Failed || reason != submission.ReasonExpired {
			t.Errorf("message %d: %v %q", m.Msg.ID, status, reason)
		}
	}
	ledger := billing.New(b.pool)
	if credits, err := ledger.Balance(t.Context(), 1); err != nil || credits != 98 {
		t.Errorf("%d credits, %v; want 98: 100, less 4, and 2 back", credits, err)
	}
	if n := b.count(`SELECT count(*) FROM webhook_deliveries`); n != 2 {
		t.Errorf("%d webhooks, want 2", n)
	}
	if n := b.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// TestFreeSparesTheLiving: only claims of dispatchers without a row are freed.
func TestFreeSparesTheLiving(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine, dead, new := b.begun(1), b.begun(1), b.begun(1)
	b.exec(`INSERT INTO dispatchers (id, name) VALUES (7, 'me'), (9, 'new')`)
	for id, claimant := range map[int64]int64{dead.Msg.ID: 8, new.Msg.ID: 9} {
		b.exec(`UPDATE outbox SET claimed_by = $2 WHERE message_id = $1`, id, claimant)
	}
	if err := b.d.recovery.Free(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]int{mine.Msg.ID: 7, dead.Msg.ID: 0, new.Msg.ID: 9} {
		if got := b.count(`SELECT coalesce(claimed_by, 0) FROM outbox WHERE message_id = $1`, id); got != want {
			t.Errorf("message %d is claimed by %d, want %d", id, got, want)
		}
	}
}

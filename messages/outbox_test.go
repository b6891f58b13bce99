package messages_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/outbox"
	"intumwa/messages/receipts"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
	"intumwa/sms"
)

func same(t *testing.T, what string, got, want []int64) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestClaim: a claim gets existing, due, valid, unclaimed messages of the carrier only.
func TestClaim(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(7)
	d.exec(`UPDATE outbox SET due_at = now() + interval '1 minute' WHERE message_id = $1`, ids[1])
	d.exec(`UPDATE outbox SET expires_at = now() WHERE message_id = $1`, ids[2])
	d.exec(`DELETE FROM outbox WHERE message_id = $1`, ids[3])
	d.exec(`UPDATE outbox SET carrier = 'onatel' WHERE message_id = $1`, ids[4])
	same(t, "first claim", idsOf(d.claim(1, ids[5])), ids[5:6])
	got := d.claim(2, append(ids, ids[0], ids[6], 999)...) // ids twice, one unknown
	same(t, "second claim", idsOf(got), []int64{ids[0], ids[6]})
	same(t, "third claim", idsOf(d.claim(1, ids...)), nil)
	same(t, "claim of nothing", idsOf(d.claim(1)), nil)

	c := got[slices.IndexFunc(got, func(c *outbox.Claimed) bool { return c.ID == ids[0] })]
	r, err := d.ByULID(t.Context(), 1, c.ULID)
	if err != nil || r.ID != ids[0] || c.Number != r.Number || c.Sender != r.Sender || c.Body != r.Body ||
		c.CompanyID != 1 || c.Lane != 0 ||
		c.Segments != 1 || c.Attempt != 1 || !c.CreatedAt.Equal(r.CreatedAt) || c.ExpiresAt.Sub(c.CreatedAt) != time.Hour ||
		c.Records != nil {
		t.Errorf("claimed %+v of %+v, %v", c, r, err)
	}
}

// TestClaimOnce: concurrent dispatchers get disjoint messages.
func TestClaimOnce(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(200)
	backwards := slices.Clone(ids)
	slices.Reverse(backwards)
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for dispatcher := range int64(4) {
		wg.Go(func() {
			want := ids
			if dispatcher%2 == 1 {
				want = backwards
			}
			for part := range slices.Chunk(want, 50) {
				claimed, err := d.Claim(t.Context(), dispatcher, carrier, part, false)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, idsOf(claimed)...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	same(t, "claimed", all, ids)
}

// TestClaimLocksNoRows: the first statement of a claim writes one WAL record a message, and does not wait for a row
// that another transaction has locked.
func TestClaimLocksNoRows(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(101)
	tx, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM outbox WHERE message_id = $1 FOR UPDATE`, ids[0]); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Records int `json:"WAL Records"`
		}
	}
	var text []byte
	if err := d.pool.QueryRow(t.Context(), `EXPLAIN (ANALYZE, WAL, FORMAT JSON) `+d.claimStatements()[0], 1, false, ids,
		carrier).Scan(&text); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	if n := plans[0].Plan.Records; n > 125 { // pages may be pruned
		t.Errorf("%d records for 100 messages", n)
	}
	same(t, "claimed", column[int64](d, `SELECT message_id FROM outbox WHERE claimed_by = 1`), ids[1:])
}

// TestClaimDoesNotWait: a transaction that locks a row while a claim looks at it does not keep the claim from the
// other rows.
func TestClaimDoesNotWait(t *testing.T) {
	d := newHoldStore(t)
	ids := d.pending(3)
	// The claim stops between its look at a row and the update.
	stopped, goOn := d.stops()
	d.exec(`ALTER TABLE companies RENAME TO every`)
	d.exec(`CREATE VIEW companies AS SELECT id, approved AND goes_on() AS approved FROM every`)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	claimed := make(chan []int64, 1)
	go func() {
		got, err := d.Claim(ctx, 1, carrier, ids, false)
		if err != nil {
			t.Errorf("%d are claimed, %v", len(got), err)
		}
		claimed <- idsOf(got)
	}()
	stopped()
	if _, err := tx.Exec(ctx, `SELECT FROM outbox WHERE message_id = $1 FOR UPDATE`, ids[0]); err != nil {
		t.Fatal(err)
	}
	goOn()
	same(t, "claimed", <-claimed, ids[1:])
}

// stops makes the SQL function goes_on(), which is true but stops until goOn is called. stopped waits for a statement
// that stops there.
func (d *testStore) stops() (stopped, goOn func()) {
	d.Helper()
	d.exec(`CREATE FUNCTION goes_on() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
		WHILE NOT pg_try_advisory_xact_lock_shared(1) LOOP PERFORM pg_sleep(0.005); END LOOP; RETURN true; END $$`)
	ctx := context.WithoutCancel(d.Context())
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		d.Fatal(err)
	}
	goOn = sync.OnceFunc(func() {
		_, err := conn.Exec(ctx, `SELECT pg_advisory_unlock(1)`)
		if conn.Release(); err != nil {
			d.Error(err)
		}
	})
	d.Cleanup(goOn)
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(1)`); err != nil {
		d.Fatal(err)
	}
	return func() {
		for end := time.Now().Add(30 * time.Second); d.count(`SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'PgSleep'`) == 0; {
			if time.Now().After(end) {
				d.Fatal("nothing stops")
			}
		}
	}, goOn
}

func TestClaimDue(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(4)
	batched := d.pending(1, func(m *messages.Message) {
		m.Batch = &messages.Batch{ULID: m.ULID, CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 1,
			Segments: 1}
	})
	d.pending(1, func(m *messages.Message) { m.Carrier = "onatel" })
	d.exec(`UPDATE outbox SET due_at = now() + interval '1 minute' WHERE message_id = $1`, ids[0])
	var age time.Duration
	claim := func(lane, limit int) []int64 {
		t.Helper()
		claimed, err := d.ClaimDue(t.Context(), 1, carrier, lane, limit, age, false)
		if err != nil {
			t.Fatal(err)
		}
		return idsOf(claimed)
	}
	same(t, "the oldest", claim(messages.LaneSingle, 2), ids[1:3])
	same(t, "the rest", claim(messages.LaneSingle, 10), ids[3:])
	same(t, "batches", claim(messages.LaneBatch, 10), batched)
	same(t, "nothing", claim(messages.LaneSingle, 10), nil)

	ids = d.pending(4)
	age = time.Minute
	d.exec(`UPDATE outbox SET due_at = now() - interval '2 minutes', pushed_at = now() - interval '2 minutes'
		WHERE message_id = ANY($1)`, ids[:3])
	d.exec(`UPDATE outbox SET pushed_at = now() WHERE message_id = $1`, ids[0])
	d.exec(`UPDATE outbox SET pushed_at = NULL WHERE message_id = $1`, ids[1])
	same(t, "overdue", claim(messages.LaneSingle, 10), ids[1:3])
}

// waiting returns a message's row in the outbox.
func (d *testStore) waiting(id int64) lookup.WaitingRecord {
	d.Helper()
	h, err := d.HistoryOf(d.Context(), id)
	if err != nil || h.Waiting == nil {
		d.Fatalf("message %d is not in the outbox: %v", id, err)
	}
	return *h.Waiting
}

// TestFencing: a dispatcher that has lost a message to another one changes nothing of it.
func TestFencing(t *testing.T) {
	d := newTestStore(t)
	const ghost, heir = 1, 2
	ids := d.pending(3)
	lost := claimsOf(d.claim(ghost, ids...))
	d.exec(`UPDATE outbox SET begun = false`)
	if n := d.freed(ghost); n != 3 {
		t.Fatalf("%d freed", n)
	}
	if n := d.count(
		`SELECT count(*) FROM outbox WHERE pushed_at IS NULL AND claimed_by IS NULL AND attempts = 1`); n != 3 {
		t.Errorf("%d free and off the queue, want 3", n)
	}
	claimed := claimsOf(d.claim(heir, ids...))
	if err := d.Release(t.Context(), ghost, d.claims(ids...), 0); err != nil {
		t.Fatal(err)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Rows{Dispatcher: ghost, Leave: append(lost, leaving(ids)...),
			Again: []messages.Retry{{Claim: d.claimOf(ids[0]), Delay: time.Minute, Counts: true}}})
	})
	for _, id := range ids {
		if w := d.waiting(id); !w.Claimed || w.Attempts != 2 || time.Until(w.DueAt) > 0 {
			t.Errorf("the heir's message after the ghost was at it: %+v", w)
		}
	}
	if n, err := d.Free(t.Context(), d.pool, ghost, append(lost, claimed...)); err != nil || n != 0 {
		t.Errorf("%d of the living's freed, %v", n, err)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Rows{Dispatcher: heir, Leave: claimed})
	})
	if n := d.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Errorf("%d left", n)
	}
}

func TestReleaseAndRetry(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(3)
	d.claim(1, ids...)
	if err := d.Release(t.Context(), 1, d.claims(ids[0]), time.Minute); err != nil {
		t.Fatal(err)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Rows{Dispatcher: 1,
			Again: []messages.Retry{{Claim: d.claimOf(ids[1]), Delay: time.Hour, Counts: true}, {Claim: d.claimOf(ids[2])}}})
	})
	for i, want := range []struct {
		attempts int
		delay    time.Duration
	}{{0, time.Minute}, {1, time.Hour}, {0, 0}} {
		w := d.waiting(ids[i])
		if delay := time.Until(w.DueAt); w.Claimed || w.Attempts != want.attempts || delay > want.delay ||
			delay < want.delay-10*time.Second {
			t.Errorf("message %d: %+v, due in %v; want %+v", i, w, delay, want)
		}
	}
	if n := d.count(`SELECT count(*) FROM outbox WHERE pushed_at IS NULL`); n != 3 {
		t.Errorf("%d off the queue, want 3", n)
	}
	same(t, "claimed", idsOf(d.claim(2, ids...)), ids[2:])
	if err := d.Release(t.Context(), 1, nil, 0); err != nil {
		t.Error(err)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error { return d.end(ctx, tx, messages.Rows{Dispatcher: 1}) })
}

// TestAcceptedSegments: the next claim has the segments that a carrier has.
func TestAcceptedSegments(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(2, segments(3))
	d.claim(1, ids...)
	d.settle([]receipts.Segment{accepted(ids[0], "a", segment(3, 3)), accepted(ids[0], "b", segment(1, 3)),
		accepted(ids[0], "c", segment(1, 3))})
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Rows{Dispatcher: 1, Again: []messages.Retry{{Claim: d.claimOf(ids[0]), Counts: true},
			{Claim: d.claimOf(ids[1]), Counts: true}}})
	})
	for _, c := range d.claim(1, ids...) {
		want := []submission.State{submission.Accepted, submission.Waiting, submission.Accepted}
		if c.ID == ids[1] {
			want[0], want[2] = submission.Waiting, submission.Waiting
		}
		if c.Attempt != 2 || !slices.Equal(statesOf(c), want) {
			t.Errorf("message %d: attempt %d, %v; want %v", c.ID, c.Attempt, statesOf(c), want)
		}
	}
}

// TestReroute: what another process works on stays, and so does what waits for the end of the quiet hours or is
// suspended. A message that waits for its next attempt does not.
func TestReroute(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(4)
	d.claim(1, ids[0])
	d.exec(`UPDATE outbox SET due_at = now() + interval '1 minute', since = now() + interval '1 minute'
		WHERE message_id = $1`, ids[1])
	d.exec(`UPDATE outbox SET due_at = now() + interval '1 minute' WHERE message_id = $1`, ids[2])
	suspended := d.pending(1)
	d.exec(`UPDATE outbox SET due_at = '9999-12-31T00:00:00Z' WHERE message_id = $1`, suspended[0])
	reroute := func(lane, limit int, want int64) {
		t.Helper()
		if n, _, err := d.Reroute(t.Context(), carrier, rerouting.To{Carrier: "onatel"}, lane, 0, limit,
			submission.Resend); err != nil || n != want {
			t.Errorf("%d rerouted, %v; want %d", n, err, want)
		}
	}
	reroute(0, 1, 1)
	reroute(1, 10, 0) // the batch lane has none
	reroute(0, 10, 1)
	if n, err := d.Ready(t.Context(), "onatel", 0, 10); err != nil || n != 2 {
		t.Errorf("%d wait there, %v", n, err)
	}
	claimed, err := d.Claim(t.Context(), 1, "onatel", ids, false)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the other's", idsOf(claimed), ids[2:])
	if n := d.count(
		`SELECT count(*) FROM messages m JOIN outbox o ON o.message_id = m.id AND o.carrier = m.carrier`); n != 5 {
		t.Errorf("outbox and message agree on the carrier of %d, want 5", n)
	}
}

// TestRerouteOfALongLane: a call reads the next 20,000 rows, and the next call continues behind those that stay.
func TestRerouteOfALongLane(t *testing.T) {
	d := newTestStore(t)
	d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at, claimed_by)
		SELECT n, 1, $1, 0, now() + interval '1 hour', 7 FROM generate_series(1, $2::int + 10) n`, carrier, outbox.WalkRows)
	d.exec(`ALTER SEQUENCE messages_id_seq RESTART WITH 100000`)
	d.pending(3)
	after := int64(0)
	for _, want := range []struct{ n, next int64 }{{0, outbox.WalkRows}, {2, outbox.WalkRows}, {1, 0},
		{0, outbox.WalkRows}} {
		n, next, err := d.Reroute(t.Context(), carrier, rerouting.To{Carrier: "onatel"}, 0, after, 2, submission.Resend)
		if err != nil || n != want.n || next != want.next {
			t.Errorf("after %d: %d rerouted, next %d, %v; want %+v", after, n, next, err, want)
		}
		after = next
	}
}

// TestRerouteKeeps: a message stays with a carrier that has a segment of it, and with one that may have a segment if
// its policy is hold or fail.
func TestRerouteKeeps(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(3, segments(2))
	d.claim(1, ids...)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		if _, err := d.record(ctx, tx, []receipts.Segment{
			accepted(ids[0], "", segment(1, 2), func(p *receipts.Segment) { p.Unanswered, p.Reference = true, 5 }),
			accepted(ids[1], "A", segment(1, 2)),
		}); err != nil {
			return err
		}
		var retries []messages.Retry
		for _, c := range d.claims(ids...) {
			retries = append(retries, messages.Retry{Claim: c, Counts: true})
		}
		return d.end(ctx, tx, messages.Rows{Dispatcher: 1, Again: retries})
	})
	for _, c := range []struct {
		policy submission.Policy
		want   int64
	}{{submission.AwaitReceipt, 1}, {submission.Fail, 0}, {submission.Resend, 1}} {
		if n, _, err := d.Reroute(t.Context(), carrier, rerouting.To{Carrier: "onatel"}, 0, 0, 10, c.policy); err != nil ||
			n != c.want {
			t.Errorf("policy %v: %d rerouted, %v", c.policy, n, err)
		}
	}
	claimed, err := d.Claim(t.Context(), 2, "onatel", ids, false)
	if err != nil || len(claimed) != 2 || slices.Contains(append(statesOf(claimed[0]), statesOf(claimed[1])...),
		submission.Unanswered) {
		t.Errorf("the other takes what the first left unanswered for its own: %+v, %v", claimed, err)
	}
}

// TestSubmittedMeanwhile: a message that was claimed, submitted and put back while it was looked for stays with the
// carrier that may have it, and the next call looks at its lane from the same row on.
func TestSubmittedMeanwhile(t *testing.T) {
	for way, hand := range map[string]func(d *testStore, id int64) (n, next int64, err error){
		"failover": func(d *testStore, _ int64) (n, next int64, err error) {
			return d.Reroute(d.Context(), carrier, rerouting.To{Carrier: "onatel"}, 0, 0, 1, submission.AwaitReceipt)
		},
		"carrier gone": func(d *testStore, id int64) (n, next int64, err error) {
			n, err = d.Readdress(d.Context(), []int64{id}, carrier, rerouting.To{Carrier: "onatel"})
			return n, 0, err
		},
	} {
		t.Run(way, func(t *testing.T) {
			d := newTestStore(t)
			id := d.pending(1)[0]
			d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at, claimed_by)
				SELECT n, 1, $1, 0, now() + interval '1 hour', 7 FROM generate_series(1000, 1000 + $2::int) n`, carrier,
				outbox.WalkRows)
			// The statement stops between its look at a row and the lock.
			stopped, goOn := d.stops()
			d.exec(`INSERT INTO sender_carriers (sender_id, company_id, carrier, state) SELECT id, company_id, 'onatel',
				'approved' FROM senders`)
			d.exec(`ALTER TABLE sender_carriers RENAME TO every`)
			d.exec(`CREATE VIEW sender_carriers AS
				SELECT sender_id, company_id, carrier, works AND goes_on() AS works FROM every`)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if n, next, err := hand(d, id); n != 0 || next != 0 || err != nil {
					t.Errorf("%d handed over, the next after %d, %v", n, next, err)
				}
			}()
			stopped()
			d.exec(`UPDATE outbox SET attempts = 1 WHERE message_id = $1`, id)
			d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at)
				VALUES ($1, 1, 1, $2, '', '?x', now())`, id, carrier)
			goOn()
			<-done
			if n := d.count(`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id AND m.carrier = o.carrier
				WHERE o.message_id = $1 AND o.carrier = $2`, id, carrier); n != 1 {
				t.Error("it does not wait for its carrier")
			}
		})
	}
}

// TestReturn: messages that a second carrier has not tried go back to the first.
func TestReturn(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(4)
	if _, _, err := d.Reroute(t.Context(), carrier, rerouting.To{Carrier: "leo"}, 0, 0, 3, submission.Resend); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Reroute(t.Context(), "leo", rerouting.To{Carrier: "onatel"}, 0, 0, 1,
		submission.Resend); err != nil {
		// and on to a third
		t.Fatal(err)
	}
	if _, err := d.Claim(t.Context(), 1, "leo", ids[1:2], false); err != nil {
		t.Fatal(err)
	}
	d.exec(`UPDATE outbox SET due_at = now() + interval '20 minutes', since = now() + interval '20 minutes'
		WHERE message_id = $1`, ids[2])
	for _, want := range []int64{2, 0} {
		if n, err := d.Return(t.Context(), rerouting.To{Carrier: carrier}, 10); err != nil || n != want {
			t.Errorf("%d handed back, %v; want %d", n, err, want)
		}
	}
	if n := d.count(`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id AND m.carrier = o.carrier
		WHERE o.carrier = $1`, carrier); n != 3 {
		t.Errorf("%d wait for it, want 3", n)
	}
	if n := d.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND due_at > now()`, ids[2]); n != 1 {
		t.Error("quiet hours are over early")
	}
}

// TestEndedClaims: late results of an ended claim do not affect the next one, also of the same dispatcher.
func TestEndedClaims(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(1)
	d.exec(`UPDATE outbox SET due_at = now() - interval '1 hour'`)
	claim := func() messages.Claim {
		claimed, err := d.Claim(t.Context(), 1, carrier, ids, true)
		if err != nil || len(claimed) != 1 {
			return messages.Claim{}
		}
		return claimed[0].Claim()
	}
	first := claim()
	for range 2 { // the answer to the first release was lost
		if err := d.Release(t.Context(), 1, []messages.Claim{first}, 0); err != nil {
			t.Fatal(err)
		}
		claim()
	}
	if w := d.waiting(ids[0]); !w.Claimed || w.Attempts != 1 || time.Since(w.DueAt) < time.Hour {
		t.Errorf("%+v: it is due as long as it was", w)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.end(ctx, tx, messages.Rows{Dispatcher: 1,
			Again: []messages.Retry{{Claim: first, Delay: time.Hour, Counts: true}}})
	})
	if begun, err := d.Begin(t.Context(), 1, []messages.Claim{first}); err != nil || len(begun) != 0 {
		t.Fatalf("%v began, %v", begun, err)
	}
	if w := d.waiting(ids[0]); !w.Claimed || d.count(`SELECT count(*) FROM outbox WHERE begun`) != 0 {
		t.Errorf("%+v", w)
	}
}

// TestBegun: the claims of a dead dispatcher are listed with what it may have submitted, and freed or locked by their
// epochs.
func TestBegun(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(4, segments(2))
	if got, err := d.Claim(t.Context(), 1, carrier, ids[:3], true); err != nil || len(got) != 3 || got[0].Begun {
		t.Fatalf("%+v, %v", got, err)
	}
	begun, err := d.Begin(t.Context(), 1, d.claims(ids[:2]...))
	if slices.Sort(begun); err != nil || !slices.Equal(begun, ids[:2]) {
		t.Fatalf("%v began, %v", begun, err)
	}
	if got := d.claim(2, ids[3]); len(got) != 1 || !got[0].Begun { // without marks it counts as begun
		t.Errorf("%+v", got)
	}
	d.settle([]receipts.Segment{accepted(ids[0], "A", segment(2, 2))})
	claims, next, err := d.Claims(t.Context(), 0)
	if err != nil || next != 0 || len(claims) != 4 {
		t.Fatalf("%+v, %d, %v", claims, next, err)
	}
	for i, c := range claims {
		if want := (outbox.ClaimedRow{Claim: d.claimOf(ids[i]), Dispatcher: []int64{1, 1, 1, 2}[i], Carrier: carrier,
			Begun: i != 2}); c != want {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
	if claims, _, err := d.Claims(t.Context(), ids[2]); err != nil || len(claims) != 1 || claims[0].MessageID != ids[3] {
		t.Errorf("after the third: %+v, %v", claims, err)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		begun, err := d.Begun(ctx, tx, carrier, 1, ids)
		if err != nil || len(begun) != 3 || !slices.Equal(statesOf(begun[0]),
			[]submission.State{submission.Waiting, submission.Accepted}) || begun[1].Records != nil {
			t.Errorf("%+v, %v", begun, err)
		}
		return err
	})
	if n, err := d.Free(t.Context(), d.pool, 1, d.claims(ids[2:]...)); err != nil || n != 1 {
		t.Errorf("%d freed, %v", n, err)
	}
	same(t, "claimed by the next", idsOf(d.claim(3, ids...)), ids[2:3])
}

// TestClaimsInParts: the claims in a large outbox are listed part by part.
func TestClaimsInParts(t *testing.T) {
	d := newTestStore(t)
	first := d.pending(1)[0]
	d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at, claimed_by) SELECT $1 + n, 1, 'leo', 1,
		now(), CASE WHEN n = 150000 THEN 9 END
		FROM generate_series(1, 150000) n`, first)
	d.claim(7, first)
	var got []outbox.ClaimedRow
	for after, more := int64(0), true; more; more = after > 0 {
		claims, next, err := d.Claims(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		got, after = append(got, claims...), next
	}
	if len(got) != 2 || got[0].Dispatcher != 7 || got[1].Dispatcher != 9 || got[1].Carrier != "leo" {
		t.Errorf("%+v", got)
	}
}

// TestHalfClaimed: if the second statement of a claim fails, the messages that the first one claimed are returned:
// those whose submit records could not be read as unread.
func TestHalfClaimed(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(3)
	d.exec(`UPDATE outbox SET attempts = 1 WHERE message_id = $1`, ids[1]) // and it has an xmax, like the next
	d.exec(`UPDATE outbox SET lane = 0 WHERE message_id = $1`, ids[2])
	d.exec(`ALTER TABLE segments RENAME TO gone`)
	got, err := d.Claim(t.Context(), 7, carrier, ids, false)
	if err == nil {
		t.Error("no error")
	}
	unread := map[int64]bool{}
	for _, c := range got {
		unread[c.ID] = c.Unread
	}
	if n := d.count(`SELECT count(*) FROM outbox WHERE claimed_by = 7`); len(got) != n || unread[ids[0]] {
		t.Errorf("%d are claimed, %d returned: %v", n, len(got), unread)
	}
}

// TestClaimSeesOptOuts: a claim returns the messages whose number has opted out of the sender by then, except if a
// carrier may have something of them, and except test messages and the gateway's own.
func TestClaimSeesOptOuts(t *testing.T) {
	d := newHotStore(t)
	const none, one, all = sms.Number("+25761999001"), sms.Number("+25761999002"), sms.Number("+25761999003")
	d.exec(`INSERT INTO senders (company_id, name, approved) VALUES (1, 'Demo', true), (1, 'Other', true)`)
	of := func(company int64) func(*messages.Message) {
		return func(m *messages.Message) { m.CompanyID = company }
	}
	from := func(sender string) func(*messages.Message) { return func(m *messages.Message) { m.Sender = sender } }
	test := func(m *messages.Message) { m.Test = true }
	ids := d.insert(
		d.compose(to(none)),                        // 0
		d.compose(to(one)),                         // 1: out
		d.compose(to(one), from("Demo")),           // 2: out
		d.compose(to(one), from("Other")),          // 3
		d.compose(to(one), of(2)),                  // 4
		d.compose(to(one), test),                   // 5
		d.compose(to(all), from("Other")),          // 6: out
		d.compose(to(all), of(0)),                  // 7
		d.compose(to(one), segments(3)),            // 8: a carrier has a segment
		d.compose(to(one)),                         // 9: a carrier may have it
		d.compose(to(one)),                         // 10: a carrier may have it, and an operator sent it again
		d.compose(to(one)),                         // 11: out: another carrier had it, and it was sent on
		d.compose(to(one), inBatch(batchOf(1, 1))), // 12: out
	)
	segment := `INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at, mark)
		VALUES ($1, 1, 3, 'leo', 'l', $2, now(), $3)`
	d.exec(segment, ids[8], "a", nil)
	d.exec(segment, ids[9], "?1", nil)
	d.exec(segment, ids[10], "?2", 2)
	d.exec(segment, ids[11], "b", 1)
	want := []int64{ids[1], ids[2], ids[6], ids[11], ids[12]}
	for _, how := range []struct {
		name  string
		claim func() []*outbox.Claimed
	}{
		{"by their ids", func() []*outbox.Claimed { return d.claim(7, ids...) }},
		{"as they are due", func() (claimed []*outbox.Claimed) {
			for _, lane := range []int{messages.LaneSingle, messages.LaneBatch} {
				some, err := d.ClaimDue(t.Context(), 7, carrier, lane, 100, 0, false)
				if err != nil {
					t.Fatal(err)
				}
				claimed = append(claimed, some...)
			}
			return claimed
		}},
	} {
		for _, listed := range []bool{false, true, false} {
			var now []int64 // the indexes that are out
			if d.exec(`DELETE FROM opt_outs`); listed {
				d.exec(`INSERT INTO opt_outs (company_id, phone_number, sender, source) VALUES (1, $1, 'DEMO', 'handset'),
					(1, $2, '', 'api'), (3, $3, '', 'api')`, one, all, none)
				now = want
			}
			var out []int64
			claimed := how.claim()
			for _, c := range claimed {
				if c.OptedOut {
					out = append(out, c.ID)
				}
			}
			if len(claimed) != len(ids) {
				t.Errorf("%s: %d of %d are claimed", how.name, len(claimed), len(ids))
			}
			slices.Sort(out)
			same(t, how.name+": opted out", out, now)
			d.exec(`UPDATE outbox SET claimed_by = NULL`)
		}
	}
}

// TestFreeKeepsOptOuts: after a dispatcher died with an opted-out message, the next claim returns it as opted out
// again; once its number is off the list, the first attempt begins.
func TestFreeKeepsOptOuts(t *testing.T) {
	d := newHotStore(t)
	ids := d.insert(d.compose(to("+25761999001")), d.compose(to("+25761999002")))
	d.exec(`UPDATE outbox SET attempts = 3 WHERE message_id = $1`, ids[0])
	d.exec(`INSERT INTO opt_outs (company_id, phone_number, source) VALUES (1, '+25761999001', 'handset')`)
	claim := func(dispatcher int64) (gone, other *outbox.Claimed) {
		t.Helper()
		claimed := d.claim(dispatcher, ids...)
		if len(claimed) != 2 {
			t.Fatalf("%d are claimed", len(claimed))
		}
		slices.SortFunc(claimed, func(a, b *outbox.Claimed) int { return int(a.ID - b.ID) })
		return claimed[0], claimed[1]
	}
	free := func(dead int64) {
		t.Helper()
		d.exec(`UPDATE outbox SET begun = false WHERE message_id = $1`, ids[1])
		if n := d.freed(dead); n != 2 {
			t.Fatalf("%d are freed", n)
		}
	}
	claim(7)
	free(7)
	if gone, other := claim(8); !gone.OptedOut || other.OptedOut {
		t.Errorf("after a death: %+v, and of the other %+v", gone, other)
	}
	if err := d.Release(t.Context(), 8, []messages.Claim{{MessageID: ids[0], Epoch: 2}, {MessageID: ids[1], Epoch: 2}},
		0); err != nil {
		t.Fatal(err)
	}
	if gone, _ := claim(9); !gone.OptedOut {
		t.Errorf("after it was given back: %+v", gone)
	}
	free(9)
	d.exec(`DELETE FROM opt_outs`)
	if gone, _ := claim(10); gone.OptedOut || gone.Attempt != 1 {
		t.Errorf("of a number that is back: %+v", gone)
	}
}

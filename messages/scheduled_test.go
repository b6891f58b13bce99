package messages_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/messages/retention"
	"intumwa/sms"
)

// later schedules a message for a time.
func later(at time.Time) func(*messages.Message) {
	return func(m *messages.Message) { m.SendAt, m.Scheduled = at.UTC().Truncate(time.Second), true }
}

// batchOf returns a batch of a company.
func batchOf(company int64, n int) *messages.Batch {
	return &messages.Batch{ULID: ulid.Make(), CompanyID: company, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: n,
		Segments: n}
}

func inBatch(b *messages.Batch) func(*messages.Message) {
	return func(m *messages.Message) { m.Batch, m.CompanyID = b, b.CompanyID }
}

func (d *testStore) release(lane, limit int, quiet ...outbox.Quiet) []outbox.Released {
	d.Helper()
	var q outbox.Quiet
	if len(quiet) > 0 {
		q = quiet[0]
	}
	released, _, err := d.ReleaseScheduled(d.Context(), lane, limit, q, outbox.Due{})
	if err != nil {
		d.Fatal(err)
	}
	slices.SortFunc(released, func(a, b outbox.Released) int { return int(a.ID - b.ID) })
	return released
}

func releasedIDs(released []outbox.Released) (ids []int64) {
	for _, r := range released {
		ids = append(ids, r.ID)
	}
	return ids
}

// TestScheduled: a scheduled message is on no list until it is due; those due longest are released first, each once,
// and their waiting time counts from then on.
func TestScheduled(t *testing.T) {
	d := newHotStore(t)
	hour := time.Now().Add(time.Hour)
	b := batchOf(1, 2)
	b.SendAt, b.ExpireAt = hour.UTC().Truncate(time.Second), hour.Add(2*time.Hour).UTC().Truncate(time.Second)
	ids := d.insert(
		d.compose(later(hour.Add(time.Minute))),
		d.compose(later(hour)),
		d.compose(later(hour), inBatch(b), func(m *messages.Message) { m.ExpireAt = b.ExpireAt }),
		d.compose(later(hour.Add(-time.Minute)), inBatch(b)),
		d.compose(func(m *messages.Message) { m.ExpireAt = hour.UTC().Truncate(time.Second) }),
	)
	if n := d.count(`SELECT count(*) FROM outbox`); n != 1 || d.count(`SELECT message_id FROM outbox`) != int(ids[4]) {
		t.Fatalf("%d are on the outbox, want the last alone", n)
	}
	if n := d.count(
		`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id AND m.expire_at = o.expires_at`); n != 1 {
		t.Error("expire_at is not when it expires")
	}
	if len(d.release(0, 10))+len(d.release(1, 10)) > 0 {
		t.Error("a message was released before its time")
	}
	if wait, some, _, err := d.NextRelease(t.Context(), [2]outbox.Due{}); err != nil || !some || wait < 58*time.Minute ||
		wait > 59*time.Minute {
		t.Errorf("the next is due in %s, %v, %v", wait, some, err)
	}
	if lanes, err := d.Scheduled(t.Context()); err != nil || lanes != [2]int64{2, 2} {
		t.Errorf("%v are scheduled, %v", lanes, err)
	}
	r, err := d.ByID(t.Context(), 1, ids[2])
	if err != nil || r.SendAt == nil || !r.SendAt.Equal(b.SendAt) || r.ExpireAt == nil || !r.ExpireAt.Equal(b.ExpireAt) ||
		r.Status != sms.Pending {
		t.Errorf("%+v, %v", r, err)
	}
	if h, err := d.HistoryOf(t.Context(), ids[2]); err != nil || h.Waiting == nil || !h.Waiting.DueAt.Equal(b.SendAt) ||
		!h.Waiting.ExpiresAt.Equal(b.ExpireAt) {
		t.Errorf("it waits as %+v, %v", h.Waiting, err)
	}
	if batch, err := d.BatchByULID(t.Context(), 1, b.ULID); err != nil || !batch.SendAt.Equal(b.SendAt) ||
		!batch.ExpireAt.Equal(b.ExpireAt) {
		t.Errorf("the batch: %+v, %v", batch, err)
	}

	d.exec(`UPDATE scheduled SET due_at = due_at - interval '1 hour' - interval '2 minutes',
		expires_at = expires_at - interval '2 minutes'`)
	d.exec(`UPDATE messages SET send_at = send_at - interval '62 minutes', created_at = created_at - interval '30 days'
		WHERE send_at IS NOT NULL`)
	if wait, some, _, err := d.NextRelease(t.Context(), [2]outbox.Due{}); err != nil || !some || wait > -2*time.Minute ||
		wait < -4*time.Minute {
		t.Errorf("the next is due in %s, %v, %v", wait, some, err)
	}
	if got := releasedIDs(d.release(0, 1)); !slices.Equal(got, ids[1:2]) {
		t.Errorf("released %v, want %d, which is due longest", got, ids[1])
	}
	if got := releasedIDs(d.release(0, 10)); !slices.Equal(got, ids[:1]) {
		t.Errorf("released %v, want %d", got, ids[0])
	}
	if got := releasedIDs(d.release(1, 10)); !slices.Equal(got, ids[2:4]) {
		t.Errorf("released %v, want %v", got, ids[2:4])
	}
	if len(d.release(0, 10))+len(d.release(1, 10)) > 0 {
		t.Error("something was released twice")
	}
	if n := d.count(`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id WHERE o.company_id = m.company_id
		AND o.carrier = m.carrier
		AND o.lane = CASE WHEN m.batch_id IS NULL THEN 0 ELSE 1 END AND o.due_at <= now() AND o.pushed_at IS NOT NULL
		AND o.claimed_by IS NULL AND o.expires_at > now()`); n != 5 {
		t.Errorf("%d are on the outbox as they should be, want all 5", n)
	}
	if err := d.KeepBacklogs(t.Context(), []outbox.Counted{{Carrier: carrier, Lane: 0, Messages: 3, First: ids[0]},
		{Carrier: carrier, Lane: 1, Messages: 2, First: ids[2]}}); err != nil {
		t.Fatal(err)
	}
	backlogs, err := d.Backlogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range backlogs {
		if age := time.Since(b.Oldest); age > 10*time.Minute || age < 0 {
			t.Errorf("lane %d: the oldest has waited for %s, want since its time", b.Lane, age)
		}
	}
	claimed := d.claim(7, ids...)
	if len(claimed) != 5 {
		t.Errorf("%d were claimed", len(claimed))
	}
	a, err := d.Audit(t.Context(), time.Hour)
	if err != nil || a.StuckPending != 0 || a.OrphanQueue != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestReleasedOnce: concurrent processes release each message once.
func TestReleasedOnce(t *testing.T) {
	d := newHotStore(t)
	b := batchOf(1, 3000)
	d.pending(3000, later(time.Now().Add(-time.Second)), inBatch(b))
	var mu sync.Mutex
	var released []int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for empty := 0; empty < 3; {
				got, _, err := d.ReleaseScheduled(d.Context(), 1, 200, outbox.Quiet{}, outbox.Due{})
				if err != nil {
					t.Error(err)
					return
				}
				if len(got) == 0 {
					empty++
				}
				mu.Lock()
				released = append(released, releasedIDs(got)...)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(released)
	if n := len(slices.Compact(released)); n != 3000 || len(released) != 3000 {
		t.Errorf("%d were released, %d different ones", len(released), n)
	}
	if n := d.count(`SELECT count(*) FROM outbox`); n != 3000 {
		t.Errorf("%d are on the outbox", n)
	}
}

// TestReleaseContinues: releasing continues after its last position, and does not read released rows again that an open
// snapshot keeps.
func TestReleaseContinues(t *testing.T) {
	d := newHotStore(t)
	b := batchOf(1, 4000)
	past := later(time.Now().Add(-time.Second))
	ids := d.pending(4000, past, inBatch(b))
	ctx := t.Context()
	holder, err := d.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := holder.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
		SET LOCAL idle_in_transaction_session_timeout = 0; SELECT count(*) FROM scheduled`); err != nil {
		t.Fatal(err)
	}
	var at outbox.Due
	for step := range 4 {
		released, last, err := d.ReleaseScheduled(ctx, 1, 1000, outbox.Quiet{}, at)
		if err != nil || len(released) != 1000 || last.ID != ids[1000*step+999] {
			t.Fatalf("step %d released %d up to %+v, %v", step, len(released), last, err)
		}
		at = last
	}
	if released, last, err := d.ReleaseScheduled(ctx, 1, 1000, outbox.Quiet{}, at); err != nil || len(released) != 0 ||
		last != at {
		t.Errorf("%d are left behind %+v, %v", len(released), last, err)
	}
	late := d.pending(1, past, inBatch(batchOf(1, 1)))
	if released, _, err := d.ReleaseScheduled(ctx, 1, 1000, outbox.Quiet{}, at); err != nil || len(released) != 1 ||
		released[0].ID != late[0] {
		t.Errorf("%+v, %v, want what came since", released, err)
	}
	var read int
	row := d.pool.QueryRow(ctx, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT due_at FROM scheduled WHERE lane = 1
		AND (due_at, message_id) > ($1, $2) ORDER BY due_at, message_id LIMIT 1`, at.At, at.ID)
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := row.Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if read = plan[0].Plan.Hit + plan[0].Plan.Read; read > 20 {
		t.Errorf("a look reads %d blocks", read)
	}
}

// TestQuiet: in quiet hours released and queued messages of batches wait for their end. Single messages and tried ones
// do not.
func TestQuiet(t *testing.T) {
	d := newHotStore(t)
	end, past := time.Now().Add(3*time.Hour).Truncate(time.Second), later(time.Now().Add(-time.Second))
	of := func(company int64) func(*messages.Message) { return inBatch(batchOf(company, 1)) }
	ids := d.insert(
		d.compose(past), d.compose(past, of(1)), d.compose(past, of(2)), d.compose(past, of(3)), // scheduled
		d.compose(), d.compose(of(1)), d.compose(of(2)), d.compose(of(3)), d.compose(of(1)), // queued
	)
	d.exec(`UPDATE outbox SET attempts = 1 WHERE message_id = $1`, ids[8])
	quiet := outbox.Quiet{Until: map[int64]time.Time{2: {}, 3: end}, Otherwise: end.Add(time.Hour)}
	if released := d.release(0, 10, quiet); len(released) != 1 || released[0].Postponed {
		t.Errorf("of single messages %+v", released)
	}
	released := d.release(1, 10, quiet)
	if len(released) != 3 || !released[0].Postponed || released[1].Postponed || !released[2].Postponed {
		t.Errorf("of batches %+v", released)
	}
	lanes := []outbox.Stretch{{Carrier: carrier, Lane: messages.LaneSingle}, {Carrier: carrier, Lane: messages.LaneBatch}}
	for _, s := range d.walk(lanes...) {
		if len(s.Quiet) != 0 {
			t.Errorf("without quiet hours %v are to be put off", s.Quiet)
		}
	}
	seen := d.walkIn(quiet, lanes...)
	same(t, "single messages to be put off", seen[0].Quiet, nil)
	same(t, "to be put off", seen[1].Quiet, []int64{ids[5], ids[7]})
	if n, err := d.PutOff(t.Context(), quiet, ids); err != nil || n != 2 {
		t.Errorf("%d were put off, %v; want one of company 1 and one of company 3", n, err)
	}
	if n, err := d.PutOff(t.Context(), quiet, ids); err != nil || n != 0 {
		t.Errorf("%d were put off again, %v", n, err)
	}
	same(t, "to be put off again", d.walkIn(quiet, lanes...)[1].Quiet, nil)
	for i, until := range map[int]time.Time{1: end.Add(time.Hour), 3: end, 5: end.Add(time.Hour), 7: end} {
		if n := d.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND due_at = $2 AND pushed_at IS NULL`, ids[i],
			until); n != 1 {
			t.Errorf("message %d does not wait until %s", i, until)
		}
	}
	if got := idsOf(d.claim(7, ids...)); len(got) != 5 {
		t.Errorf("%v are to be carried now, of %v", got, ids)
	}
	if n, err := d.PutOff(t.Context(), outbox.Quiet{Until: map[int64]time.Time{1: {}}}, ids); err != nil || n != 0 {
		t.Errorf("without quiet hours %d, %v", n, err)
	}
}

// TestQuietBegins: quiet hours begin when a company's begin, or are extended; not when they end.
func TestQuietBegins(t *testing.T) {
	at := time.Now()
	none := time.Time{}
	of := func(otherwise time.Time, companies ...time.Time) outbox.Quiet {
		q := outbox.Quiet{Otherwise: otherwise, Until: map[int64]time.Time{}}
		for i, until := range companies {
			q.Until[int64(i+1)] = until
		}
		return q
	}
	for _, c := range []struct {
		name          string
		before, after outbox.Quiet
		want          bool
	}{
		{"none has any", outbox.Quiet{}, outbox.Quiet{}, false},
		{"all others'", of(none, none), of(at, none), true},
		{"and go on", of(at), of(at), false},
		{"and end", of(at), of(none), false},
		{"a company's own", of(none, none), of(none, at), true},
		{"a company's own, amid the others'", of(at, none), of(at, at.Add(time.Hour)), true},
		{"a company's own, which end before the others'", of(at), of(at, at.Add(-time.Hour)), false},
		{"the others', and a company has none", of(none, none), of(none), false},
		{"of one that has its own no more", of(at, none), of(at), true},
		{"the next night's", of(at), of(at.Add(24 * time.Hour)), true},
	} {
		if got := c.after.Begins(c.before); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// cancel does what settling.Cancel does, without refunds.
func (d *testStore) cancel(q messages.Queued) (cancelled []int64) {
	d.Helper()
	waiting, more, err := d.Waiting(d.Context(), q, 0)
	if err != nil || more {
		d.Fatal(more, err)
	}
	for some := range slices.Chunk(waiting, 100) {
		for _, take := range []func(context.Context, pgx.Tx, []int64) ([]messages.Final, error){d.CancelledScheduled,
			d.Cancelled} {
			d.tx(func(ctx context.Context, tx pgx.Tx) error {
				finals, err := take(ctx, tx, some)
				if err != nil {
					return err
				}
				settled, err := d.Finish(ctx, tx, finals, messages.Rows{})
				for _, s := range settled {
					cancelled = append(cancelled, s.ID)
				}
				return err
			})
		}
	}
	slices.Sort(cancelled)
	return cancelled
}

// TestCancelScheduled: scheduled messages can be cancelled like queued ones: one, a batch's, or all of a company's, and
// no other company's.
func TestCancelScheduled(t *testing.T) {
	d := newHotStore(t)
	soon := later(time.Now().Add(time.Hour))
	b := batchOf(1, 250)
	batch := d.pending(250, soon, inBatch(b))
	singles := d.pending(3, soon)
	queued := d.pending(2)
	others := d.pending(2, soon, func(m *messages.Message) { m.CompanyID = 2 })
	key, err := messages.QueuedOf(t.Context(), d.pool, b.ULID)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.cancel(messages.Queued{Company: 2, Message: singles[0]}); len(got) > 0 {
		t.Errorf("another company cancelled %v", got)
	}
	if got := d.cancel(messages.Queued{Company: 1, Message: singles[0]}); !slices.Equal(got, singles[:1]) {
		t.Errorf("cancelled %v, want %d", got, singles[0])
	}
	if got := d.cancel(messages.Queued{Company: 1, Message: singles[0]}); len(got) > 0 {
		t.Errorf("cancelled %v again", got)
	}
	if n, err := d.Left(t.Context(), key); err != nil || n != 250 {
		t.Errorf("%d are left of the batch, %v", n, err)
	}
	if got := d.cancel(key); !slices.Equal(got, batch) {
		t.Errorf("cancelled %d of the batch's 250", len(got))
	}
	if got := d.cancel(messages.Queued{Company: 1}); !slices.Equal(got, slices.Concat(singles[1:], queued)) {
		t.Errorf("cancelled %v of the company's, want %v and %v", got, singles[1:], queued)
	}
	if n := d.count(`SELECT count(*) FROM messages WHERE status = 2 AND failure_reason = 'cancelled'`); n != 255 {
		t.Errorf("%d are cancelled", n)
	}
	if n := d.count(`SELECT count(*) FROM scheduled`); n != len(others) {
		t.Errorf("%d are scheduled, want the other company's", n)
	}
	if a, err := d.Audit(t.Context(), time.Hour); err != nil || a.StuckPending != 0 || a.OrphanQueue != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestCancelWhileReleased: a cancellation misses no message that is being released.
func TestCancelWhileReleased(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(3, later(time.Now().Add(-time.Second)))
	ctx := t.Context()
	releasing, err := d.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = releasing.Rollback(context.WithoutCancel(ctx)) }()
	// As ReleaseScheduled does, but the test chooses its end.
	if _, err := releasing.Exec(ctx, `WITH gone AS (DELETE FROM scheduled WHERE message_id = ANY($1) RETURNING *)
		INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at) SELECT message_id, company_id, carrier, lane,
			expires_at FROM gone`, ids[:2]); err != nil {
		t.Fatal(err)
	}
	done := make(chan []int64, 1)
	go func() { done <- d.cancel(messages.Queued{Company: 1}) }()
	for end := time.Now().Add(time.Minute); !testenv.Blocked(t, d.pool); <-time.After(10 * time.Millisecond) {
		if len(done) > 0 || time.Now().After(end) {
			t.Fatal("it does not wait")
		}
	}
	if err := releasing.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !slices.Equal(got, ids) {
		t.Errorf("cancelled %v of %v", got, ids)
	}
}

// TestDeadlines: a message with its own deadline is decided when that is over, by its carrier's timeout; the sweep over
// all messages does not change it.
func TestDeadlines(t *testing.T) {
	d := newHotStore(t)
	soon := time.Now().Add(time.Hour)
	short := func(m *messages.Message) { m.ExpireAt = soon }
	ids := d.insert(
		d.compose(short),                    // 0: still on the outbox
		d.compose(short),                    // 1: at a carrier with a long timeout
		d.compose(short, carriedBy("leo")),  // 2: at one with a short timeout
		d.compose(short),                    // 3: sent
		d.compose(later(soon)),              // 4: scheduled
		d.compose(short, carriedBy("gone")), // 5: at one that is not configured any more
		d.compose(),                         // 6: without a deadline of its own
	)
	d.exec(`DELETE FROM outbox WHERE message_id = ANY($1)`, []int64{ids[1], ids[2], ids[3], ids[5]})
	d.exec(`UPDATE messages SET status = 1, sent_at = now() WHERE id = $1`, ids[3])
	if n := d.count(`SELECT count(*) FROM deadlines`); n != 6 {
		t.Fatalf("%d have a deadline of their own", n)
	}
	timeouts := messages.ReceiptTimeouts{Own: map[string]time.Duration{carrier: 2 * time.Hour, "leo": 90 * time.Second},
		Served: []string{carrier, "leo"}, Otherwise: 3 * time.Hour}
	look := func() (overdue map[int64]string) {
		t.Helper()
		d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
			var done bool
			if overdue, done, err = d.Overdue(ctx, tx, timeouts, 100); !done {
				t.Error("there are more")
			}
			return err
		})
		return overdue
	}
	age := func(by string) {
		d.exec(`UPDATE deadlines SET expires_at = expires_at - $1::interval, look_at = look_at - $1::interval`, by)
	}
	if got := look(); len(got) > 0 {
		t.Errorf("too early: %v", got)
	}
	d.exec(`UPDATE messages SET created_at = created_at - interval '10 days'`)
	d.sweep(time.Hour, 100)
	if n := d.count(`SELECT count(*) FROM deadlines WHERE expires_at < now()`); n != 1 {
		t.Errorf("the sweep over all has changed deadlines, or the last message has none: %d are over", n)
	}
	d.exec(`DELETE FROM deadlines WHERE message_id = $1`, ids[6])
	d.exec(`DELETE FROM outbox WHERE message_id <> $1`, ids[6])
	d.insertOutbox(ids[0])

	age("61 minutes")
	if got := look(); len(got) > 0 {
		t.Errorf("within their carriers' timeouts: %v", got)
	}
	if n := d.count(`SELECT count(*) FROM deadlines`); n != 5 {
		t.Errorf("%d have a deadline, want all but the one that is sent", n)
	}
	age("1 minute")
	if got := fmt.Sprint(look()); got != fmt.Sprint(map[int64]string{ids[2]: "leo"}) {
		t.Errorf("after leo's timeout: %s", got)
	}
	if a, err := d.Audit(t.Context(), time.Hour); err != nil || a.StuckPending != 3 {
		// without segments they are at no carrier
		t.Errorf("%+v, %v", a, err)
	}
	for _, id := range []int64{ids[1], ids[5]} {
		d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at) SELECT id, 1, 1, 'x', 'x',
			id::text, now() FROM messages WHERE id = $1`, id)
	}
	d.exec(`UPDATE messages SET status = 2, failed_at = now() WHERE id = $1`, ids[2])
	d.exec(`DELETE FROM messages WHERE id = $1`, ids[6])
	d.exec(`DELETE FROM outbox WHERE message_id = $1`, ids[6])
	if a, err := d.Audit(t.Context(), time.Hour); err != nil || a.StuckPending != 0 {
		t.Errorf("the audit takes them for stuck: %+v, %v", a, err)
	}
	age("2 hours")
	if got := fmt.Sprint(look()); got != fmt.Sprint(map[int64]string{ids[1]: carrier}) {
		t.Errorf("after lumitel's timeout: %s", got)
	}
	age("1 hour")
	if got := fmt.Sprint(look()); got != fmt.Sprint(map[int64]string{ids[5]: "gone"}) {
		t.Errorf("after the longest timeout: %s", got)
	}
	if n := d.count(`SELECT count(*) FROM deadlines WHERE look_at > now()`); n != 2 {
		t.Errorf("%d are looked at again, want the one on the outbox and the scheduled one", n)
	}
}

func carriedBy(name string) func(*messages.Message) {
	return func(m *messages.Message) { m.Carrier = name }
}

// insertOutbox puts a message on the outbox.
func (d *testStore) insertOutbox(id int64) {
	d.Helper()
	d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at) SELECT id, company_id, carrier, 0,
		now() + interval '1 day' FROM messages WHERE id = $1
		ON CONFLICT DO NOTHING`, id)
}

// TestPurgeOfScheduled: a scheduled message's age counts from its time to be sent; it delays neither the purge of
// others nor the gauge.
func TestPurgeOfScheduled(t *testing.T) {
	d := newHotStore(t)
	const life = 24 * time.Hour
	ids := d.insert(d.compose(later(time.Now().Add(time.Hour))), d.compose(), d.compose(later(time.Now().Add(time.Hour))))
	d.exec(`UPDATE messages SET created_at = now() - interval '20 days'`)
	d.exec(`UPDATE messages SET status = 1, sent_at = now() WHERE id = ANY($1)`, ids[1:])
	d.exec(`DELETE FROM outbox`)
	d.exec(`DELETE FROM scheduled WHERE message_id = $1`, ids[2])
	d.exec(`UPDATE messages SET send_at = now() - interval '1 minute' WHERE id = $1`, ids[2])
	for range 2 {
		if _, _, err := d.Purge(t.Context(), retention.PurgeMessages, life); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.count(`SELECT count(*) FROM messages WHERE id = ANY($1)`, []int64{ids[0], ids[2]}); n != 2 ||
		d.count(`SELECT count(*) FROM messages`) != 2 {
		t.Errorf("%d of 2 are left", n)
	}
	if behind, err := d.PurgeBehind(t.Context(), retention.PurgeMessages, life); err != nil || behind != 0 {
		t.Errorf("behind by %s, %v", behind, err)
	}
	d.exec(`UPDATE messages SET send_at = now() - interval '2 days' WHERE id = $1`, ids[2])
	for range 2 {
		if _, _, err := d.Purge(t.Context(), retention.PurgeMessages, life); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.count(`SELECT count(*) FROM messages WHERE id = $1`, ids[2]); n != 0 {
		t.Error("it is not purged a day after it was to be sent")
	}
	if n := d.count(`SELECT count(*) FROM messages WHERE id = $1 AND status = 0`, ids[0]); n != 1 {
		t.Error("the scheduled one is gone")
	}
}

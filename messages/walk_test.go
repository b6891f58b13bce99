package messages_test

import (
	"slices"
	"testing"
	"time"

	"intumwa/messages"
	"intumwa/messages/outbox"
)

func batch(company int64) func(*messages.Message) {
	return func(m *messages.Message) {
		m.CompanyID = company
		m.Batch = &messages.Batch{ULID: m.ULID, CompanyID: company, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: 1,
			Segments: 1}
	}
}

// walk does one walk over stretches.
func (d *testStore) walk(stretches ...outbox.Stretch) []outbox.Seen {
	d.Helper()
	return d.walkIn(outbox.Quiet{}, stretches...)
}

// walkIn does one in quiet hours.
func (d *testStore) walkIn(quiet outbox.Quiet, stretches ...outbox.Stretch) []outbox.Seen {
	d.Helper()
	seen, next, err := d.Walk(d.Context(), stretches, quiet)
	if err != nil || len(seen) != len(stretches) {
		d.Fatal(seen, err)
	}
	if last := d.count(`SELECT last_value FROM messages_id_seq`); next != int64(last)+1 {
		d.Errorf("the next id is %d, the last was %d", next, last)
	}
	return seen
}

// TestWalk: a walk returns the work on each stretch's rows, and nothing of other rows.
func TestWalk(t *testing.T) {
	d := newTestStore(t)
	ids := d.pending(9)
	bulk := d.pending(2, batch(2))
	d.pending(1, func(m *messages.Message) { m.Carrier = "gone" })
	d.exec(`UPDATE outbox SET due_at = now() - interval '1 hour' WHERE message_id = $1`, ids[4])
	d.exec(`UPDATE outbox SET expires_at = now() WHERE message_id = ANY($1)`, []int64{ids[2], ids[3], bulk[1]})
	d.exec(`UPDATE outbox SET claimed_by = 8 WHERE message_id = $1`, ids[3])
	d.exec(`UPDATE outbox SET claimed_by = 7 WHERE message_id = ANY($1)`, []int64{ids[5], ids[6]})
	d.exec(`UPDATE outbox SET due_at = now() + interval '1 hour' WHERE message_id = $1`, ids[7])
	d.exec(`UPDATE outbox SET due_at = '9999-12-31Z' WHERE message_id = $1`, ids[8])

	seen := d.walk(
		outbox.Stretch{Carrier: carrier, Lane: messages.LaneSingle, After: ids[0], Stranded: true},
		outbox.Stretch{Carrier: carrier, Lane: messages.LaneBatch},
		outbox.Stretch{Carrier: "unserved", Lane: messages.LaneSingle},
		outbox.Stretch{Carrier: carrier, Lane: messages.LaneSingle, After: ids[8]})
	s := seen[0]
	if s.Rows != 8 || s.First != ids[1] || s.Last != ids[8] || time.Since(s.Due) < time.Hour {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(s.Claimants, []int64{7, 8}) {
		t.Errorf("claimants %v", s.Claimants)
	}
	same(t, "expired", s.Expired, ids[2:3])
	same(t, "stranded", s.Stranded, []int64{ids[1], ids[4]})
	same(t, "expired of the batches", seen[1].Expired, bulk[1:])
	if s := seen[1]; s.Rows != 2 || len(s.Stranded)+len(s.Claimants) != 0 {
		t.Errorf("%+v", s)
	}
	for _, s := range seen[2:] {
		if s.Rows != 0 || s.First != 0 || s.Last != 0 || !s.Due.IsZero() {
			t.Errorf("of nothing: %+v", s)
		}
	}
	carriers, err := d.OutboxCarriers(t.Context())
	if err != nil || !slices.Equal(carriers, []string{"gone", carrier}) {
		t.Errorf("carriers %v, %v", carriers, err)
	}
	d.exec(`DELETE FROM outbox`)
	if carriers, err := d.OutboxCarriers(t.Context()); err != nil || len(carriers) != 0 {
		t.Errorf("carriers %v, %v", carriers, err)
	}
}

// TestLost: due messages that were pushed before the oldest in the queue are lost.
func TestLost(t *testing.T) {
	d := newTestStore(t)
	ids := append(d.pending(5), d.pending(2, batch(1))...)
	minute, hour := time.Minute, time.Hour
	single := outbox.Stretch{Carrier: carrier, Lane: messages.LaneSingle, Queued: &minute}
	batches := outbox.Stretch{Carrier: carrier, Lane: messages.LaneBatch, Queued: &hour}
	for i, pushed := range map[int]string{0: `now() - interval '30 seconds'`, 1: `now() - interval '2 minutes'`, 2: `NULL`,
		3: `now() - interval '2 minutes', claimed_by = 1`,
		4: `now() - interval '2 minutes', due_at = now() + interval '1 minute'`,
		5: `now() - interval '2 minutes'`, 6: `now() - interval '2 hours'`} {
		d.exec(`UPDATE outbox SET pushed_at = `+pushed+` WHERE message_id = $1`, ids[i])
	}
	lost := func() (got []int64) {
		t.Helper()
		for _, s := range d.walk(single, batches) {
			for _, w := range s.Lost {
				got = append(got, w.ID)
				if w.Carrier != carrier || w.CompanyID != 1 || (w.Lane == messages.LaneBatch) != (w.ID >= ids[5]) {
					t.Errorf("%+v", w)
				}
			}
		}
		return got
	}
	same(t, "lost", lost(), []int64{ids[1], ids[6]})
	if due, err := d.Unpushed(t.Context(), []string{carrier, carrier}, []int16{0, 1}, 10); err != nil || len(due) != 1 ||
		due[0].ID != ids[2] {
		t.Errorf("due again: %+v, %v; want %d", due, err, ids[2])
	}
	if err := d.Pushed(t.Context(), carrier, lost()); err != nil {
		t.Fatal(err)
	}
	same(t, "lost after the push", lost(), nil)
	single.Queued, batches.Queued = nil, nil
	d.exec(`UPDATE outbox SET pushed_at = now() - interval '1 day'`)
	same(t, "lost without takers of the queue", lost(), nil)
	single.Queued = &minute
	d.exec(`UPDATE outbox SET expires_at = now()`)
	same(t, "lost and expired", lost(), nil)

	d.exec(`UPDATE outbox SET pushed_at = NULL, expires_at = now() + interval '1 day'`)
	d.exec(`UPDATE outbox SET due_at = now() + interval '1 hour' WHERE message_id = $1`, ids[1])
	d.exec(`UPDATE outbox SET carrier = 'other' WHERE message_id = $1`, ids[6])
	if err := d.Pushed(t.Context(), carrier, []int64{ids[1], ids[2], ids[6]}); err != nil {
		t.Fatal(err)
	}
	if n := d.count(`SELECT count(*) FROM outbox WHERE pushed_at IS NOT NULL AND message_id <> $1`, ids[2]); n != 0 {
		t.Error("a message that was postponed or moved is marked as pushed")
	}
}

// fill inserts n messages of one company's campaign and returns the first id.
func (d *testStore) fill(lane, n int) int64 {
	d.Helper()
	first := int64(d.count(`SELECT nextval('messages_id_seq')`))
	d.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at)
		SELECT id, 1, $1, $2, now() + interval '1 day' FROM generate_series($3::bigint, $3::bigint + $4 - 1) id`, carrier,
		lane, first, n)
	d.exec(`SELECT setval('messages_id_seq', $1)`, first+int64(n))
	return first
}

// TestWalkCost: a walk reads the same number of pages however much waits beyond its stretch, with any statistics; a
// whole lane is read once.
func TestWalkCost(t *testing.T) {
	d := newTestStore(t)
	d.fill(messages.LaneSingle, 1000)
	d.fill(messages.LaneBatch, outbox.WalkRows+1000)
	queued := time.Minute
	traced, seen := d.traced()
	at := func(lane int, after int64) outbox.Stretch {
		return outbox.Stretch{Carrier: carrier, Lane: lane, After: after, Queued: &queued}
	}
	quiet := outbox.Quiet{Until: map[int64]time.Time{2: {}}, Otherwise: time.Now().Add(time.Hour)}
	pages := func(quiet outbox.Quiet) int {
		t.Helper()
		seen.list = nil
		if _, _, err := traced.Walk(t.Context(), []outbox.Stretch{at(messages.LaneSingle, 0), at(messages.LaneBatch, 0)},
			quiet); err != nil {
			t.Fatal(err)
		}
		walk := seen.with(`FROM outbox r`)[0]
		var text []byte
		tx, err := d.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if _, err := tx.Exec(t.Context(), outbox.ByIndex); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+walk.SQL, walk.Args...).Scan(
			&text); err != nil {
			t.Fatal(err)
		}
		return pagesOf(t, text)
	}
	first := pages(outbox.Quiet{})
	d.fill(messages.LaneBatch, 30_000)
	for _, known := range []bool{false, true} {
		if known {
			d.exec(`ANALYZE outbox`)
		}
		for _, q := range []outbox.Quiet{{}, quiet} {
			if got := pages(q); got > first+first/10 {
				t.Errorf("with 30,000 more beyond, a walk reads %d pages and not %d (quiet hours: %v, the planner has "+
					"counted them: %v)", got, first, q.Some(), known)
			}
		}
	}
	t.Logf("FIGURE pages a walk over %d rows: %d", outbox.WalkRows+1000, first)

	all, after := int64(0), int64(0)
	for {
		s := d.walk(at(messages.LaneBatch, after))[0]
		if s.Rows > outbox.WalkRows || s.First <= after {
			t.Fatalf("after %d: %+v", after, s)
		}
		all, after = all+s.Rows, s.Last
		if s.Rows < outbox.WalkRows {
			break
		}
	}
	if want := int64(outbox.WalkRows + 31_000); all != want {
		t.Errorf("it comes by %d rows, want %d", all, want)
	}
}

// TestBacklogs: the stored counts are shown; counts of other lanes are deleted; unchanged ones are not written.
func TestBacklogs(t *testing.T) {
	d := newTestStore(t)
	backlogs := func() map[string]outbox.Backlog {
		t.Helper()
		list, err := d.Backlogs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]outbox.Backlog{}
		for _, b := range list {
			all[b.Carrier] = b
		}
		return all
	}
	keep := func(lanes ...outbox.Counted) {
		t.Helper()
		if err := d.KeepBacklogs(t.Context(), lanes); err != nil {
			t.Fatal(err)
		}
	}
	if got := backlogs(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	ids := d.pending(1)
	d.exec(`UPDATE messages SET created_at = now() - interval '1 hour' WHERE id = $1`, ids[0])
	here := outbox.Counted{Carrier: carrier, Lane: messages.LaneBatch, Messages: 3, First: ids[0],
		Due: time.Now().Add(-time.Minute)}
	keep(here, outbox.Counted{Carrier: "onatel", Messages: 1, First: ids[0], Due: time.Now().Add(time.Hour)},
		outbox.Counted{Carrier: "leo"})
	got := backlogs()
	if b := got[carrier]; len(got) != 2 || b.Messages != 3 || b.Lane != messages.LaneBatch ||
		time.Since(b.Oldest) < time.Hour || b.Due < time.Minute || b.Due > time.Hour {
		t.Errorf("%+v", got)
	}
	if b := got["onatel"]; b.Messages != 1 || b.Due != 0 {
		t.Errorf("%+v: nothing is due", b)
	}
	xmin := func() int { return d.count(`SELECT xmin::text::bigint FROM backlogs WHERE carrier = $1`, carrier) }
	before := xmin()
	keep(here)
	if got := backlogs(); len(got) != 1 || xmin() != before {
		t.Errorf("%+v; written again: %v", got, xmin() != before)
	}
	here.Messages = 4
	keep(here)
	if got := backlogs(); got[carrier].Messages != 4 {
		t.Errorf("%+v", got)
	}
	here.Messages, here.Partial = 3, true
	keep(here)
	if got := backlogs(); got[carrier].Messages != 4 {
		t.Errorf("%+v: less was counted, but not to the end", got)
	}
	here.Messages = 5
	keep(here)
	if got := backlogs(); got[carrier].Messages != 5 {
		t.Errorf("%+v", got)
	}
	keep()
	if got := backlogs(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

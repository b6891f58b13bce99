package messages_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/receipts"
	"intumwa/messages/retention"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

const life = 90 * 24 * time.Hour

// aged sets the age of messages.
func (d *testStore) aged(age time.Duration, ids ...int64) {
	d.Helper()
	d.exec(`UPDATE messages SET created_at = now() - $2::interval WHERE id = ANY($1)`, ids, age)
	// The latest message of the pair has taken the reference.
	d.exec(`UPDATE concat_refs c SET used_at = (SELECT max(created_at) FROM messages m WHERE m.sender = c.sender
		AND m.phone_number = c.phone_number AND m.segments > 1)`)
}

// over makes messages final, as sent, and takes them off the outbox.
func (d *testStore) over(ids ...int64) {
	d.Helper()
	finals := make([]messages.Final, len(ids))
	for i, id := range ids {
		finals[i] = messages.Final{MessageID: id, Status: sms.Sent, At: time.Now()}
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := d.Finish(ctx, tx, finals, messages.Rows{Leave: leaving(ids)})
		return err
	})
}

// batch records a batch of n messages and its debit.
func (d *testStore) batch(company int64, n int) (b *messages.Batch, ids []int64) {
	d.Helper()
	b = &messages.Batch{ULID: ulid.Make(), CompanyID: company, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: n,
		Segments: n}
	ids = d.pending(n, func(m *messages.Message) { m.Batch, m.CompanyID = b, company })
	d.paid(b.ULID, company, int64(n))
	return b, ids
}

// purge runs a purge to its end and returns how many messages it handled.
func (d *testStore) purge(kind retention.Purge) (purged int64) {
	d.Helper()
	for {
		n, more, err := d.Purge(d.Context(), kind, life)
		if err != nil {
			d.Fatal(err)
		}
		if purged += n; !more {
			return purged
		}
	}
}

// proven checks messages against the ledger.
func (d *testStore) proven(when string, purged int64) {
	d.Helper()
	got, err := d.Audit(d.Context(), 1000*24*time.Hour)
	if want := (statistics.Audit{Purged: purged}); err != nil || got != want {
		d.Errorf("%s: %+v, %v; want %+v", when, got, err, want)
	}
}

// ids returns the ids of all messages.
func (d *testStore) ids() []int64 {
	d.Helper()
	return column[int64](d, `SELECT id FROM messages ORDER BY id`)
}

// TestPurge: old final messages are deleted with all their rows, and no others; those not final yet are deleted later.
// Deleted messages are not found, and the audit is clean before, meanwhile and afterwards.
func TestPurge(t *testing.T) {
	d := newHotStore(t)
	charged := func(m *messages.Message) int64 {
		id := d.insert(m)[0]
		d.paid(m.ULID, m.CompanyID, int64(m.Segments))
		return id
	}
	single := d.compose(segments(2))
	sent := charged(single)
	d.settle([]receipts.Segment{accepted(sent, "a", segment(1, 2)), accepted(sent, "b", segment(2, 2))},
		receipt("a", "ENROUTE"))
	d.over(sent)
	failed := charged(d.compose(func(m *messages.Message) { m.CompanyID = 2 }))
	d.finish(messages.Final{MessageID: failed, Status: sms.Failed, At: time.Now(), Reason: "UNDELIV"})
	open := charged(d.compose())
	b, whole := d.batch(1, 3)
	d.over(whole...)
	mixed, torn := d.batch(1, 3)
	d.over(torn[0], torn[2])
	queued := charged(d.compose()) // final by a receipt, and in the outbox to be sent again
	d.finish(messages.Final{MessageID: queued, Status: sms.Sent, At: time.Now()})
	own := d.pending(1, func(m *messages.Message) { m.CompanyID = 0 })
	test := d.pending(1, func(m *messages.Message) { m.Test = true })
	d.over(own[0], test[0])
	d.aged(life+time.Hour, d.ids()...)
	fresh := charged(d.compose())
	d.over(fresh)
	d.aged(life-time.Hour, fresh)
	last := d.count(`SELECT max(id) FROM messages`)
	if audit, err := d.Audit(t.Context(), 1000*24*time.Hour); err != nil || audit != (statistics.Audit{OrphanQueue: 1}) {
		t.Fatal(audit, err)
	}
	d.exec(`UPDATE outbox SET claimed_by = 7 WHERE message_id = $1`, queued)

	if n := d.purge(retention.PurgeMessages); n != 7 { // two singles, three of the batch, the gateway's own, the test
		t.Errorf("%d messages left", n)
	}
	same(t, "the rest", d.ids(), []int64{open, torn[0], torn[1], torn[2], queued, fresh})
	for query, want := range map[string]int{
		`SELECT count(*) FROM segments`: 0,
		`SELECT count(*) FROM receipts`: 0,
		`SELECT count(*) FROM batches`:  1,
		`SELECT count(*) FROM outbox`:   3,
		`SELECT count(*) FROM unpurged`: 5,
	} {
		if n := d.count(query); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
	if _, err := d.ByULID(t.Context(), 1, single.ULID); !errors.Is(err, messages.ErrNotFound) {
		t.Errorf("a message that has left: %v", err)
	}
	if _, err := d.ByID(t.Context(), 1, sent); !errors.Is(err, messages.ErrNotFound) {
		t.Errorf("a message that has left: %v", err)
	}
	if _, err := d.BatchByULID(t.Context(), 1, b.ULID); !errors.Is(err, messages.ErrNotFound) {
		t.Errorf("a batch that has left: %v", err)
	}
	if r, err := d.BatchByULID(t.Context(), 1, mixed.ULID); err != nil || r.Counts[sms.Sent] != 2 ||
		r.Counts[sms.Pending] != 1 {
		t.Errorf("a batch with a message that is not final: %+v, %v", r, err)
	}
	if s := d.settle(nil, receipt("a", "DELIVRD")); len(s.settled) != 0 || s.outcomes[0] != receipts.Unmatched {
		t.Errorf("a receipt for a message that has left: %+v", s)
	}
	if behind, err := d.PurgeBehind(t.Context(), retention.PurgeMessages, life); err != nil || behind < time.Hour ||
		behind > 2*time.Hour {
		t.Errorf("behind by %s, %v", behind, err)
	}

	if n := d.purge(retention.PurgeMessages); n != 0 {
		t.Errorf("%d messages left that are not final", n)
	}
	d.exec(`DELETE FROM outbox WHERE message_id = $1`, queued)
	d.proven("with some that wait", 5) // the gateway's own and the test were not charged
	d.over(open, torn[1])
	if n := d.purge(retention.PurgeMessages); n != 5 {
		t.Errorf("%d messages left that had waited", n)
	}
	same(t, "the rest at last", d.ids(), []int64{fresh})
	d.proven("at last", 10)
	if n := d.count(`SELECT count(*) FROM unpurged`) + d.count(`SELECT count(*) FROM batches`); n != 0 {
		t.Errorf("%d rows of deleted messages", n)
	}
	if behind, err := d.PurgeBehind(t.Context(), retention.PurgeMessages, life); err != nil || behind != 0 {
		t.Errorf("behind by %s, %v", behind, err)
	}
	d.aged(life+time.Minute, fresh)
	if n := d.purge(retention.PurgeMessages); n != 1 || len(d.ids()) != 0 {
		t.Errorf("%d, and %v is left", n, d.ids())
	}
	d.proven("with nothing left", 11)
	if next := charged(d.compose()); next <= int64(last) {
		t.Errorf("the id %d again", next)
	}
	if page, next, err := d.List(t.Context(), 1, lookup.Filter{From: time.Now().Add(-time.Hour)}, 0, 10); err != nil ||
		len(page) != 1 || next != 0 {
		t.Errorf("a list: %v, %d, %v", page, next, err)
	}
	if _, _, err := d.Purge(t.Context(), retention.PurgeMessages, life); err != nil {
		t.Error(err)
	}
}

// TestPurgedFaults: a purge hides no fault. Unpaid and twice paid messages are still found after their deletion, and so
// are later changes of the ledger.
func TestPurgedFaults(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string // statements
		want          statistics.Audit
	}{
		"nothing": {"SELECT 1", "SELECT 1", statistics.Audit{Purged: 4}},
		"not paid": {"DELETE FROM ledger WHERE amount = -3", "SELECT 1",
			statistics.Audit{Unrecorded: 1, Purged: 4}},
		"paid too little": {"UPDATE ledger SET amount = -2 WHERE amount = -3", "SELECT 1",
			statistics.Audit{Unrecorded: 1, Purged: 4}},
		"a debit for nothing": {"INSERT INTO ledger (company_id, kind, amount, balance_after, ref) VALUES (1, 'send', -1, " +
			"0, gen_random_uuid())", "SELECT 1", statistics.Audit{Unrecorded: 1, Purged: 4}},
		"two debits lost": {"SELECT 1", "DELETE FROM ledger", statistics.Audit{Unrecorded: 2, Purged: 4}},
		"another's debit": {"SELECT 1", "UPDATE ledger SET company_id = 2 WHERE amount = -1",
			statistics.Audit{Unrecorded: 2, Purged: 4}},
		"amounts exchanged": {"SELECT 1", "UPDATE ledger SET amount = -4 - amount",
			statistics.Audit{Unrecorded: 1, Purged: 4}},
		"for another request": {"SELECT 1", "UPDATE ledger SET ref = gen_random_uuid() WHERE amount = -1",
			statistics.Audit{Unrecorded: 1, Purged: 4}},
		"counts changed": {"SELECT 1", "UPDATE tallies SET segments = segments + 1 WHERE ctid = (SELECT ctid FROM " +
			"tallies WHERE company_id = 1 AND chunk = -1 LIMIT 1)", statistics.Audit{Reports: 1, Purged: 4}},
		"counts lost":           {"SELECT 1", "DELETE FROM tallies", statistics.Audit{Reports: 1, Purged: 4}},
		"messages without sums": {"SELECT 1", "DELETE FROM purged", statistics.Audit{Unrecorded: 2, Reports: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newHotStore(t)
			change := func(statement string) { // also in the ledger, which is insert only
				d.tx(func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, `SET LOCAL session_replication_role = replica; `+statement)
					return err
				})
			}
			m := d.compose()
			id := d.insert(m)[0]
			d.paid(m.ULID, 1, 1)
			_, ids := d.batch(1, 3)
			d.over(append(ids, id)...)
			d.aged(life+time.Hour, d.ids()...)
			change(c.before)
			if n := d.purge(retention.PurgeMessages); n != 4 {
				t.Fatal(n)
			}
			change(c.after)
			if got, err := d.Audit(t.Context(), time.Hour); err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// TestPurgeBodies: texts are removed, the rest of the rows stays; messages that are not final keep theirs.
func TestPurgeBodies(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(4)
	_, batch := d.batch(1, 2)
	d.over(ids[0], ids[1], ids[3], batch[0])
	d.aged(life+time.Hour, ids[0], ids[1], ids[2], batch[0], batch[1])
	d.aged(life+time.Hour, ids[3])
	fresh := d.pending(1)
	d.over(fresh...)
	if n := d.purge(retention.PurgeBodies); n != 4 {
		t.Errorf("%d bodies left", n)
	}
	same(t, "with a text", d.texts(), []int64{ids[2], batch[1], fresh[0]})
	if n := d.purge(retention.PurgeBodies); n != 0 {
		t.Errorf("%d bodies left again", n)
	}
	if r, err := d.ByID(t.Context(), 1, ids[0]); err != nil || r.Body != "" || r.Number == "" || r.Status != sms.Sent {
		t.Errorf("%+v, %v", r, err)
	}
	if claimed := d.claim(1, ids[2]); len(claimed) != 1 || claimed[0].Body != "Hello" {
		t.Errorf("those not final: %+v", claimed)
	}
	d.exec(`UPDATE outbox SET claimed_by = NULL`)
	d.over(ids[2])
	if n := d.purge(retention.PurgeBodies); n != 1 {
		t.Errorf("%d bodies left that had waited", n)
	}
	d.over(batch[1])
	// as if another process had skipped it just before
	d.exec(`INSERT INTO unpurged (kind, message_id) VALUES ('bodies', $1)`, ids[0]-1)
	d.purge(retention.PurgeMessages) // before the next purge of bodies
	if n := d.count(`SELECT count(*) FROM unpurged`); n != 0 || len(d.ids()) != 1 {
		t.Errorf("%d wait, %v are there", n, d.ids())
	}
	if n := d.purge(retention.PurgeBodies); n != 0 {
		t.Error(n)
	}
}

// TestPurgeInSteps: many messages are deleted in steps, each a transaction, by concurrent purges of messages and
// bodies; each once.
func TestPurgeInSteps(t *testing.T) {
	d := newHotStore(t)
	for range 3 {
		_, ids := d.batch(1, 1500)
		d.over(ids...)
		d.over(d.pending(200, func(m *messages.Message) { m.CompanyID = 0 })...)
	}
	_, stuck := d.batch(1, 10)
	d.over(stuck[1:]...)
	_, ids := d.batch(2, 700)
	d.over(ids...)
	d.aged(life+time.Hour, d.ids()...)
	young := d.pending(1, func(m *messages.Message) { m.CompanyID = 0 })

	var mu sync.Mutex
	var wait sync.WaitGroup
	purged, steps, start := map[retention.Purge]int64{}, 0, time.Now()
	for _, kind := range []retention.Purge{retention.PurgeMessages, retention.PurgeMessages, retention.PurgeBodies} {
		wait.Go(func() {
			for done := false; !done; {
				if time.Since(start) > time.Minute {
					t.Error("it does not come to an end")
					return
				}
				n, _, err := d.Purge(t.Context(), kind, life)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				purged[kind] += n
				steps++
				done = purged[retention.PurgeMessages] == 5800
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if steps < 4 {
		t.Errorf("all in %d steps", steps)
	}
	same(t, "the rest", d.ids(), append(slices.Clone(stuck), young...))
	d.proven("with a batch that waits", 5200)
	d.over(stuck[0])
	if n := d.purge(retention.PurgeMessages); n != 10 {
		t.Errorf("%d left", n)
	}
	d.proven("at last", 5210)
}

// TestPurgedIsNotRead: queries for the oldest messages do not read deleted rows that cannot be vacuumed yet.
func TestPurgedIsNotRead(t *testing.T) {
	d := newHotStore(t)
	d.exec(`INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier,
		status, created_at)
		SELECT gen_random_uuid(), 1, 1, '+25761000000', 'D', repeat('x', 100), 0, 1, true, 'leo', 1, now() - CASE
			WHEN i <= 20000 THEN interval '200 days' ELSE interval '2 days' END
		FROM generate_series(1, 20100) i`)
	d.exec(`ANALYZE messages`)
	backup, err := d.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backup.Rollback(context.Background()) }()
	if _, err := backup.Exec(t.Context(), `SELECT FROM messages LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	if n := d.purge(retention.PurgeMessages); n != 20_000 {
		t.Fatal(n)
	}
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := d.pool.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+messages.IDAt,
		time.Now().Add(-100*24*time.Hour)).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if pages := plan[0].Plan.Hit + plan[0].Plan.Read; pages > 150 {
		t.Errorf("%d pages", pages)
	}
}

// TestPurgedReferences: a sender's last reference to a number is deleted with its message, unless a later message has
// one.
func TestPurgedReferences(t *testing.T) {
	d := newHotStore(t)
	gone, later := sms.Number("+25761000001"), sms.Number("+25761000002")
	old := append(d.insert(d.compose(segments(2), to(gone)), d.compose(segments(2), to(gone))),
		d.insert(d.compose(segments(3), to(later)))...)
	d.over(old...)
	d.aged(life+time.Hour, old...)
	d.insert(d.compose(segments(2), to(later)))
	// 256 messages later the number equals the old one's.
	d.exec(`UPDATE concat_refs SET last = (SELECT concat_ref FROM messages WHERE id = $1) WHERE phone_number = $2`, old[2],
		string(later))
	want := d.count(`SELECT last FROM concat_refs WHERE phone_number = $1`, string(later))
	if n := d.purge(retention.PurgeMessages); n != 3 {
		t.Fatal(n)
	}
	if n := d.count(`SELECT count(*) FROM concat_refs WHERE phone_number = $1`, string(gone)); n != 0 {
		t.Error("the number is still there")
	}
	if n := d.count(`SELECT last FROM concat_refs WHERE phone_number = $1`, string(later)); n != want {
		t.Errorf("the last reference is %d, was %d", n, want)
	}
}

// TestPurgeOfEverything: without any message the daily counts continue.
func TestPurgeOfEverything(t *testing.T) {
	d := newHotStore(t)
	old := d.pending(3)
	d.over(old...)
	d.aged(life+time.Hour, old...)
	d.tallied(true)
	if n := d.purge(retention.PurgeMessages); n != 3 || d.count(`SELECT count(*) FROM messages`) != 0 {
		t.Fatalf("%d left", n)
	}
	for range 3 {
		d.exec(`UPDATE tally_chunks SET counted_at = counted_at - interval '1 hour',
			changed_at = changed_at - interval '1 hour'`)
		if _, err := d.Tally(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPurgeTallies: daily counts stay as they were, of closed and of open chunks.
func TestPurgeTallies(t *testing.T) {
	d := newHotStore(t)
	insert := func(first, last int) {
		t.Helper()
		d.exec(`INSERT INTO messages (id, ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
			carrier, status, created_at)
			OVERRIDING SYSTEM VALUE
			SELECT i, gen_random_uuid(), 1 + i % 2, 1, '+25761' || lpad((i % 100000)::text, 6, '0'), 'D', 'x', 0, 1, true, 'leo',
				1 + i % 3 / 2,
				CASE WHEN i <= $3 THEN now() - interval '200 days' + make_interval(hours => i % 60) ELSE now() END
			FROM generate_series($1::int, $2) i`, first, last, 250_400)
	}
	insert(99_901, 100_100)  // the end of one chunk, the beginning of the next
	insert(199_801, 200_100) // and again
	insert(250_001, 250_500) // the last of these are young
	tally := func() {
		t.Helper()
		for counted := true; counted; {
			var err error
			if counted, err = d.Tally(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	days := func() string {
		t.Helper()
		var all string
		for company := sms.CompanyID(1); company <= 2; company++ {
			days, err := d.Daily(t.Context(), company, time.Unix(0, 0), time.Now().AddDate(0, 0, 2))
			if err != nil {
				t.Fatal(err)
			}
			all += fmt.Sprintln(days)
		}
		return all
	}
	if err := d.TallyNow(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	d.filter()
	want := days()
	d.exec(`UPDATE tally_chunks SET counted_at = counted_at - interval '1 hour',
		changed_at = changed_at - interval '1 hour' WHERE chunk <= 9`)
	tally()
	if n := d.count(`SELECT count(*) FROM tally_chunks WHERE closed`); n != 10 { // 0 to 9
		t.Errorf("%d chunks are closed", n)
	}
	if n := d.purge(retention.PurgeMessages); n != 900 {
		t.Errorf("%d left", n)
	}
	if got := days(); got != want {
		t.Errorf("after the purge:\n%swant\n%s", got, want)
	}
	for range 3 {
		d.exec(`UPDATE tally_chunks SET counted_at = counted_at - interval '1 hour',
			changed_at = changed_at - interval '1 hour'`)
		tally()
	}
	if got := days(); got != want {
		t.Errorf("counted again:\n%swant\n%s", got, want)
	}
	if n := d.count(`SELECT count(*) FROM tally_chunks WHERE NOT closed`); n != 1 { // it can still grow
		t.Errorf("%d chunks are open", n)
	}

	// Filters are deleted with their messages, and searches end there.
	if n := d.count(`SELECT count(*) FROM number_filters`); n != 1 { // the last, by which the next one knows its place
		t.Errorf("%d filters are left", n)
	}
	d.filter()
	if ids, _ := d.find(1, "+25761050100"); len(ids) != 0 {
		t.Errorf("to a number of messages that have left: %v", ids)
	}
	if ids, _ := d.find(1, "+25761050450"); len(ids) != 1 {
		t.Errorf("to a number: %v", ids)
	}
	if page, _, next, err := d.OperatorsByNumber(t.Context(), "+25761050100", 0, 10); err != nil || len(page) != 0 ||
		next != 0 {
		t.Errorf("to a number of messages that have left: %v, %d, %v", page, next, err)
	}
	if page, next, err := d.List(t.Context(), 1, lookup.Filter{From: time.Now().Add(-300 * 24 * time.Hour)}, 0,
		500); err != nil || len(page) != 50 || next != 0 {
		t.Errorf("a list has %d, %d, %v", len(page), next, err)
	}
	if c, err := d.Count(t.Context(), 1, time.Now().Add(-300*24*time.Hour)); err != nil || c.Sent+c.Failed != 50 {
		t.Errorf("%+v, %v", c, err)
	}
}

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

	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/retention"
	"intumwa/sms"
)

// numbers returns the recipients of messages.
func (d *testStore) numbers(ids ...int64) []string {
	d.Helper()
	return column[string](d, `SELECT phone_number FROM messages WHERE id = ANY($1) ORDER BY id`, ids)
}

// TestPurgeNumbers: old final messages lose their number and other rows that name it; a search by the number finds only
// the others.
func TestPurgeNumbers(t *testing.T) {
	d := newHotStore(t)
	const ann, ben = sms.Number("+25779123412"), sms.Number("+25761000034")
	d.exec(`SELECT setval('messages_id_seq', 20000)`) // in its own chunk
	long := d.pending(1, to(ann), segments(2))
	ids := slices.Concat(long, d.pending(1, to(ann)), d.pending(1, to(ben)), d.pending(1, to(ann)))
	d.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, handset, state, error, message_id, outcome)
		VALUES ('lumitel', 'lumitel-1', 'k', 'k', '25779123412', 79123412, 'ENROUTE', '', $1, 'intermediate')`, ids[0])
	d.exec(`INSERT INTO segments (message_id, segment, total, handset, carrier, link, key, submitted_at)
		VALUES ($1, 1, 2, 79123412, 'lumitel', 'lumitel-1', 'k', now())`, ids[0])
	d.over(ids[0], ids[2], ids[3])
	d.aged(life+time.Hour, ids[0], ids[1])
	d.exec(`INSERT INTO messages (id, ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
		carrier)
		OVERRIDING SYSTEM VALUE VALUES (40000, gen_random_uuid(), 1, 1, '+25761999999', 'DEMO', 'x', 0, 1, false, 'lumitel')`)
	d.exec(`UPDATE messages SET created_at = now() - interval '1 hour' WHERE created_at > now() - interval '1 hour'`)
	if n := d.filter(); n != 2 {
		t.Fatalf("%d filters", n)
	}
	found := func(what string, number sms.Number, want ...int64) {
		t.Helper()
		got, _ := d.find(1, string(number))
		same(t, what, got, want)
		page, _, _, err := d.OperatorsByNumber(t.Context(), number, 0, 10)
		if err != nil || len(page) != len(want) {
			t.Errorf("%s: for operators %v, %v", what, page, err)
		}
	}
	found("before", ann, ids[3], ids[1], ids[0])
	if n := d.purge(retention.PurgeNumbers); n != 1 {
		t.Errorf("%d numbers left", n)
	}
	if got, want := d.numbers(ids...), []string{"+2577XXXXX12", string(ann), string(ben), string(ann)}; !slices.Equal(
		got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
	found("after", ann, ids[3], ids[1])
	found("another's", ben, ids[2])
	if n := d.count(`SELECT count(*) FROM receipts WHERE number <> '' OR handset IS NOT NULL`) +
		d.count(`SELECT count(*) FROM segments WHERE handset IS NOT NULL`) +
		d.count(`SELECT count(*) FROM concat_refs`); n != 0 {
		t.Errorf("%d rows name the number", n)
	}
	if r, err := d.ByID(t.Context(), 1, ids[0]); err != nil || r.Body != "Hello" || !r.Number.IsObscured() ||
		r.Status != sms.Sent {
		t.Errorf("%+v, %v", r, err)
	}
	if claimed := d.claim(1, ids[1]); len(claimed) != 1 || claimed[0].Number != ann {
		t.Errorf("those not final: %+v", claimed)
	}
	d.exec(`UPDATE outbox SET claimed_by = NULL`)
	d.over(ids[1])
	if n := d.purge(retention.PurgeNumbers); n != 1 {
		t.Errorf("%d left that had waited", n)
	}
	d.aged(life+time.Hour, ids[2], ids[3])
	if n := d.purge(retention.PurgeNumbers); n != 2 {
		t.Errorf("%d left at last", n)
	}
	found("at last", ann)
	if n := d.count(`SELECT count(*) FROM number_filters WHERE chunk = 2 AND bits <> ''`); n != 0 {
		t.Error("a filter still has obscured numbers")
	}
	if n := d.purge(retention.PurgeNumbers); n != 0 {
		t.Error(n)
	}
	d.purge(retention.PurgeMessages)
	if n := d.count(`SELECT count(*) FROM unpurged`); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// TestErase: all final messages to a number lose text and number, of all companies; others stay, and those that the
// caller needs. It can be repeated.
func TestErase(t *testing.T) {
	d := newHotStore(t)
	const ann = sms.Number("+25779123412")
	ids := slices.Concat(d.pending(2, to(ann), func(m *messages.Message) { m.Reference = "order 17" }),
		d.pending(2, to(ann), func(m *messages.Message) { m.CompanyID = 2 }), d.pending(1))
	d.over(ids[0], ids[1], ids[2], ids[4])
	claimed := d.claim(1, ids[3])
	erase := func(needed ...int64) (done retention.Erased) {
		t.Helper()
		done, err := d.Erase(t.Context(), ann, ids, func(_ pgx.Tx, final []retention.Ref) ([]int64, error) {
			for _, m := range final {
				if of2 := m.ID == ids[2] || m.ID == ids[3]; of2 != (m.CompanyID == 2) {
					t.Errorf("%+v", m)
				}
			}
			return needed, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := erase(ids[1]); done.Messages != 2 || done.Pending != 3 { // one of the three is to another number
		t.Errorf("%+v", done)
	}
	if got, want := d.numbers(ids[:4]...), []string{"+2577XXXXX12", string(ann), "+2577XXXXX12",
		string(ann)}; !slices.Equal(got, want) {
		t.Errorf("numbers %v, want %v", got, want)
	}
	same(t, "with a text", d.texts(), []int64{ids[1], ids[3], ids[4]})
	named := func() int { return d.count(`SELECT count(*) FROM messages WHERE client_reference = 'order 17'`) }
	if n := named(); n != 1 {
		t.Errorf("%d messages have the customer's reference", n)
	}
	if done := erase(); done.Messages != 1 || named() != 0 {
		t.Errorf("again: %+v, %d have the customer's reference", done, named())
	}
	// A message that a dispatcher had in flight is delivered and settled.
	delivered := receipt("c1", "DELIVRD")
	delivered.Number = ann.Digits()
	s := d.settle([]receipts.Segment{accepted(ids[3], "c1", func(p *receipts.Segment) { p.Number = ann })}, delivered)
	if len(claimed) != 1 || claimed[0].Body == "" || len(s.settled) != 1 {
		t.Errorf("%+v, %+v", claimed, s)
	}
	d.over(ids[3])
	d.exec(`DELETE FROM outbox`)
	if done := erase(); done.Messages != 1 {
		t.Errorf("once it is final: %+v", done)
	}
	if failed := errors.New("not now"); true {
		if _, err := d.Erase(t.Context(), ann, ids, func(pgx.Tx, []retention.Ref) ([]int64, error) {
			return nil, failed
		}); !errors.Is(err, failed) {
			t.Errorf("%v", err)
		}
	}
	if done, err := d.Erase(t.Context(), ann, nil, nil); err != nil || done != (retention.Erased{}) {
		t.Errorf("nothing: %+v, %v", done, err)
	}
}

// TestEraseWhileSettlingAndPurging: erasing, settling and purging the same messages at once ends without a deadlock;
// final messages are erased, and each is settled once with its number.
func TestEraseWhileSettlingAndPurging(t *testing.T) {
	d := newHotStore(t)
	const ann = sms.Number("+25779123412")
	d.rule(1, keep(retention.BodiesUntilFinal))
	ids := d.pending(300, to(ann))
	d.exec(`UPDATE messages SET created_at = now() - $1::interval`, life+time.Hour)
	erase := func() {
		if _, err := d.Erase(t.Context(), ann, ids, func(pgx.Tx, []retention.Ref) ([]int64, error) {
			return nil, nil
		}); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[int64]bool{}
	for i := range 30 {
		wg.Go(func() {
			some := ids[i*10 : i*10+10]
			finals := make([]messages.Final, len(some))
			for n, id := range some {
				finals[n] = messages.Final{MessageID: id, Status: sms.Sent, At: time.Now()}
			}
			err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
				settled, err := d.Finish(context.Background(), tx, finals, messages.Rows{Leave: leaving(some)})
				mu.Lock()
				defer mu.Unlock()
				for _, m := range settled {
					if seen[m.ID] || m.Number != ann {
						t.Errorf("settled %+v", m)
					}
					seen[m.ID] = true
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		switch i % 5 {
		case 0:
			wg.Go(func() { erase() })
		case 1:
			wg.Go(func() {
				if _, _, err := d.Purge(t.Context(), retention.PurgeNumbers, life); err != nil {
					t.Error(err)
				}
			})
		case 2:
			wg.Go(func() {
				if _, _, err := d.PurgeRuled(t.Context(), 0); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	erase()
	if n := d.count(
		`SELECT count(*) FROM messages WHERE body <> '' OR phone_number NOT LIKE '%X%' OR status <> 1`); n != 0 ||
		len(seen) != len(ids) {
		t.Errorf("%d messages are not erased, %d were settled", n, len(seen))
	}
}

// TestKeptOfANumber: receipts without a message are found and deleted in every form of the number.
func TestKeptOfANumber(t *testing.T) {
	d := newTestStore(t)
	const ann = sms.Number("+25779123412")
	for i, number := range []string{"+25779123412", "25779123412", "79123412", "25779123413", "123412"} {
		d.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, handset, state, error, outcome)
			VALUES ('lumitel', 'l', $1, $1, $2, CASE WHEN length($2) >= 8 THEN right($2, 8)::int END, 'DELIVRD', '',
			'unmatched')`, fmt.Sprint(i), number)
	}
	unmatched, err := receipts.Naming(t.Context(), d.pool, ann)
	if err != nil || len(unmatched) != 3 {
		t.Errorf("%v, %v", unmatched, err)
	}
	n, err := receipts.Erase(t.Context(), d.pool, ann)
	if err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	if n := d.count(`SELECT count(*) FROM receipts`); n != 2 {
		t.Errorf("%d are left", n)
	}
}

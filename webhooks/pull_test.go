package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// pull returns the webhook-ids of a page, and the place after it.
func pull(t testing.TB, w *Webhooks, company sms.CompanyID, after Place, limit int) (ids []string, next Place) {
	t.Helper()
	page, next, err := w.Pull(context.Background(), company, after, limit)
	for range 3 { // it has a few seconds
		if !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		page, next, err = w.Pull(context.Background(), company, after, limit)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page {
		ids = append(ids, e.WebhookID)
	}
	return ids, next
}

// commitLater enqueues in a transaction that commits when the returned function is called.
func commitLater(t testing.TB, w *Webhooks, events ...Event) (commit func()) {
	t.Helper()
	tx, err := postgres.Begin(t.Context(), w.pool.(*pgxpool.Pool))
	if err == nil {
		_, err = tx.Exec(t.Context(), `UPDATE messages SET status = 1 WHERE id = 0`)
	}
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT pg_current_xact_id()`) // as the caller's writes
	}
	if err == nil {
		err = w.Enqueue(t.Context(), tx, events)
	}
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT`) // the statements left for later run
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func sentEvent(company, message int64) Event {
	return Event{CompanyID: company, MessageID: message, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()}
}

// TestPull: a company's events can be fetched from its first request on, by any number of consumers, with an endpoint
// or without, with the bodies and ids of the webhooks; also those that no endpoint asked for.
func TestPull(t *testing.T) {
	w := New(batchPool(t), quickly())
	s := newSink(t, nil)
	setEndpoint(t, w, 2, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 1) // nobody fetches yet, and Options.History has nothing
	for _, company := range []sms.CompanyID{1, 2} {
		if ids, _ := pull(t, w, company, Place{}, 10); ids != nil {
			t.Errorf("events of company %d: %v", company, ids)
		}
	}
	text := "STOP"
	for company := int64(1); company <= 3; company++ {
		at := time.Date(2026, 3, 1, 8, 0, 2, 0, time.UTC)
		enqueueAll(t, w, []Event{
			{CompanyID: company, MessageID: company*10 + 1, Name: Sent, PhoneNumber: "+25761234567", At: at, Reference: `"é"`},
			{CompanyID: company, MessageID: company*10 + 2, Name: Failed, PhoneNumber: "+25761234568", At: at},
			{CompanyID: company, MessageID: company*10 + 3, Name: Received, PhoneNumber: "+25761234569", At: at,
				Data: ReceivedData{InboundID: 3, From: "+25761234569", To: "8080", Message: &text, ReceivedAt: Time{at}}},
			{CompanyID: company, MessageID: company*10 + 4, Name: BatchFinished, At: at,
				Data: BatchFinishedData{BatchID: "01JNA2M7Q8R9S0T1V2W3X4Y5Z6", RecipientsCount: 2, Sent: 2}},
		})
	}
	eventually(t, "two calls", func() bool { return s.count() == 2 })
	bodies := map[string]string{}
	for _, r := range s.requests() {
		bodies[r.header.Get("webhook-id")] = r.body
	}
	for _, company := range []int64{1, 2, 3} {
		want := []string{webhookID((company*10 + 1) * 8), webhookID((company*10+2)*8 + 1), webhookID((company*10+3)*8 + 2)}
		if company == 3 {
			want = nil // it has not asked
		}
		for consumer := range 2 {
			ids, after := pull(t, w, sms.CompanyID(company), Place{}, 2)
			more, last := pull(t, w, sms.CompanyID(company), after, 2)
			if all := append(ids, more...); len(ids) != min(2, len(want)) || !slices.Equal(all, want) {
				t.Errorf("company %d, consumer %d: %v, want %v", company, consumer, all, want)
			}
			if again, place := pull(t, w, sms.CompanyID(company), last, 2); again != nil || place != last {
				t.Errorf("company %d, at the end: %v, %v", company, again, place)
			}
		}
	}
	page, _, err := w.Pull(t.Context(), 2, Place{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page[:2] {
		if got := string(e.Body); got != bodies[e.WebhookID] || got == "" {
			t.Errorf("%s\nwas posted as\n%s", got, bodies[e.WebhookID])
		}
	}
	// A batch's end is for those who ask for it, and a re-send is no new event.
	_, after := pull(t, w, 2, Place{}, 10)
	if err := w.SetPulled(t.Context(), 2, []string{BatchFinished}); err != nil {
		t.Fatal(err)
	}
	enqueueAll(t, w, []Event{{CompanyID: 2, MessageID: 30, Name: BatchFinished, At: time.Now(),
		Data: BatchFinishedData{}}})
	if _, err := w.Resend(t.Context(), 2, 21*idSpan); err != nil {
		t.Fatal(err)
	}
	if ids, _ := pull(t, w, 2, after, 10); !slices.Equal(ids, []string{webhookID(30*idSpan + 6)}) {
		t.Errorf("after asking: %v", ids)
	}
	if err := w.SetPulled(t.Context(), 2, []string{Received}); !errors.As(err, new(sms.Refusal)) {
		t.Errorf("an event that everybody gets: %v", err)
	}
}

// TestPullLateCommits: an event whose transaction commits after later ones is never skipped, whatever instance of the
// gateway records or returns it; also if the transaction began before the company's first request.
func TestPullLateCommits(t *testing.T) {
	pool := batchPool(t)
	a, b := New(pool, quickly()), New(pool, quickly())
	for _, w := range []*Webhooks{a, b} {
		w.waiters.through[1] = time.Now().Add(-time.Hour)
	}
	before := commitLater(t, a, sentEvent(1, 1))
	if ids, next := pull(t, b, 1, Place{}, 10); ids != nil || next != (Place{}) {
		t.Fatalf("while a transaction runs that began earlier: %v, %v", ids, next)
	}
	enqueue(t, b, 1, 2, 1)
	if ids, next := pull(t, a, 1, Place{}, 10); ids != nil || next != (Place{}) {
		t.Fatalf("while a transaction runs that began earlier: %v, %v", ids, next)
	}
	// Its event is not recorded: it comes from the messages.
	history := func(_ context.Context, _, after, upTo int64, _ time.Time, _ int) (events []Event, last int64, err error) {
		if after == 0 {
			events = []Event{sentEvent(1, 1), sentEvent(1, 2)} // 2 is recorded already
		}
		return events, max(upTo, 2), nil
	}
	a.opts.History, b.opts.History = history, history
	before()
	all, after := pull(t, a, 1, Place{}, 10)
	more, after := pull(t, b, 1, after, 10)
	if all = append(all, more...); !slices.Equal(all, []string{webhookID(8), webhookID(16)}) {
		t.Fatalf("from the beginning: %v", all)
	}

	late := commitLater(t, a, sentEvent(1, 3), sentEvent(1, 4))
	enqueue(t, b, 1, 5, 1)
	ids, after := pull(t, a, 1, after, 10)
	if !slices.Equal(ids, []string{webhookID(40)}) {
		t.Fatalf("before the late commit: %v", ids)
	}
	restarted := after // a consumer that stored this place, and is off for a day
	late()
	for n := range 2 {
		if ids, _ := pull(t, []*Webhooks{a, b}[n], 1, restarted, 10); !slices.Equal(
			ids, []string{webhookID(24), webhookID(32)}) {
			t.Errorf("start %d of the consumer: %v", n, ids)
		}
	}
	// A commit so late that most looks do not reach back to it.
	perform(t, a, `UPDATE events SET position = position + 3600000000 WHERE position < 0`)
	very := commitLater(t, a, sentEvent(1, 6))
	_, after = pull(t, b, 1, restarted, 10)
	very()
	perform(t, a, `UPDATE events SET position = position + 3600000000 WHERE position < 0`)
	b.waiters.looked(1, 0)
	if ids, _ := pull(t, b, 1, after, 10); ids != nil {
		t.Errorf("a look at the latest events read older ones: %v", ids)
	}
	b.waiters.through[1] = time.Now().Add(-lookThroughEvery)
	if ids, _ := pull(t, b, 1, after, 10); !slices.Equal(ids, []string{webhookID(48)}) {
		t.Errorf("after the next look through all: %v", ids)
	}
}

// TestPullWhileSettling: two instances record 10,000 events in concurrent transactions of various lengths. Consumers
// that restart from places in the middle get each event, in one order, and none twice after a place.
func TestPullWhileSettling(t *testing.T) {
	const events, batch, recorders = 10_000, 20, 4
	pool := batchPool(t)
	instances := []*Webhooks{New(pool, quickly()), New(pool, quickly())}
	pull(t, instances[0], 1, Place{}, 1)
	var recording sync.WaitGroup
	for recorder := range recorders {
		recording.Go(func() {
			for from := 1 + recorder*batch; from <= events; from += recorders * batch {
				list := make([]Event, batch)
				for i := range list {
					list[i] = sentEvent(1, int64(from+i))
				}
				if err := postgres.InTx(context.Background(), pool, func(tx pgx.Tx) error {
					if err := instances[recorder%2].Enqueue(context.Background(), tx, list); err != nil {
						return err
					}
					_, err := tx.Exec(context.Background(), fmt.Sprintf(`SELECT pg_sleep(%f)`, float64(from*7919%11)/1000))
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	orders := make([][]string, 3)
	var consuming sync.WaitGroup
	for consumer := range orders {
		consuming.Go(func() {
			seen, place := []string{}, Place{}
			for deadline := time.Now().Add(patience); len(seen) < events; {
				if time.Now().After(deadline) {
					t.Errorf("consumer %d has %d events", consumer, len(seen))
					return
				}
				page, next, err := instances[len(seen)%2].Pull(context.Background(), 1, place, 97+consumer)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range page {
					seen = append(seen, e.WebhookID)
				}
				place = next
			}
			orders[consumer] = seen
		})
	}
	recording.Wait()
	consuming.Wait()
	for n, order := range orders {
		if !slices.Equal(order, orders[0]) {
			t.Errorf("consumer %d has another order", n)
		}
	}
	if slices.Sort(orders[0]); len(slices.Compact(orders[0])) != events {
		t.Error("an event came twice")
	}
}

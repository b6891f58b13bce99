package webhooks

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/sms"
)

func perform(t testing.TB, w *Webhooks, statement string, args ...any) {
	t.Helper()
	if _, err := w.pool.Exec(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func errOf[T any](_ T, err error) error { return err }

// giveUp records given-up deliveries of messages [from, from+n).
func giveUp(t testing.TB, w *Webhooks, company, from int64, n int) {
	t.Helper()
	enqueue(t, w, company, from, n)
	perform(t, w, `UPDATE webhook_undelivered SET due = 'infinity', tries = 6, given_up_at = now() WHERE id >= $1
		AND id < $2`, from*idSpan, (from+int64(n))*idSpan)
}

// TestRecovery: deliveries given up since a time are sent again, one after another. Other
// companies' deliveries, older ones and pending ones are not.
func TestRecovery(t *testing.T) {
	w := New(batchPool(t), quickly())
	s := newSink(t, nil)
	setEndpoint(t, w, 1, s.URL)
	setEndpoint(t, w, 2, s.URL)
	giveUp(t, w, 1, 1, 10)
	perform(t, w, `UPDATE webhook_deliveries SET at = now() - interval '2 hours'`)
	giveUp(t, w, 1, 1000, 1200)
	giveUp(t, w, 2, 5000, 10)
	since := time.Now().Add(-time.Hour)
	for company, want := range map[sms.CompanyID]int64{0: 0, -1: 0, 3: 0, 1: 1200} {
		if n, err := w.Recover(t.Context(), company, since); err != nil || n != want {
			t.Errorf("company %d: %d, %v; want %d", company, n, err, want)
		}
	}
	if n, err := w.Recover(t.Context(), 1, since); err != nil || n != 0 {
		t.Errorf("again: %d, %v", n, err)
	}
	var spread time.Duration
	if err := w.pool.QueryRow(
		t.Context(), `SELECT max(due) - min(due) FROM webhook_undelivered WHERE due < 'infinity'`).Scan(
		&spread); err != nil || spread < 1199*recoverPace {
		t.Errorf("all are due within %s, %v", spread, err)
	}
	run(t, w)
	eventually(t, "all delivered", func() bool { return countState(t, w, delivered) == 1200 })
	for company := range sms.CompanyID(2) {
		if left, _, err := w.Deliveries(t.Context(), 1+company, Filter{State: StateFailed}, 0, 2000); err != nil ||
			len(left) != 10 {
			t.Errorf("company %d has %d left, %v", 1+company, len(left), err)
		}
	}
}

func errOf2[A, B any](_ A, _ B, err error) error { return err }

// TestFailing: a failing endpoint is recorded, its owner is notified once when it fails for
// good, and a success ends it.
func TestFailing(t *testing.T) {
	pool := batchPool(t)
	w := New(pool, quickly())
	var broken atomic.Bool
	broken.Store(true)
	s := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	setEndpoint(t, w, 1, s.URL)
	setEndpoint(t, w, 2, newSink(t, nil).URL)
	run(t, w)
	enqueue(t, w, 1, 1, 2)
	enqueue(t, w, 2, 100, 2)
	inState(t, w, 1, StateFailed)
	inState(t, w, 100, StateDelivered)
	eventually(t, "an endpoint that fails for good", func() bool { return givenUp(t, w) })
	told := func() (n int) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			found, err := TakeFailing(t.Context(), tx, 10)
			if n = len(found); n == 1 && (found[0].CompanyID != 1 || found[0].Since.IsZero()) {
				t.Errorf("%+v", found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if first, second := told(), told(); first != 1 || second != 0 {
		t.Errorf("told %d and %d times", first, second)
	}
	broken.Store(false)
	enqueue(t, w, 1, 10, 1)
	inState(t, w, 10, StateDelivered)
	eventually(t, "the end of its failing", func() bool {
		e, err := w.EndpointOf(t.Context(), 1)
		return err == nil && e.FailingSince == nil
	})
	broken.Store(true)
	enqueue(t, w, 1, 20, 1)
	inState(t, w, 20, StateFailed)
	eventually(t, "failing again", func() bool { return givenUp(t, w) })
	if n := told(); n != 0 {
		t.Error("its owner is told again on the same day")
	}
	perform(t, w, `UPDATE webhook_endpoints SET told_at = told_at - interval '25 hours'`)
	if n := told(); n != 1 {
		t.Error("its owner is not told on the next day")
	}
}

// givenUp reports whether company 1's endpoint is recorded as failing for good.
func givenUp(t testing.TB, w *Webhooks) (is bool) {
	t.Helper()
	if err := w.pool.QueryRow(context.Background(), `SELECT given_up_at IS NOT NULL FROM webhook_endpoints
		WHERE company_id = 1`).Scan(&is); err != nil {
		t.Fatal(err)
	}
	return is
}

// TestHealthIsOfTheAddressThatWasCalled: a late result of the old address does not count against
// the new one. The last result of a batch counts.
func TestHealthIsOfTheAddressThatWasCalled(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true})
	d := newDeliverer(t.Context(), w.core)
	d.workers[1] = newWorker(1)
	setEndpoint(t, w, 1, "http://127.0.0.1:1/new")
	note := func(url string, states ...deliveryState) (failing bool) {
		t.Helper()
		var batch []outcome
		for _, s := range states {
			batch = append(batch, outcome{job: job{storedEvent: storedEvent{company: 1, id: 8},
				target: &target{stored: storedEndpoint{url: url}}}, state: s, attempt: Attempt{Result: result2xx}})
		}
		if err := d.noteHealth(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		e, err := w.EndpointOf(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return e.FailingSince != nil
	}
	if note("http://127.0.0.1:1/old", exhausted) || givenUp(t, w) {
		t.Error("the new address failed")
	}
	if !note("http://127.0.0.1:1/new", delivered, exhausted) || !givenUp(t, w) {
		t.Error("it does not fail")
	}
	d.aim(d.workers[1], storedEndpoint{}) // as read by a claim before the failure
	if note("http://127.0.0.1:1/new", delivered) {
		t.Error("it fails after a success that follows a late claim")
	}
	if note("http://127.0.0.1:1/new", exhausted, delivered) || givenUp(t, w) {
		t.Error("it fails after a success")
	}
	if !note("http://127.0.0.1:1/new", exhausted, delivered, pending) || givenUp(t, w) {
		t.Error("a delivery was given up before the last success")
	}
}

// TestAttemptsAreBounded: repeated re-sends keep only the latest attempts.
func TestAttemptsAreBounded(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	giveUp(t, w, 1, 1, 1)
	perform(t, w, `UPDATE webhook_deliveries SET attempts = (SELECT json_agg(json_build_object('at', now(), 'ms', n,
		'status', 500, 'result', '5xx'))
		FROM generate_series(1, 100) n)`)
	d, err := w.Resend(t.Context(), 1, idSpan)
	if err != nil || len(d.Attempts) != 60 || d.Attempts[0].DurationMS != 41 || d.Attempts[59].DurationMS != 100 {
		t.Errorf("%d attempts, %v", len(d.Attempts), err)
	}
}

// TestNobodysAndEverybodys: no company id gives access to another company's data.
func TestNobodysAndEverybodys(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	giveUp(t, w, 1, 1, 3)
	for _, company := range []sms.CompanyID{0, -1, 2} {
		if page, _, err := w.Deliveries(t.Context(), company, Filter{}, 0, 10); err != nil || len(page) != 0 {
			t.Errorf("company %d sees %d, %v", company, len(page), err)
		}
		if page, _, err := w.Deliveries(t.Context(), company, Filter{MessageID: 1}, 0, 10); err != nil || len(page) != 0 {
			t.Errorf("company %d sees %d, %v", company, len(page), err)
		}
		if err := errOf(w.Delivery(t.Context(), company, idSpan)); !errors.Is(err, ErrNotFound) {
			t.Errorf("company %d: %v", company, err)
		}
		if err := errOf(w.Resend(t.Context(), company, idSpan)); !errors.Is(err, ErrNotFound) {
			t.Errorf("company %d: %v", company, err)
		}
	}
	if company, err := w.CompanyOf(t.Context(), idSpan); err != nil || company != 1 {
		t.Errorf("%d, %v", company, err)
	}
}

// TestListsHaveTheirPool: customers' look-ups take no connection from the pool of the commits.
func TestListsHaveTheirPool(t *testing.T) {
	pool := batchPool(t)
	lookups, err := pgxpool.New(t.Context(), pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer lookups.Close()
	w := New(pool, Options{AllowPrivate: true, Lookups: lookups})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	giveUp(t, w, 1, 1, 3)
	for range pool.Config().MaxConns { // none is left
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, f := range []Filter{{}, {State: StateFailed}, {State: StateDelivered}, {Event: Sent, State: StatePending},
		{MessageID: 1}} {
		if err := errOf2(w.Deliveries(ctx, 1, f, 0, 10)); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if err := errOf(w.Delivery(ctx, 1, idSpan)); err != nil {
		t.Error(err)
	}
}

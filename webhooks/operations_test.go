package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/notices"
	"intumwa/sms"
)

func perform(t testing.TB, w *Webhooks, statement string, args ...any) {
	t.Helper()
	if _, err := w.pool.Exec(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestRotation: for a day both secrets sign, the old one alone in the header
// that has room for one; then the new one does.
func TestRotation(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Idle: 20 * time.Millisecond, SecretKey: new([32]byte)})
	s := newSink(t, nil)
	before := setEndpoint(t, w, 1, s.URL)
	run(t, w)
	next := int64(0)
	told := func() request {
		t.Helper()
		next++
		enqueue(t, w, 1, next, 1)
		eventually(t, "a request", func() bool { return s.count() == int(next) })
		return s.requests()[next-1]
	}
	check := func(what, secret string, r request, signatures int, standard, contract bool) {
		t.Helper()
		sign, err := newSigner(secret)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(r.header.Get("webhook-signature"), " ")
		want := sign.standardSignature(r.header.Get("webhook-id"), r.header.Get("webhook-timestamp"), []byte(r.body))
		found := false
		for _, each := range got {
			found = found || each == want
		}
		if len(got) != signatures || found != standard || (r.header.Get("X-Webhook-Signature") == sign.contractSignature([]byte(r.body))) != contract {
			t.Errorf("%s: %v", what, r.header)
		}
		if err := Verify(secret, r.header, []byte(r.body), time.Now()); (err == nil) != standard {
			t.Errorf("%s: Verify: %v", what, err)
		}
	}
	r := told()
	check("before", before.Secret, r, 1, true, true)

	after, err := w.Rotate(t.Context(), 1)
	if err != nil || after.Secret == before.Secret || after.PreviousUntil == nil || time.Until(*after.PreviousUntil) < RotationOverlap-time.Minute {
		t.Fatalf("%+v, %v", after.PreviousUntil, err)
	}
	r = told()
	check("the old one while both are valid", before.Secret, r, 2, true, true)
	check("the new one while both are valid", after.Secret, r, 2, true, false)
	if _, refused := errors.AsType[sms.Refusal](errOf(w.Rotate(t.Context(), 1))); !refused {
		t.Error("a second rotation leaves receivers of the first without a secret")
	}
	if e, err := w.Endpoint(t.Context(), 1); err != nil || e.Secret != after.Secret || e.PreviousUntil == nil {
		t.Errorf("%+v, %v", e.PreviousUntil, err)
	}
	perform(t, w, `UPDATE webhook_endpoints SET previous_until = now() WHERE company_id = 1`) // the day is over
	w.EndpointChanged("1")
	r = told()
	check("the old one past the switch", before.Secret, r, 1, false, false)
	check("the new one past the switch", after.Secret, r, 1, true, true)

	third, err := w.Rotate(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := w.EndRotation(t.Context(), 1); err != nil || e.PreviousUntil != nil {
		t.Errorf("%+v, %v", e, err)
	}
	r = told()
	check("the second after its end", after.Secret, r, 1, false, false)
	check("the third", third.Secret, r, 1, true, true)

	// A secret that is given takes the place of all.
	if _, err := w.Rotate(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	given := newSecret()
	if e, err := w.SetEndpoint(t.Context(), 1, Setting{Secret: given}); err != nil || e.PreviousUntil != nil {
		t.Errorf("%+v, %v", e.PreviousUntil, err)
	}
	r = told()
	check("a secret that was given", given, r, 1, true, true)
	if err := errOf(w.Rotate(t.Context(), 2)); !errors.Is(err, ErrNotFound) {
		t.Errorf("an endpoint that is not there: %v", err)
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestTestEvent: the answer is seen, whatever it is, and nothing is recorded.
func TestTestEvent(t *testing.T) {
	w := New(batchPool(t), quickly())
	s := newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Webhook-Event") == Failed {
			rw.WriteHeader(http.StatusTeapot)
		}
		_, _ = fmt.Fprint(rw, "\x1b[2Jthank\u202e you\x00")
	})
	e := setEndpoint(t, w, 1, s.URL)
	if _, err := w.SetEndpoint(t.Context(), 1, Setting{Active: new(bool)}); err != nil { // off: it can be tested all the same
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, event := range []string{Sent, Failed, Sent} {
		r, err := w.Test(t.Context(), 1, event)
		if err != nil {
			t.Fatal(err)
		}
		status, result := 200, "2xx"
		if event == Failed {
			status, result = 418, "4xx"
		}
		if a := r.Attempt; a.Status != status || a.Result != result || a.Answer() != "[2Jthank you" || a.Number != 1 {
			t.Errorf("%+v %q", a, a.Answer())
		}
		got := s.requests()[i]
		if got.header.Get("X-Webhook-Event") != event || got.header.Get("webhook-id") != r.WebhookID || got.body != r.Body || !strings.HasPrefix(r.WebhookID, "evt_test_") {
			t.Errorf("%+v, %+v", got, r)
		}
		if err := Verify(e.Secret, got.header, []byte(got.body), time.Now()); err != nil {
			t.Error(err)
		}
		var body struct {
			Event string
			Data  struct {
				MessageID int64 `json:"message_id"`
				Status    string
			}
		}
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || body.Event != event || body.Data.Status != event || body.Data.MessageID != 0 {
			t.Errorf("%s: %v", got.body, err)
		}
		if seen[r.WebhookID] {
			t.Error("a receiver would drop the second test")
		}
		seen[r.WebhookID] = true
	}
	if all, _, err := w.Deliveries(t.Context(), 1, Filter{}, 0, 10); err != nil || len(all) != 0 {
		t.Errorf("%d deliveries, %v", len(all), err)
	}
	if err := errOf(w.Test(t.Context(), 2, Sent)); !errors.Is(err, ErrNotFound) {
		t.Errorf("another company: %v", err)
	}
	if err := errOf(w.Test(t.Context(), 1, "sms.other")); err == nil {
		t.Error("an event that is none")
	}
}

// TestTestsAreBounded: one of an endpoint at a time, however long it hangs.
func TestTestsAreBounded(t *testing.T) {
	opts := quickly()
	opts.Timeout = 3 * time.Second
	w := New(batchPool(t), opts)
	s := newSink(t, hang)
	setEndpoint(t, w, 1, s.URL)
	var first sync.WaitGroup
	first.Go(func() {
		if r, err := w.Test(t.Context(), 1, Sent); err != nil || r.Attempt.Result != "timeout" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	eventually(t, "the first test's call", func() bool { return s.count() == 1 })
	if err := errOf(w.Test(t.Context(), 1, Sent)); !errors.Is(err, ErrBusy) {
		t.Errorf("the second: %v", err)
	}
	first.Wait()
	for i := range testsAtOnce {
		if !w.testing.enter(sms.CompanyID(100 + i)) {
			t.Fatalf("no place for test %d", i)
		}
	}
	if w.testing.enter(1) {
		t.Error("any number of tests at a time")
	}
}

// giveUp makes deliveries of messages [from, from+n) that were given up.
func giveUp(t testing.TB, w *Webhooks, company, from int64, n int) {
	t.Helper()
	enqueue(t, w, company, from, n)
	perform(t, w, `UPDATE webhook_undelivered SET due = 'infinity', tries = 6, given_up_at = now() WHERE id >= $1 AND id < $2`, from*idSpan, (from+int64(n))*idSpan)
}

// TestRecovery: all that was given up since a time is sent again, once, in
// batches; not what is another's, older, or given up again meanwhile.
func TestRecovery(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	setEndpoint(t, w, 2, "http://127.0.0.1:1/")
	giveUp(t, w, 1, 1, 10)
	perform(t, w, `UPDATE webhook_deliveries SET at = now() - interval '2 hours'`)
	giveUp(t, w, 1, 1000, 1200)
	giveUp(t, w, 2, 5000, 10)
	since := time.Now().Add(-time.Hour)
	r, begun, err := w.Recover(t.Context(), 1, since)
	if err != nil || !begun || r.Found != 1200 || r.FinishedAt != nil {
		t.Fatalf("%+v, %v, %v", r, begun, err)
	}
	if again, begun, err := w.Recover(t.Context(), 1, time.Now().Add(-24*time.Hour)); err != nil || begun || again.ID != r.ID {
		t.Errorf("a second one meanwhile: %+v, %v, %v", again, begun, err)
	}
	var steps []int64
	var mu sync.Mutex
	var both sync.WaitGroup
	for range 2 { // two processes advance it
		both.Go(func() {
			for {
				now, err := w.Advance(context.Background(), r.ID)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				steps = append(steps, now.Resent)
				mu.Unlock()
				if now.FinishedAt != nil {
					return
				}
				perform(t, w, `UPDATE webhook_undelivered SET due = 'infinity', given_up_at = now() + interval '1 s' WHERE company_id = 1 AND due < 'infinity'`) // in vain
			}
		})
	}
	both.Wait()
	done, err := w.RecoveryOf(t.Context(), 1)
	if err != nil || done.Resent != 1200 || done.FinishedAt == nil || len(steps) < 3 {
		t.Errorf("%+v, %v, steps %v", done, err, steps)
	}
	if left, _, err := w.Deliveries(t.Context(), 1, Filter{State: StateFailed}, 0, 2000); err != nil || len(left) < 10 {
		t.Errorf("the older ones: %d, %v", len(left), err)
	}
	if others, _, err := w.Deliveries(t.Context(), 2, Filter{State: StateFailed}, 0, 100); err != nil || len(others) != 10 {
		t.Errorf("another company's: %d, %v", len(others), err)
	}
	for _, company := range []sms.CompanyID{0, -1} {
		if err := errOf2(w.Recover(t.Context(), company, since)); !errors.Is(err, ErrNotFound) {
			t.Errorf("nobody's: %v", err)
		}
	}
	if err := errOf(w.RecoveryOf(t.Context(), 2)); !errors.Is(err, ErrNotFound) {
		t.Errorf("another company's progress: %v", err)
	}
}

func errOf2[A, B any](_ A, _ B, err error) error { return err }

// TestRecoveryInTheBackground: whoever delivers does it.
func TestRecoveryInTheBackground(t *testing.T) {
	pool := batchPool(t)
	page, w := New(pool, quickly()), New(pool, quickly())
	s := newSink(t, nil)
	setEndpoint(t, w, 1, s.URL)
	giveUp(t, w, 1, 1, 700)
	run(t, w)
	if _, _, err := page.Recover(t.Context(), 1, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all sent again", func() bool { return s.count() >= 700 })
	eventually(t, "its end", func() bool {
		r, err := page.RecoveryOf(t.Context(), 1)
		return err == nil && r.FinishedAt != nil && r.Resent == 700
	})
}

// TestChangedWhileItIsRead: what is written after its endpoint has another secret is signed
// with that one, also when the endpoint was read just before.
func TestChangedWhileItIsRead(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Idle: 20 * time.Millisecond, SecretKey: new([32]byte)})
	s := newSink(t, nil)
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 1)
	eventually(t, "the first request", func() bool { return s.count() == 1 })
	if _, err := w.Rotate(t.Context(), 1); err != nil { // it is read for this
		t.Fatal(err)
	}
	given := newSecret()
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		for _, statement := range []string{`SET LOCAL idle_in_transaction_session_timeout = 0`, `LOCK TABLE webhook_deliveries IN ACCESS EXCLUSIVE MODE`} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		w.wake(1, want{again: true})
		eventually(t, "it is about to claim what is new", func() (waits bool) {
			if err := w.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
				AND wait_event_type = 'Lock' AND query LIKE '%WITH wish AS%')`).Scan(&waits); err != nil {
				t.Fatal(err)
			}
			return waits
		})
		if _, err := w.SetEndpoint(t.Context(), 1, Setting{Secret: given}); err != nil {
			return err
		}
		return w.Enqueue(t.Context(), tx, []Event{{CompanyID: 1, MessageID: 2, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()}})
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second request", func() bool { return s.count() == 2 })
	r := s.requests()[1]
	if err := Verify(given, r.header, []byte(r.body), time.Now()); err != nil || strings.Contains(r.header.Get("webhook-signature"), " ") {
		t.Errorf("it is signed with what was before: %v, %v", r.header, err)
	}
}

// TestSwitchedOffElsewhere: an endpoint that another process switches off gets
// no more calls, also of those that were taken already, and all of them when it
// is on again.
func TestSwitchedOffElsewhere(t *testing.T) {
	pool := batchPool(t)
	w := New(pool, Options{AllowPrivate: true, Timeout: patience, Idle: time.Hour, PerEndpoint: 1, PerEndpointMax: 2}) // it looks when it is told
	elsewhere := New(batchPoolOf(t, pool), Options{AllowPrivate: true})
	l := notices.New(pool, notices.Options{})
	listening := make(chan struct{})
	once := sync.OnceFunc(func() { close(listening) })
	var heard atomic.Int64
	l.On(notices.Endpoint, func(key string) { w.EndpointChanged(key); heard.Add(1); once() })
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer ended.Wait()
	defer cancel()
	<-listening
	const answered = 20
	var calls atomic.Int64
	held := make(chan struct{})
	s := newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > answered {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 200)
	eventually(t, "the calls that wait for an answer", func() bool { return calls.Load() > answered })
	off, before := false, heard.Load()
	if _, err := elsewhere.SetEndpoint(t.Context(), 1, Setting{Active: &off}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the notice has arrived", func() bool {
		w.wanted.mu.Lock()
		defer w.wanted.mu.Unlock()
		return heard.Load() > before && !w.wanted.companies[1].changed
	})
	seen := s.count()
	close(held)
	eventually(t, "nothing is claimed any more", func() bool {
		var claimed int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM webhook_undelivered WHERE claimed_until IS NOT NULL`).Scan(&claimed)
		return err == nil && claimed == 0
	})
	if n := s.count(); n > seen+2 || n >= 200 {
		t.Errorf("%d calls after it was switched off", n-seen)
	}
	on := true
	if _, err := elsewhere.SetEndpoint(t.Context(), 1, Setting{Active: &on}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rest", func() bool {
		page, _, err := w.Deliveries(t.Context(), 1, Filter{State: StateDelivered}, 0, 300)
		return err == nil && len(page) == 200
	})
}

func batchPoolOf(t *testing.T, other *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(context.Background(), other.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestFailing: an endpoint that fails is known to, its owner is told once that
// it fails for good, and a success ends it.
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
	var failing []Failing
	eventually(t, "an endpoint that fails for good", func() bool {
		var err error
		failing, err = w.Failing(t.Context(), time.Now().Add(-time.Hour), 10)
		return err == nil && len(failing) == 1
	})
	if f := failing[0]; f.CompanyID != 1 || !f.Active || f.FailingSince == nil || f.FailingSince.After(f.GivenUpAt) {
		t.Errorf("%+v", f)
	}
	told := func() (n int) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			found, err := TakeFailing(t.Context(), tx, 10)
			n = len(found)
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
		e, err := w.Endpoint(t.Context(), 1)
		return err == nil && e.FailingSince == nil
	})
	broken.Store(true)
	enqueue(t, w, 1, 20, 1)
	inState(t, w, 20, StateFailed)
	eventually(t, "failing again", func() bool {
		f, err := w.Failing(t.Context(), time.Now().Add(-time.Hour), 10)
		return err == nil && len(f) == 1
	})
	if n := told(); n != 0 {
		t.Error("its owner is told again on the same day")
	}
	perform(t, w, `UPDATE webhook_endpoints SET told_at = told_at - interval '25 hours'`)
	if n := told(); n != 1 {
		t.Error("its owner is not told on the next day")
	}
}

// TestDisabled: what is to switch an endpoint off does, where it is wanted, and
// only then.
func TestDisabled(t *testing.T) {
	gone := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) }
	for _, try := range []struct {
		name   string
		opts   func(*Options)
		answer http.HandlerFunc
		long   bool // it has been failing for days
		reason string
	}{
		{"nothing is wanted", func(*Options) {}, gone, true, ""},
		{"gone", func(o *Options) { o.DisableOnGone = true }, gone, false, DisabledGone},
		{"another failure", func(o *Options) { o.DisableOnGone = true }, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) }, true, ""},
		{"days of failures", func(o *Options) { o.DisableAfter = 5 * 24 * time.Hour }, gone, true, DisabledFailing},
		{"less than that", func(o *Options) { o.DisableAfter = 7 * 24 * time.Hour }, gone, true, ""},
	} {
		t.Run(try.name, func(t *testing.T) {
			opts := quickly()
			try.opts(&opts)
			w := New(batchPool(t), opts)
			s := newSink(t, try.answer)
			setEndpoint(t, w, 1, s.URL)
			if try.long {
				perform(t, w, `UPDATE webhook_endpoints SET failing_since = now() - interval '6 days'`)
			}
			run(t, w)
			enqueue(t, w, 1, 1, 1)
			if try.reason == "" {
				inState(t, w, 1, StateFailed)
				eventually(t, "it is noted", func() bool {
					f, err := w.Failing(t.Context(), time.Now().Add(-time.Hour), 10)
					return err == nil && len(f) == 1
				})
				if e, err := w.Endpoint(t.Context(), 1); err != nil || !e.Active || e.DisabledReason != "" {
					t.Errorf("%+v, %v", e, err)
				}
				return
			}
			eventually(t, "switched off", func() bool {
				e, err := w.Endpoint(t.Context(), 1)
				return err == nil && !e.Active && e.DisabledReason == try.reason && e.DisabledAt != nil
			})
			if f, err := w.Failing(t.Context(), time.Now().Add(-time.Hour), 10); err != nil || len(f) != 1 || f[0].DisabledReason != try.reason {
				t.Errorf("its owner is not told: %+v, %v", f, err)
			}
			on := true
			if e, err := w.SetEndpoint(t.Context(), 1, Setting{Active: &on}); err != nil || !e.Active || e.DisabledReason != "" || e.FailingSince != nil {
				t.Errorf("switched on again: %+v, %v", e, err)
			}
		})
	}
}

// TestHealthIsOfTheAddressThatWasCalled: what is late of the old address does
// not count against the new one.
func TestHealthIsOfTheAddressThatWasCalled(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, DisableOnGone: true})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/new")
	late := result{job: job{id: 8}, endpoint: callee{1, "http://127.0.0.1:1/old"}, state: exhausted, attempt: Attempt{Status: 410}}
	if err := w.noteHealth(t.Context(), []result{late}); err != nil {
		t.Fatal(err)
	}
	if e, err := w.Endpoint(t.Context(), 1); err != nil || !e.Active || e.FailingSince != nil {
		t.Errorf("%+v, %v", e, err)
	}
	// A success among failures: the failing begins after it.
	perform(t, w, `UPDATE webhook_endpoints SET failing_since = now() - interval '6 days', given_up_at = now() - interval '6 days'`)
	now := callee{1, "http://127.0.0.1:1/new"}
	if err := w.noteHealth(t.Context(), []result{{endpoint: now, state: delivered}, {endpoint: now, state: pending}}); err != nil {
		t.Fatal(err)
	}
	e, err := w.Endpoint(t.Context(), 1)
	if err != nil || e.FailingSince == nil || time.Since(*e.FailingSince) > time.Hour {
		t.Errorf("%+v, %v", e, err)
	}
	if f, err := w.Failing(t.Context(), time.Time{}, 10); err != nil || len(f) != 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestAttemptsAreBounded: whoever sends again and again keeps the latest attempts.
func TestAttemptsAreBounded(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	giveUp(t, w, 1, 1, 1)
	perform(t, w, `INSERT INTO webhook_attempts (seq, at, ms, status, result)
		SELECT seq, now() + n * interval '1 second', n, 500, '5xx' FROM webhook_deliveries, generate_series(1, 100) n`)
	d, err := w.Resend(t.Context(), 1, idSpan)
	if err != nil || len(d.Attempts) != 60 || d.Attempts[0].DurationMS != 41 || d.Attempts[59].DurationMS != 100 {
		t.Errorf("%d attempts, %v", len(d.Attempts), err)
	}
}

// TestNobodysAndEverybodys: no company id finds what is another's.
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

// TestListsHaveTheirPool: what customers look up takes no connection from the pool of the commits.
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
	for _, f := range []Filter{{}, {State: StateFailed}, {State: StateDelivered}, {Event: Sent, State: StatePending}, {MessageID: 1}} {
		if err := errOf2(w.Deliveries(ctx, 1, f, 0, 10)); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if err := errOf(w.Delivery(ctx, 1, idSpan)); err != nil {
		t.Error(err)
	}
}

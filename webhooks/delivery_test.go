package webhooks

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

func TestEnqueueOnceAndOnlyForActiveEndpoints(t *testing.T) {
	w := New(batchPool(t), quickly())
	ctx := context.Background()
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	off := false
	if _, err := w.SetEndpoint(ctx, 2, Setting{URL: "http://127.0.0.1:1/", Active: &off}); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	events := []Event{
		{CompanyID: 1, MessageID: 10, Name: Sent, At: at},
		{CompanyID: 2, MessageID: 11, Name: Sent, At: at},
		{CompanyID: 3, MessageID: 12, Name: Failed, At: at},
		{CompanyID: 1, MessageID: 13, Name: Failed, At: at},
	}
	if n := enqueueAll(t, w, events); n != 2 {
		t.Errorf("%d recorded, want 2", n)
	}
	if err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error { return w.Enqueue(ctx, tx, events) }); !postgres.Refused(
		err) {
		t.Errorf("recorded again: %v", err)
	}
	if n := enqueueAll(t, w, nil); n != 0 {
		t.Errorf("%d recorded of none", n)
	}
	found, _, err := w.Deliveries(ctx, 1, Filter{}, 0, 10)
	if err != nil || len(found) != 2 || found[1].MessageID != 10 || found[0].Event != Failed || found[0].CompanyID != 1 {
		t.Fatalf("deliveries %+v, %v", found, err)
	}
	for company := range sms.CompanyID(4) {
		if found, _, err := w.Deliveries(ctx, company, Filter{MessageID: 11}, 0, 2); err != nil || len(found) != 0 {
			t.Errorf("an endpoint that is switched off is told: %+v, %v", found, err)
		}
	}
	if d := found[1]; d.State != "pending" || d.NextAt == nil || d.FinishedAt != nil || len(d.Attempts) != 0 {
		t.Errorf("a new delivery is %+v", d)
	}
	// A rolled-back event does not exist.
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Enqueue(ctx, tx, []Event{{CompanyID: 1, MessageID: 99, Name: Sent, At: at}}); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
	if found, _, err := w.Deliveries(ctx, 1, Filter{MessageID: 99}, 0, 2); err != nil || len(found) != 0 {
		t.Errorf("rolled back, yet %d deliveries, %v", len(found), err)
	}
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		return w.Enqueue(ctx, tx, []Event{{CompanyID: 1, MessageID: 98, Name: "sms.read"}})
	})
	if err == nil {
		t.Error("an event that rule api 6 does not have was recorded")
	}
}

func TestScheduleAndIdenticalAttempts(t *testing.T) {
	s := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusInternalServerError)
		_, _ = rw.Write([]byte("no\x00 thanks\xff"))
	})
	opts := quickly()
	opts.Idle = 10 * time.Millisecond
	w := New(batchPool(t), opts)
	endpoint := setEndpoint(t, w, 1, s.URL+"/hook?token=1")
	run(t, w)
	enqueue(t, w, 1, 5, 1)
	d := inState(t, w, 5, StateFailed)

	seen := s.requests()
	if len(seen) != 6 || len(d.Attempts) != 6 || d.FinishedAt == nil || d.NextAt != nil {
		t.Fatalf("%d requests, delivery %+v", len(seen), d)
	}
	sign, err := newSigner(endpoint.Secret)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range seen {
		if r.body != d.Body || r.body != seen[0].body {
			t.Errorf("attempt %d has body %s", i+1, r.body)
		}
		stamp := r.header.Get("webhook-timestamp")
		for header, want := range map[string]string{
			"Content-Type":        "application/json",
			"Accept":              "*/*",
			"X-Webhook-Event":     Sent,
			"X-Webhook-Signature": sign.contractSignature([]byte(r.body)),
			"webhook-id":          d.WebhookID,
			"webhook-signature":   sign.standardSignature(d.WebhookID, stamp, []byte(r.body)),
			"Content-Length":      strconv.Itoa(len(d.Body)),
			"Accept-Encoding":     "",
			"X-Idempotency-Key":   "",
		} {
			if got := r.header.Get(header); got != want && header != "Content-Length" {
				t.Errorf("attempt %d: %s is %q, want %q", i+1, header, got, want)
			}
		}
		if seconds, err := strconv.ParseInt(stamp, 10, 64); err != nil || time.Since(time.Unix(seconds, 0)) > patience {
			t.Errorf("attempt %d: webhook-timestamp %q", i+1, stamp)
		}
		if i > 0 {
			if pause := r.at.Sub(seen[i-1].at); pause < opts.RetryDelays[i-1] {
				t.Errorf("attempt %d came %s after the one before, not %s", i+1, pause, opts.RetryDelays[i-1])
			}
		}
		a := d.Attempts[i]
		if a.Number != i+1 || a.Status != 500 || a.Result != result5xx || a.Excerpt != "no thanks" || a.Error != "" ||
			a.At.IsZero() {
			t.Errorf("attempt %d is kept as %+v", i+1, a)
		}
	}

	ctx := context.Background()
	given, _, err := w.Deliveries(ctx, 1, Filter{State: StateFailed}, 0, 10)
	if err != nil || len(given) != 1 || given[0].ID != d.ID {
		t.Errorf("exhausted: %+v, %v", given, err)
	}
	if given, _, err = w.Deliveries(ctx, 1, Filter{State: StateFailed}, d.ID, 10); err != nil || len(given) != 0 {
		t.Errorf("the next page: %+v, %v", given, err)
	}
}

func TestChangedAndDeactivatedEndpoint(t *testing.T) {
	failing := newSink(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) })
	good := newSink(t, nil)
	opts := quickly()
	opts.RetryDelays = slices.Repeat([]time.Duration{50 * time.Millisecond}, 200) // some are left at the deactivation
	pool := batchPool(t)
	delivering := New(pool, opts)
	w := New(pool, opts) // of another process
	ctx := context.Background()
	first := setEndpoint(t, w, 1, failing.URL)
	run(t, delivering)
	enqueue(t, w, 1, 5, 1)
	eventually(t, "a first attempt", func() bool { return failing.count() > 0 })

	off, on := false, true
	if _, err := w.SetEndpoint(ctx, 1, Setting{Active: &off}); err != nil {
		t.Fatal(err)
	}
	if n := enqueue(t, w, 1, 6, 1); n != 0 {
		t.Error("an inactive endpoint was told of")
	}
	var d Delivery
	eventually(t, "quiet, and what was under way recorded", func() bool {
		d = only(t, w, 5)
		quiet := d.State == StateFailed || d.NextAt != nil && time.Since(*d.NextAt) > 200*time.Millisecond
		return quiet && len(d.Attempts) == failing.count()
	})
	if d.State != "pending" {
		t.Errorf("deactivated, its delivery is %s after %d attempts", d.State, len(d.Attempts))
	}

	second, err := w.SetEndpoint(ctx, 1, Setting{URL: good.URL, Secret: newSecret(), Active: &on})
	if err != nil || second.Secret == first.Secret || !second.Active {
		t.Fatalf("changed to %+v, %v", second, err)
	}
	delivering.EndpointChanged("1") // its notice
	inState(t, w, 5, "delivered")
	sign, err := newSigner(second.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if r := good.requests()[0]; r.header.Get("X-Webhook-Signature") != sign.contractSignature([]byte(r.body)) {
		t.Error("a pending delivery is not signed with the current secret")
	}
}

// Every attempt at the event of a message with a client_reference includes it: the
// first, one that another process reads from the undelivered rows, and a manual
// re-send.
func TestReferenceOnEveryAttempt(t *testing.T) {
	const fails = 3
	var calls atomic.Int64
	s := newSink(t, func(out http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) <= fails {
			out.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	until := func(n int) {
		t.Helper()
		eventually(t, "a call", func() bool { return s.count() >= n })
	}
	pool := batchPool(t)
	w := New(pool, quickly())
	setEndpoint(t, w, 1, s.URL)
	event := Event{CompanyID: 1, MessageID: 42, Name: Sent, PhoneNumber: "+25761234567", At: time.Now(),
		Reference: `facture "42"`, CostCenter: "IT"}
	enqueueAll(t, w, []Event{event})
	stop := run(t, w)
	until(2)
	stop()
	w = New(pool, quickly())
	run(t, w)
	until(fails + 1)
	inState(t, w, 42, StateDelivered)
	if _, err := w.Resend(t.Context(), 1, only(t, w, 42).ID); err != nil {
		t.Fatal(err)
	}
	until(fails + 2)
	for i, r := range s.requests() {
		if want := string(bodyOf(t, event)); r.body != want {
			t.Errorf("attempt %d has %s, want %s", i+1, r.body, want)
		}
	}
}

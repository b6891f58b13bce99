package webhooks

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// recordFirstCalls records first calls of events 8 (sms.sent of message 1), 18 (sms.received) and 24 of company 1, as
// Enqueue does.
func recordFirstCalls(t *testing.T, w *Webhooks, id byte, number string) *firstCalls {
	t.Helper()
	calls := &firstCalls{id: callsID{id}, ends: time.Now().Add(time.Hour)}
	for i, e := range []storedEvent{
		{id: 8, labels: `,"client_reference":"order 1"`},
		{id: 18, data: `{"inbound_id":2,"from":"` + number +
			`","to":"8080","message":"a secret","received_at":"2026-03-01T08:02:11+00:00"}`},
		{id: 24},
	} {
		e.company, e.at, e.number = 1, time.Now(), number
		calls.outcomes = append(calls.outcomes, outcome{job: job{storedEvent: e, calls: calls, place: i}})
	}
	perform(t, w, `INSERT INTO webhook_first_calls (id, ends, company_ids, ids, at, phone_numbers, labels, data)
		SELECT $1, $2, '{1,1,1}', '{8,18,24}', array_fill(now(), '{3}'), array_fill($3::text, '{3}'),
			ARRAY[',"client_reference":"order 1"', NULL, NULL], ARRAY[NULL, $4, NULL]`,
		calls.id, calls.ends, number, calls.outcomes[1].data)
	return calls
}

// arePending checks the ids of a company's pending deliveries, each with and without a re-send.
func arePending(t *testing.T, w *Webhooks, want ...int64) {
	t.Helper()
	page, _, err := w.Deliveries(t.Context(), 1, Filter{State: StatePending}, 0, 10)
	if err != nil || len(page) != len(want) {
		t.Fatalf("%+v, %v", page, err)
	}
	for i, d := range page {
		if again, err := w.Resend(t.Context(), 1, d.ID); d.ID != want[i] || err != nil || again.State != StatePending ||
			again.Body != d.Body {
			t.Errorf("%+v, %+v, %v", d, again, err)
		}
	}
}

// TestFirstCalls: a delivery in webhook_first_calls is pending for every reader: it is listed, found, not erased, and
// not called twice by a re-send.
func TestFirstCalls(t *testing.T) {
	const number = "+25761234567"
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	recordFirstCalls(t, w, 1, number)
	arePending(t, w, 24, 18, 8)
	if all, err := w.Naming(t.Context(), []string{number}, 100); err != nil || len(all) != 1 || all[0].InboundID != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		of, err := Erase(t.Context(), tx, []Subject{{1, 1}, {1, 3}}, "erased")
		erased, received, err2 := EraseReceived(t.Context(), tx, []Subject{{1, 2}}, []string{number}, "erased")
		if len(of) != 2 || erased != 0 || len(received) != 1 {
			t.Errorf("%v; %d %v", of, erased, received)
		}
		return errors.Join(err, err2)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestFirstCallsEndOnce: who deletes the row of first calls decides about its deliveries: the process that made the
// calls, or another one after their end. A repetition, or the other one's late results, change nothing.
func TestFirstCallsEndOnce(t *testing.T) {
	w := New(batchPool(t), quickly())
	d := newDeliverer(t.Context(), w.core)
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	end := func() {
		t.Helper()
		perform(t, w, `UPDATE webhook_first_calls SET ends = now()`)
		if err := d.endFirstCalls(t.Context()); err != nil {
			t.Error(err)
		}
	}
	store := func(calls *firstCalls) {
		t.Helper()
		if err := d.store(t.Context(), calls.outcomes); err != nil {
			t.Fatal(err)
		}
	}
	all := func(calls *firstCalls) *firstCalls {
		for i := range calls.outcomes {
			r := &calls.outcomes[i]
			r.state, r.ended, r.attempt.Result = delivered, time.Now(), result2xx
		}
		return calls
	}
	late := all(recordFirstCalls(t, w, 1, "+25761234567"))
	end()
	end()
	store(late)
	arePending(t, w, 24, 18, 8)

	perform(t, w, `DELETE FROM webhook_deliveries`)
	inTime := all(recordFirstCalls(t, w, 2, "+25761234567"))
	inTime.outcomes[2].state, inTime.outcomes[2].attempt.Result = exhausted, result5xx
	store(inTime)
	store(inTime) // the first reply was lost
	end()
	if n, m := countState(t, w, delivered), countState(t, w, exhausted); n != 2 || m != 1 {
		t.Errorf("%d delivered, %d given up", n, m)
	}
}

// TestSlowFirstCall: the results of a transaction's first calls are stored together, but none waits for long: the
// deliveries that are still being called then have claimed rows, and their results are stored too.
func TestSlowFirstCall(t *testing.T) {
	w := New(batchPool(t), quickly())
	d := newDeliverer(t.Context(), w.core)
	d.workers[1] = newWorker(1)
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	calls := recordFirstCalls(t, w, 1, "+25761234567")
	done := make(chan struct{})
	go func() { d.record(t.Context()); close(done) }()
	arrive := func(i int, s deliveryState) {
		r := calls.outcomes[i]
		r.target, r.state, r.ended, r.delay, r.attempt.Result = &target{}, s, time.Now(), time.Hour, result2xx
		d.outcomes <- r
	}
	late := calls.outcomes[2]
	arrive(0, delivered)
	arrive(1, pending)
	arePending(t, w, 24, 18, 8)
	inState(t, w, 1, StateDelivered)
	arePending(t, w, 24, 18)
	if taken, err := d.claim(t.Context(), []wish{{worker: newWorker(1), most: 10}}); err != nil ||
		len(taken[1].jobs) != 1 || taken[1].jobs[0].id != 18 {
		t.Errorf("%+v, %v: a delivery that is being called was claimed", taken, err)
	}
	late.target, late.state, late.ended, late.attempt.Result = &target{}, delivered, time.Now(), result2xx
	d.outcomes <- late
	close(d.outcomes)
	<-done
	if one := only(t, w, 3); one.State != StateDelivered || len(one.Attempts) != 1 {
		t.Errorf("%+v", one)
	}
}

// TestSlowFirstCallHoldsNothingUp is the same by whole calls: one endpoint does not answer, and the other one's failure
// is tried again meanwhile.
func TestSlowFirstCallHoldsNothingUp(t *testing.T) {
	release := make(chan struct{})
	slow := newSink(t, func(rw http.ResponseWriter, _ *http.Request) { <-release; rw.WriteHeader(204) })
	failing := newSink(t, status(http.StatusServiceUnavailable))
	w := New(batchPool(t), quickly())
	setEndpoint(t, w, 1, slow.URL)
	setEndpoint(t, w, 2, failing.URL)
	run(t, w)
	eventually(t, "it runs", func() bool { return w.running.Load() != nil })
	makeQuick(w, 1, 2)
	enqueueAll(t, w, []Event{
		{CompanyID: 1, MessageID: 1, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()},
		{CompanyID: 2, MessageID: 2, Name: Sent, PhoneNumber: "+25761234567", At: time.Now()},
	})
	eventually(t, "another attempt", func() bool { return failing.count() > 1 })
	if d := only(t, w, 1); d.State != StatePending || len(d.Attempts) != 0 {
		t.Errorf("%+v", d)
	}
	close(release)
	inState(t, w, 1, StateDelivered)
	if n := slow.count(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestFirstCallsOfAnUnusableEndpoint: calls that cannot be made do not wait; another process ends them by their time.
func TestFirstCallsOfAnUnusableEndpoint(t *testing.T) {
	d := newDeliverer(t.Context(), New(batchPool(t), quickly()).core)
	d.workers[1] = newWorker(1)
	c := &claimed{endpoint: storedEndpoint{company: 1, url: "http://127.0.0.1:1/", secret: "aes256gcm:unreadable"},
		jobs: []*job{{storedEvent: storedEvent{company: 1, id: 8}}}}
	d.hand(&firstCalls{}, []*claimed{c})
	if len(d.workers[1].waiting) != 0 {
		t.Errorf("%+v", d.workers[1].waiting)
	}
}

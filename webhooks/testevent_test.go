package webhooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/sms"
)

// TestTestEvent: any response is returned, and nothing is recorded.
func TestTestEvent(t *testing.T) {
	w := New(batchPool(t), quickly())
	s := newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Webhook-Event") == Failed {
			rw.WriteHeader(http.StatusTeapot)
		}
		_, _ = fmt.Fprint(rw, "\x1b[2Jthank\u202e you\x00")
	})
	e := setEndpoint(t, w, 1, s.URL)
	if _, err := w.SetEndpoint(t.Context(), 1, Setting{Active: new(bool)}); err != nil { // inactive: can be tested too
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, event := range append([]string{Sent, Failed}, append(Askable(), Sent)...) {
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
		if got.header.Get("X-Webhook-Event") != event || got.header.Get("webhook-id") != r.WebhookID || got.body != r.Body ||
			!strings.HasPrefix(r.WebhookID, "evt_test_") {
			t.Errorf("%+v, %+v", got, r)
		}
		if !signedBy(e.Secret, got) {
			t.Errorf("%s is not signed", got.body)
		}
		var body struct {
			Event string
			Data  struct {
				MessageID int64 `json:"message_id"`
				Status    string
			}
		}
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || body.Event != event || i < 2 &&
			body.Data.Status != event || body.Data.MessageID != 0 {
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

// TestTestsAreBounded: one test per endpoint at a time, however long it hangs.
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
		if _, ok := w.enterTest(sms.CompanyID(100 + i)); !ok {
			t.Fatalf("no place for test %d", i)
		}
	}
	if _, ok := w.enterTest(1); ok {
		t.Error("any number of tests at a time")
	}
}

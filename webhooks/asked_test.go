package webhooks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

func enqueueAsked(t testing.TB, w *Webhooks, events ...Asked) {
	t.Helper()
	if err := pgx.BeginFunc(context.Background(), w.pool, func(tx pgx.Tx) error { return w.EnqueueAsked(context.Background(), tx, events) }); err != nil {
		t.Fatal(err)
	}
	w.Kick()
}

// TestAskedEvents: they go to whom asked for them and to nobody else, each once, signed
// and repeated as every other; what every endpoint gets has the same octets with them
// and without.
func TestAskedEvents(t *testing.T) {
	pool := batchPool(t)
	w := New(pool, quickly())
	ears := newSink(t, nil)
	shop := newSink(t, nil)
	setEndpoint(t, w, 1, ears.URL)
	e := setEndpoint(t, w, 2, shop.URL)
	if _, err := w.SetEndpoint(t.Context(), 2, Setting{Events: &[]string{LowBalance, Received, LowBalance}}); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 10, 2, 11, 5e8, time.FixedZone("CAT", 2*60*60))
	text := "PAY <5000> & \"é\"\n"
	for company := int64(1); company <= 2; company++ {
		for range 2 { // the same again is no other
			enqueueAsked(t, w,
				Asked{CompanyID: company, Number: 1026, Name: Received, At: at, PhoneNumber: "+25779123400",
					Data: ReceivedData{InboundID: 1026, From: "+25779123400", To: "8080", Message: &text, ReceivedAt: Time{at}}},
				Asked{CompanyID: company, Number: 1027, Name: LowBalance, At: at, Data: LowBalanceData{CompanyID: company, Credits: 98, Threshold: 100}})
		}
		enqueueAll(t, w, []Event{
			{CompanyID: company, MessageID: 1024, Name: Sent, PhoneNumber: "+25761234500", At: at},
			{CompanyID: company, MessageID: 1025, Name: Failed, PhoneNumber: "+25779123401", At: at}})
	}
	always := []string{
		`{"event":"sms.failed","timestamp":"2026-03-01T08:02:11+00:00","data":{"message_id":1025,"phone_number":"+25779123401","status":"sms.failed","sent_at":null,"failed_at":"2026-03-01T08:02:11+00:00"}}`,
		`{"event":"sms.sent","timestamp":"2026-03-01T08:02:11+00:00","data":{"message_id":1024,"phone_number":"+25761234500","status":"sms.sent","sent_at":"2026-03-01T08:02:11+00:00","failed_at":null}}`,
	}
	asked := []string{
		`{"event":"balance.low","timestamp":"2026-03-01T08:02:11+00:00","data":{"company_id":2,"credits":98,"threshold":100}}`,
		`{"event":"sms.received","timestamp":"2026-03-01T08:02:11+00:00","data":{"inbound_id":1026,"from":"+25779123400","to":"8080","message":"PAY <5000> & \"é\"\n","received_at":"2026-03-01T08:02:11+00:00"}}`,
	}
	run(t, w)
	eventually(t, "all of them", func() bool { return ears.count() == 2 && shop.count() == 4 })
	bodies := func(s *sink) (all []string) {
		for _, r := range s.requests() {
			all = append(all, r.body)
		}
		slices.Sort(all)
		return all
	}
	if got := bodies(ears); !slices.Equal(got, always) {
		t.Errorf("who asked for nothing got\n%s", got)
	}
	if got, want := bodies(shop), slices.Concat(asked[:1], always[:1], asked[1:], always[1:]); !slices.Equal(got, want) {
		t.Errorf("who asked got\n%s\nwant\n%s", got, want)
	}
	sign, err := newSigner(e.Secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range shop.requests() {
		if want := string(sign.appendContract(nil, []byte(r.body))); r.header.Get("X-Webhook-Signature") != want {
			t.Errorf("%s is signed %q, want %q", r.body, r.header.Get("X-Webhook-Signature"), want)
		}
		if event := r.header.Get("X-Webhook-Event"); len(r.body) < 12 || r.body[10:10+len(event)] != event {
			t.Errorf("%s is announced as %s", r.body, event)
		}
	}
}

// TestAskedEventRepeats: every attempt has the same octets and the same webhook-id; the
// lists say what it is about.
func TestAskedEventRepeats(t *testing.T) {
	pool := batchPool(t)
	w := New(pool, quickly())
	var calls atomic.Int64
	gate := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) <= 3 {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	setEndpoint(t, w, 1, gate.URL)
	if _, err := w.SetEndpoint(t.Context(), 1, Setting{Events: &[]string{Received}}); err != nil {
		t.Fatal(err)
	}
	text := "Yego"
	enqueueAsked(t, w, Asked{CompanyID: 1, Number: 1026, Name: Received, At: time.Now(), PhoneNumber: "+25779123400",
		Data: ReceivedData{InboundID: 1026, From: "+25779123400", To: "8080", Message: &text, ReceivedAt: Time{time.Now()}}})
	run(t, w)
	eventually(t, "the fourth attempt", func() bool { return gate.count() == 4 })
	got := gate.requests()
	for _, r := range got[1:] {
		if r.body != got[0].body || r.header.Get("webhook-id") != got[0].header.Get("webhook-id") {
			t.Errorf("%s %s, first %s %s", r.header.Get("webhook-id"), r.body, got[0].header.Get("webhook-id"), got[0].body)
		}
	}
	var d Delivery
	eventually(t, "it is recorded", func() bool {
		page, _, err := w.Deliveries(t.Context(), 1, Filter{Event: Received, State: StateDelivered}, 0, 10)
		if err != nil || len(page) != 1 {
			return false
		}
		d = page[0]
		return true
	})
	if d.Event != Received || d.InboundID != 1026 || d.MessageID != 0 || d.Body != got[0].body || d.WebhookID != got[0].header.Get("webhook-id") || len(d.Attempts) != 4 {
		t.Errorf("%+v", d)
	}
	if found, err := w.DeliveriesOf(t.Context(), 1, 1026); err != nil || len(found) != 0 {
		t.Errorf("of the message 1026: %+v, %v", found, err)
	}
	if again, err := w.Resend(t.Context(), 1, d.ID); err != nil || again.Body != d.Body {
		t.Errorf("%+v, %v", again, err)
	}
	eventually(t, "it is sent again", func() bool { return gate.count() == 5 })
	if r := gate.requests()[4]; r.body != got[0].body {
		t.Errorf("sent again as %s", r.body)
	}
}

// TestEndpointAsks: what an endpoint asks for is kept until it asks for something else.
func TestEndpointAsks(t *testing.T) {
	pool := batchPool(t)
	w := New(pool, quickly())
	setEndpoint(t, w, 1, "https://example.org/")
	asks := func(setting Setting, want ...string) {
		t.Helper()
		e, err := w.SetEndpoint(t.Context(), 1, setting)
		if err != nil || !slices.Equal(e.Events, want) {
			t.Errorf("asked for %v, %v; want %v", e.Events, err, want)
		}
		read, err := w.EndpointOf(t.Context(), 1)
		if err != nil || !slices.Equal(read.Events, want) {
			t.Errorf("read %v, %v; want %v", read.Events, err, want)
		}
	}
	off := false
	asks(Setting{Active: &off})
	asks(Setting{Events: &[]string{Received, LowBalance}}, LowBalance, Received)
	asks(Setting{URL: "https://example.net/"}, LowBalance, Received)
	asks(Setting{Events: &[]string{LowBalance}}, LowBalance)
	for name, reason := range map[string]string{Sent: AlwaysEvent, Failed: AlwaysEvent, "sms.read": BadEvent, "": BadEvent} {
		_, err := w.SetEndpoint(t.Context(), 1, Setting{Events: &[]string{Received, name}})
		if refusal, refused := errors.AsType[sms.Refusal](err); !refused || refusal.Reason != reason {
			t.Errorf("%q: %v", name, err)
		}
	}
	asks(Setting{}, LowBalance)
	asks(Setting{Events: &[]string{}})
}

// TestTestOfAskedEvent: an endpoint can be tested with every event.
func TestTestOfAskedEvent(t *testing.T) {
	pool := batchPool(t)
	w := New(pool, quickly())
	ears := newSink(t, nil)
	setEndpoint(t, w, 1, ears.URL)
	for i, name := range eventNames {
		result, err := w.Test(t.Context(), 1, name)
		if err != nil || result.Attempt.Status != 204 || result.Event != name {
			t.Fatalf("%s: %+v, %v", name, result, err)
		}
		if r := ears.requests()[i]; r.header.Get("X-Webhook-Event") != name || r.body != result.Body {
			t.Errorf("%s: %v %s", name, r.header, r.body)
		}
	}
	if _, err := w.Test(t.Context(), 1, "sms.read"); err == nil {
		t.Error("an unknown event was tested")
	}
}

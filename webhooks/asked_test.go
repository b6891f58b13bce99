package webhooks

import (
	"errors"
	"slices"
	"testing"
	"time"

	"intumwa/sms"
)

// TestAskedEvents: a requested event goes to each endpoint that requested it and
// to no other, signed and retried like every event. The bytes of the standard events do
// not depend on requests.
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
		enqueueAll(t, w, []Event{
			{CompanyID: company, MessageID: 1026, Name: Received, At: at, PhoneNumber: "+25779123400",
				Data: ReceivedData{InboundID: 1026, From: "+25779123400", To: "8080", Message: &text, ReceivedAt: Time{at}}},
			{CompanyID: company, MessageID: 1027, Name: LowBalance, At: at,
				Data: LowBalanceData{CompanyID: company, Credits: 98, Threshold: 100}},
			{CompanyID: company, MessageID: 1024, Name: Sent, PhoneNumber: "+25761234500", At: at},
			{CompanyID: company, MessageID: 1025, Name: Failed, PhoneNumber: "+25779123401", At: at}})
	}
	always := []string{
		`{"event":"sms.failed","timestamp":"2026-03-01T08:02:11+00:00","data":{"message_id":1025,` +
			`"phone_number":"+25779123401","status":"sms.failed","sent_at":null,"failed_at":"2026-03-01T08:02:11+00:00"}}`,
		`{"event":"sms.sent","timestamp":"2026-03-01T08:02:11+00:00","data":{"message_id":1024,` +
			`"phone_number":"+25761234500","status":"sms.sent","sent_at":"2026-03-01T08:02:11+00:00","failed_at":null}}`,
	}
	asked := []string{
		`{"event":"balance.low","timestamp":"2026-03-01T08:02:11+00:00","data":{"company_id":2,"credits":98,` +
			`"threshold":100}}`,
		`{"event":"sms.received","timestamp":"2026-03-01T08:02:11+00:00","data":{"inbound_id":1026,"from":"+25779123400",` +
			`"to":"8080","message":"PAY <5000> & \"é\"\n","received_at":"2026-03-01T08:02:11+00:00"}}`,
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
	for _, r := range shop.requests() {
		if !signedBy(e.Secret, r) {
			t.Errorf("%s is not signed", r.body)
		}
		if event := r.header.Get("X-Webhook-Event"); len(r.body) < 12 || r.body[10:10+len(event)] != event {
			t.Errorf("%s is announced as %s", r.body, event)
		}
	}
	page, _, err := w.Deliveries(t.Context(), 2, Filter{Event: Received}, 0, 10)
	if err != nil || len(page) != 1 || page[0].InboundID != 1026 || page[0].MessageID != 0 || page[0].Body != asked[1] {
		t.Errorf("%+v, %v", page, err)
	}
	if found, _, err := w.Deliveries(t.Context(), 2, Filter{MessageID: 1026}, 0, 2); err != nil || len(found) != 0 {
		t.Errorf("of the message 1026: %+v, %v", found, err)
	}
}

// TestEndpointAsks: an endpoint keeps its requested events until it requests others.
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
	for name, reason := range map[string]string{Sent: AlwaysEvent, Failed: AlwaysEvent, "sms.read": BadEvent,
		"": BadEvent} {
		_, err := w.SetEndpoint(t.Context(), 1, Setting{Events: &[]string{Received, name}})
		if refusal, refused := errors.AsType[sms.Refusal](err); !refused || refusal.Reason != reason {
			t.Errorf("%q: %v", name, err)
		}
	}
	asks(Setting{}, LowBalance)
	asks(Setting{Events: &[]string{}})
}

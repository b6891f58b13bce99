package stories

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

// A message is sent, charged, submitted, delivered and reported by webhook; every byte that leaves the gateway is
// checked. A message of several segments arrives whole, and another one fails.
func TestDelivered(t *testing.T) {
	t.Parallel()
	w := play(t, scene{
		carriers: []carrier{{sim: carriersim.Options{ReceiptDelay: 50 * time.Millisecond}}},
		config:   tree{"api": tree{"rate_limit_per_minute": 500}},
	})
	shop := w.company("Isoko", 1000)
	number := w.number()

	a := shop.sends(number, "Amahoro @ {mwese}")
	want := fmt.Sprintf(
		`{"id":"%s","item_count":1,"remaining_items":999,"status":"queued","to":"%s","sender":"Isoko","message":"Message `+
			`queued for delivery."}`, a.ID, number)
	if string(a.body) != want {
		t.Errorf("the answer is %s, want %s", a.body, want)
	}
	for header, want := range map[string]string{"Content-Type": "application/json", "X-RateLimit-Limit": "500",
		"X-RateLimit-Remaining": "499"} {
		if got := a.header.Get(header); got != want {
			t.Errorf("header %s is %q, want %q", header, got, want)
		}
	}
	m := w.becomes(a.ID, "sent")

	submits := w.lumitel.segmentsOf(number)
	if len(submits) != 1 {
		t.Fatalf("the carrier got %d submit_sm, want 1", len(submits))
	}
	theSubmit(t, submits[0], number)
	theWebhook(t, shop.hears(m.MessageID, finalWithin), m,
		`{"event":"sms.sent","timestamp":"%[1]s","data":{"message_id":%[2]d,"phone_number":"%[3]s","status":"sms.sent",`+
			`"sent_at":"%[1]s","failed_at":null}}`, m.SentAt)
	w.eventually(finalWithin, "the webhook's success is recorded",
		func() bool { m = w.message(a.ID); return m.Webhooks[0].State == "delivered" })

	if m.ID != a.ID || m.To != number || m.Sender != "Isoko" || m.Encoding != "gsm7" || m.SegmentCount != 1 || m.Test ||
		m.Carrier != "lumitel" || m.FailedAt != nil {
		t.Errorf("message show: %+v", m)
	}
	if len(m.Segments) != 1 || m.Segments[0].CarrierID != submits[0].ID || m.Segments[0].Link != "lumitel-1" ||
		m.Segments[0].Receipt != "DELIVRD" {
		t.Errorf("message show has segments %+v, want the carrier's id %s", m.Segments, submits[0].ID)
	}
	events := m.events()
	slices.Sort(events) // a receipt may be read before the submit_sm_resp
	if want := []string{"accepted", "receipt", "sent", "submitted"}; !slices.Equal(events, want) {
		t.Errorf("its history is %v, want %v", events, want)
	}
	if len(m.Webhooks) != 1 || len(m.Webhooks[0].Attempts) != 1 || m.Webhooks[0].Attempts[0].Status != http.StatusOK {
		t.Errorf("its webhooks are %+v, want one that succeeded at once", m.Webhooks)
	}

	long, text := w.number(), strings.Repeat("ж", 66)+"😀"+strings.Repeat("ж", 60)
	a = shop.sends(long, text)
	w.becomes(a.ID, "sent")
	if shown := w.lumitel.shown(long); a.ItemCount != 2 || len(w.lumitel.segmentsOf(long)) != 2 || len(shown) != 1 ||
		!shown[0].Complete || shown[0].Text != text {
		t.Errorf("of %d segments the handset shows %+v", a.ItemCount, shown)
	}
	m = w.becomes(shop.sends(w.fated(1), "Amahoro mwese").ID, "failed")
	theWebhook(t, shop.hears(m.MessageID, finalWithin), m,
		`{"event":"sms.failed","timestamp":"%[1]s","data":{"message_id":%[2]d,"phone_number":"%[3]s",`+
			`"status":"sms.failed","sent_at":null,"failed_at":"%[1]s"}}`, m.FailedAt)
	if got, want := shop.entries(), []string{"adjustment 1000", "send -1", "send -2", "send -1"}; !slices.Equal(
		got, want) || shop.credits() != 996 {
		t.Errorf("the ledger is %v with %d credits, want %v", got, shop.credits(), want)
	}
}

// theSubmit checks a submit_sm field by field (rule choices 4.2).
func theSubmit(t *testing.T, s carriersim.Submit, number string) {
	t.Helper()
	if want := (carriersim.Address{TON: 5, NPI: 0, Addr: "Isoko"}); s.Source != want {
		t.Errorf("source is %+v, want %+v", s.Source, want)
	}
	if want := (carriersim.Address{TON: 1, NPI: 1, Addr: number[1:]}); s.Destination != want {
		t.Errorf("destination is %+v, want %+v", s.Destination, want)
	}
	for name, field := range map[string]struct{ got, want any }{
		"service_type":            {s.ServiceType, ""},
		"esm_class":               {s.ESMClass, uint8(0)},
		"protocol_id":             {s.ProtocolID, uint8(0)},
		"priority_flag":           {s.Priority, uint8(0)},
		"schedule_delivery_time":  {s.Schedule, ""},
		"registered_delivery":     {s.RegisteredDelivery, uint8(1)},
		"replace_if_present_flag": {s.ReplaceIfPresent, uint8(0)},
		"data_coding":             {s.DataCoding, uint8(0)},
		"sm_default_msg_id":       {s.DefaultMessageID, uint8(0)},
		// GSM-7, one septet a byte: @ is 0x00, { and } are escaped.
		"short_message": {string(s.ShortMessage), "Amahoro \x00 \x1b\x28mwese\x1b\x29"},
		"text":          {s.Text, "Amahoro @ {mwese}"},
	} {
		if field.got != field.want {
			t.Errorf("%s is %q, want %q", name, field.got, field.want)
		}
	}
	const userMessageReference = 0x0204 // SMPP 3.4, 5.3.2.17: matches a receipt whose submit_sm_resp was lost
	for _, tlv := range s.TLVs {
		if tlv.Tag != userMessageReference || len(tlv.Value) != 2 {
			t.Errorf("there is an optional parameter %#04x of %d bytes", tlv.Tag, len(tlv.Value))
		}
	}
	// The rest of 24 hours.
	if !regexp.MustCompile(`^0000(01000000|002359\d\d)000R$`).MatchString(s.Validity) {
		t.Errorf("validity_period is %q, want 24 hours", s.Validity)
	}
}

// theWebhook checks a webhook byte by byte (rule api 6; rule choices 8.3).
func theWebhook(t *testing.T, c call, m message, format string, at *time.Time) {
	t.Helper()
	if at == nil {
		t.Fatal("the message has no time of its end")
	}
	moment := at.UTC().Format("2006-01-02T15:04:05") + "+00:00"
	if want := fmt.Sprintf(format, moment, m.MessageID, m.To); string(c.body) != want {
		t.Errorf("the webhook is %s, want %s", c.body, want)
	}
	if got, want := c.header.Get("X-Webhook-Event"), c.Event; got != want {
		t.Errorf("X-Webhook-Event is %q, want %q", got, want)
	}
}

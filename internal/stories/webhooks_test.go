package stories

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// One company's endpoint hangs; another's webhooks flow as if it did not.
func TestHangingEndpointDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	w := play(t, scene{config: tree{"webhooks": tree{"timeout": "1s", "retry_delays": []string{"1s", "1s"}}}})
	stuck, shop := w.silentCompany("Isoko", 1000), w.company("Inzu", 1000)
	stuck.listens(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	const messages = 60
	var last string
	for i := range messages {
		if i < 8 { // twice as many as may hang at once
			stuck.sends(w.number(), "Amahoro mwese")
		}
		last = shop.sends(w.number(), "Amahoro twese").ID
	}
	w.settles(finalWithin)
	w.eventually(5*time.Second, "all webhooks of the company that answers", func() bool { return len(shop.webhooks()) == messages })
	m := w.message(last)
	if late := shop.webhooksOf(m.MessageID)[0].at.Sub(*m.SentAt); late > 3*time.Second {
		t.Errorf("the last webhook came %v after its message was sent", late)
	}
	// What hangs is tried again, and given up after the last time.
	m = w.message(stuck.records()[0].ID)
	w.eventually(30*time.Second, "the hanging webhook is given up", func() bool {
		m = w.message(m.ID)
		return m.Webhooks[0].State == "failed"
	})
	if n := len(m.Webhooks[0].Attempts); n != 3 || m.Webhooks[0].Attempts[0].Result != "timeout" {
		t.Errorf("the hanging webhook has attempts %+v, want three that timed out", m.Webhooks[0].Attempts)
	}
}

// An endpoint that fails gets the same webhook again, octet for octet, under
// the same id, at the delays that were agreed.
func TestFailedWebhookIsRepeated(t *testing.T) {
	t.Parallel()
	delays := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
	w := play(t, scene{config: tree{"webhooks": tree{"retry_delays": []string{"1s", "2s", "3s"}}}})
	shop := w.silentCompany("Isoko", 10)
	var calls atomic.Int64
	shop.listens(func(rw http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) {
		case 1:
			rw.WriteHeader(http.StatusInternalServerError)
		case 2:
			http.Redirect(rw, r, "/elsewhere", http.StatusMovedPermanently) // is not followed
		case 3:
			rw.WriteHeader(http.StatusNotFound)
		}
	})
	m := w.becomes(shop.sends(w.number(), "Amahoro mwese").ID, "sent")
	w.eventually(20*time.Second, "the fourth attempt", func() bool { return len(shop.webhooks()) == 4 })
	got := shop.webhooks()
	for i, c := range got[1:] {
		if string(c.body) != string(got[0].body) || c.header.Get("webhook-id") != got[0].header.Get("webhook-id") {
			t.Errorf("attempt %d is %s %s, the first was %s %s", i+2, c.header.Get("webhook-id"), c.body, got[0].header.Get("webhook-id"), got[0].body)
		}
		if waited := c.at.Sub(got[i].at); waited < delays[i]*9/10 || waited > delays[i]+8*time.Second { // on a busy machine
			t.Errorf("attempt %d came %v after the one before, want %v", i+2, waited, delays[i])
		}
	}
	w.eventually(finalWithin, "the success is recorded", func() bool {
		m = w.message(m.ID)
		return m.Webhooks[0].State == "delivered" && len(m.Webhooks[0].Attempts) == 4
	})
}

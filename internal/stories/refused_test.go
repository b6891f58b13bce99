package stories

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"intumwa/tools/carriersim"
)

const failedWebhook = `{"event":"sms.failed","timestamp":"%[1]s","data":{"message_id":%[2]d,"phone_number":"%[3]s","status":"sms.failed","sent_at":null,"failed_at":"%[1]s"}}`

// The carrier takes the message and reports later that it could not be
// delivered. It is paid for all the same.
func TestUndeliverable(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	shop := w.company("Isoko", 10)
	a := shop.sends(w.fated(1), "Amahoro mwese")
	m := w.becomes(a.ID, "failed")
	if m.FailureReason == "" || m.SentAt != nil || len(m.Segments) != 1 || m.Segments[0].Receipt != "UNDELIV" {
		t.Errorf("message show says %+v", m)
	}
	theWebhook(t, shop.hears(m.MessageID, finalWithin), m, failedWebhook, m.FailedAt)
	if got, want := shop.entries(), []string{"adjustment 10", "send -1"}; !slices.Equal(got, want) {
		t.Errorf("the ledger is %v, want %v", got, want)
	}
}

// The carrier refuses the message for good. It is paid for all the same.
func TestRejected(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	shop := w.company("Isoko", 10)
	a := shop.sends(w.fated(2), "Amahoro mwese")
	m := w.becomes(a.ID, "failed")
	if m.FailureReason != "ESME_RINVDSTADR" || len(m.Segments) != 0 {
		t.Errorf("message show says %+v", m)
	}
	theWebhook(t, shop.hears(m.MessageID, finalWithin), m, failedWebhook, m.FailedAt)
	if n := w.lumitel.Stats().Submits; n != 1 {
		t.Errorf("the carrier got %d submit_sm, want 1", n)
	}
	if got, want := shop.entries(), []string{"adjustment 10", "send -1"}; !slices.Equal(got, want) {
		t.Errorf("the ledger is %v, want %v", got, want)
	}
}

// A message that expires with us is paid back, once. One that a carrier took
// or refused for good is not.
func TestExpiredInTheQueueIsRefundedOnce(t *testing.T) {
	t.Parallel()
	w := play(t, scene{
		carriers: []carrier{{config: tree{"receipt_timeout": "1s"}}, {closed: true}},
		config:   tree{"messages": tree{"validity": "6s"}},
	})
	shop := w.company("Isoko", 100)
	kept := map[string]string{ // recipient: what becomes of it
		w.fated(0):  "sent",
		w.fated(1):  "failed", // undeliverable
		w.fated(2):  "failed", // refused for good
		w.fated(7):  "failed", // accepted, and no receipt ever came
		w.fated(14): "failed", // expired with the carrier
	}
	returned := map[string]int{ // recipient: credits paid back
		w.fated(42):                  1, // throttled until its time was up
		w.numberOf(w.carriers[1], 0): 1, // its carrier was never there
	}
	var ids []string
	for number := range kept {
		ids = append(ids, shop.sends(number, "Amahoro mwese").ID)
	}
	for number := range returned {
		ids = append(ids, shop.sends(number, "Amahoro mwese").ID)
	}
	if got := shop.credits(); got != 93 {
		t.Errorf("seven messages left %d of 100 credits", got)
	}
	for _, id := range ids {
		m := w.message(id)
		want := "failed"
		if status, ok := kept[m.To]; ok {
			want = status
		}
		m = w.becomes(id, want)
		w.paidBack()
		refunds := ask[int](w, `SELECT count(*) FROM ledger l JOIN messages m ON m.ulid = l.ref WHERE l.kind = 'refund' AND m.id = $1`, m.MessageID)
		if refunds != returned[m.To] {
			t.Errorf("message %s (%s, %s) was paid back %d times, want %d", m.ID, m.Status, m.FailureReason, refunds, returned[m.To])
		}
		shop.hears(m.MessageID, finalWithin)
	}
	if got := shop.credits(); got != 95 {
		t.Errorf("after two refunds there are %d credits, want 95", got)
	}
}

// Without enough credits nothing is sent and nothing is charged.
func TestInsufficientCredits(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	poor := w.company("Isoko", 2)
	long := string(make161())
	for _, c := range []struct {
		text, refusal string
	}{
		{long + long, "Insufficient SMS credits. This message requires 3 credits."},
		{"Amahoro mwese", ""},
		{long, "Insufficient SMS credits. This message requires 2 credits."},
		{"Amahoro mwese", ""},
		{"Amahoro mwese", "Insufficient SMS credits. This message requires 1 credit."},
	} {
		a := poor.tries(w.number(), c.text)
		want, body := http.StatusOK, ""
		if c.refusal != "" {
			want, body = http.StatusBadRequest, `{"message":"`+c.refusal+`"}`
		}
		if a.status != want || body != "" && string(a.body) != body {
			t.Errorf("%d characters were answered %d %s, want %d %s", len(c.text), a.status, a.body, want, body)
		}
		if a.status == http.StatusOK {
			w.becomes(a.ID, "sent")
		}
	}
	if got, want := poor.entries(), []string{"adjustment 2", "send -1", "send -1"}; !slices.Equal(got, want) {
		t.Errorf("the ledger is %v, want %v", got, want)
	}
	if n := w.lumitel.Stats().Submits; n != 2 {
		t.Errorf("the carrier got %d submit_sm, want 2", n)
	}
	if n := len(poor.records()); n != 2 {
		t.Errorf("%d messages are recorded, want 2", n)
	}
}

// make161 is a text one character too long for a segment.
func make161() []byte {
	text := make([]byte, 161)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	return text
}

// Sixty-four senders spend a balance that is enough for half of what they want.
func TestSixtyFourSendersOnABalanceForHalf(t *testing.T) {
	t.Parallel()
	busy(t)
	const wanted, credits = 2048, 1024
	w := play(t, scene{carriers: []carrier{{sim: carriersim.Options{NoFates: true}}}})
	shop := w.company("Isoko", credits)
	text := word()
	w.secret(text)
	var admitted, refused atomic.Int64
	var lowest atomic.Int64
	lowest.Store(credits)
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for range wanted / 64 {
				switch a := shop.postsMessage(w.gateway, w.number(), text); {
				case a.err == nil && a.status == http.StatusOK:
					admitted.Add(1)
					for was := lowest.Load(); a.RemainingItems < was && !lowest.CompareAndSwap(was, a.RemainingItems); was = lowest.Load() {
					}
				case a.err == nil && a.status == http.StatusBadRequest && a.Message == "Insufficient SMS credits. This message requires 1 credit.":
					refused.Add(1)
				default:
					t.Errorf("answered %d %s %v", a.status, a.body, a.err)
				}
			}
		})
	}
	senders.Wait()
	if admitted.Load() != credits || refused.Load() != wanted-credits || lowest.Load() != 0 || shop.credits() != 0 {
		t.Errorf("of %d, %d were admitted and %d refused on %d credits; the last answer left %d, the balance is %d",
			wanted, admitted.Load(), refused.Load(), credits, lowest.Load(), shop.credits())
	}
	w.settles(settledWithin)
	if n := w.lumitel.Stats().Accepted; n != credits {
		t.Errorf("the carrier took %d messages, want %d", n, credits)
	}
	w.audited()
}

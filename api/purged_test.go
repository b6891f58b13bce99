package api

import (
	"strings"
	"testing"
	"time"

	"intumwa/messages"
)

// TestWhatHasLeft (rule choices 9.3): what an operator had deleted is answered as what never was, and a text that was is empty.
func TestWhatHasLeft(t *testing.T) {
	w := newWorld(t, worldOptions{}).settle()
	purge := func(p messages.Purge, want int64) {
		t.Helper()
		if n, _, err := w.rooms.Messages.Purge(t.Context(), p, 48*time.Hour); err != nil || n != want {
			t.Fatalf("%d of %d %s left: %v", n, want, p, err)
		}
	}
	single := w.sent("live", single("79123456", "ACME", "Bonjour"))
	batch := w.sentBatch("live", bulk("ACME", repeat(3, item("79123456", "Bonjour"))...))
	w.exec(`DELETE FROM outbox`)
	w.exec(`UPDATE messages SET status = 1, sent_at = now(), created_at = now() - interval '3 days'`)
	credits := w.do("live", "GET", "/v1/balance", "").body

	purge(messages.PurgeBodies, 4)
	for path, texts := range map[string]int{"/v1/sms/" + single: 1, "/v1/sms": 4, "/v1/batches/" + batch + "/messages": 3} {
		if got := w.do("live", "GET", path, ""); got.status != 200 || strings.Count(got.body, `"message":""`) != texts {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	purge(messages.PurgeMessages, 4)
	for gone, never := range map[string]string{
		"/v1/sms/" + single:                      "/v1/sms/01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"/v1/sms/batches/" + batch:               "/v1/sms/batches/01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"/v1/batches/" + batch + "/messages":     "/v1/batches/01ARZ3NDEKTSV4RRFFQ69G5FAV/messages",
		"/v1/sms?batch_id=" + batch:              "/v1/sms?batch_id=01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"/v1/sms?phone_number=%2B25779123456":    "/v1/sms?phone_number=%2B25779000000",
		"/v1/sms?status=sent&from=" + yesteryear: "/v1/sms?status=failed&from=" + yesteryear,
		"/v1/sms/1":                              "/v1/sms/999",
	} {
		if got, want := w.do("live", "GET", gone, ""), w.do("live", "GET", never, ""); got.status != want.status || got.body != want.body {
			t.Errorf("%s: %d %s, %s: %d %s", gone, got.status, got.body, never, want.status, want.body)
		}
	}
	if got := w.do("live", "GET", "/v1/sms/"+single, ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.do("live", "GET", "/v1/balance", ""); got.body != credits {
		t.Errorf("%s, and before %s", got.body, credits)
	}
}

const yesteryear = "2020-01-01T00:00:00Z"

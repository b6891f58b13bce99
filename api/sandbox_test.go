package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/intake"
	"intumwa/sms"
	"intumwa/webhooks"
)

// hooked runs the webhooks and the sandbox, in two processes as it were, and answers
// what a customer's endpoint was told, by the message's number, once its signature is
// verified.
func (w *world) hooked(customer string) (told func() map[int64][]string) {
	w.t.Helper()
	var mu sync.Mutex
	heard := map[int64][]string{}
	var secret string
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		var event struct {
			Event string
			Data  struct {
				MessageID int64  `json:"message_id"`
				Number    string `json:"phone_number"`
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if err := json.Unmarshal(body, &event); err != nil || r.Header.Get("X-Webhook-Signature") != hex.EncodeToString(mac.Sum(nil)) {
			w.t.Errorf("%v, signed %q: %s", err, r.Header.Get("X-Webhook-Signature"), body)
		}
		heard[event.Data.MessageID] = append(heard[event.Data.MessageID], event.Event+" "+event.Data.Number)
	}))
	set, err := w.rooms.Webhooks.SetEndpoint(w.t.Context(), w.company[customer], webhooks.Setting{URL: endpoint.URL})
	if err != nil {
		w.t.Fatal(err)
	}
	secret = set.Secret
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.rooms.Webhooks.Run(ctx) })
	for range 2 {
		running.Go(func() { _ = dispatcher.NewSandbox(w.pool, w.rooms.Webhooks, nil, nil).Run(ctx) })
	}
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
		endpoint.Close()
	})
	return func() map[int64][]string {
		mu.Lock()
		defer mu.Unlock()
		all := make(map[int64][]string, len(heard))
		for id, events := range heard {
			all[id] = events
		}
		return all
	}
}

// A message to a number of the sandbox goes the way of any other, but for the carrier:
// accepted, final as its number says, told by a signed webhook, once. It costs nothing
// and needs nothing but a company.
func TestSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	told := w.hooked("new")
	ids := map[int64]sms.SandboxFate{}
	for _, fate := range sms.SandboxFates() {
		for range 3 {
			body := single(string(fate.Number), testSender, "Rehearsal")
			got := w.do("new", "POST", "/v1/sms", body, "Prefer", "include=message_id")
			var answer struct {
				MessageID int64 `json:"message_id"`
			}
			if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != 200 {
				t.Fatalf("%d %v %s", got.status, err, got.body)
			}
			sameJSON(t, got.body, object("id", "ULID", "item_count", 1, "remaining_items", 5, "status", "queued", "to", string(fate.Number),
				"sender", testSender, "message", "Message queued for delivery.", "message_id", answer.MessageID))
			ids[answer.MessageID] = fate
		}
	}
	if n := w.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Errorf("%d messages wait for a carrier", n)
	}
	if audit, err := w.rooms.Messages.Audit(t.Context(), time.Hour); err != nil || audit.StuckPending != 0 {
		t.Errorf("the audit finds %+v, %v", audit, err)
	}
	w.exec(`UPDATE sandbox SET due_at = now() WHERE due_at > now() + interval '5 s'`) // nobody waits half a minute here
	deadline := time.Now().Add(20 * time.Second)
	for len(told()) < len(ids) && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	for id, fate := range ids {
		if events := told()[id]; fmt.Sprint(events) != fmt.Sprintf("[sms.%s %s]", fate.Status, fate.Number) {
			t.Errorf("%s: told %v", fate.Number, events)
		}
		got := w.do("new", "GET", fmt.Sprintf("/v1/sms/%d", id), "").body
		reason := `"failure_reason":null`
		if fate.Reason != "" {
			reason = `"failure_reason":"` + fate.Reason + `"`
		}
		for _, want := range []string{`"status":"` + fate.Status.String() + `"`, `"test":true`, `"carrier":"(sandbox)"`, reason} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s is not in %s", fate.Number, want, got)
			}
		}
	}
	// Nothing was paid, by the company or by the pool.
	if left, err := w.rooms.Ledger.Balance(t.Context(), w.company["new"]); err != nil || left != 1000 {
		t.Errorf("%d credits left, %v", left, err)
	}
	if n := w.count(`SELECT count(*) FROM balances WHERE test_used <> 0`) + w.count(`SELECT count(*) FROM ledger WHERE kind <> 'adjustment'`); n != 0 {
		t.Errorf("%d rows say that something was paid", n)
	}
	list := w.do("new", "GET", "/v1/sms?phone_number=01000002", "")
	if n := strings.Count(list.body, `"to":"+25701000002"`); n != 3 {
		t.Errorf("%d of 3 are listed: %s", n, list.body)
	}
}

// Where the sandbox is not asked for, its numbers are as invalid as they ever were.
func TestSandboxNumbersElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	const number, text = "+25701000001", "The phone number must be a valid Burundi (+257) number."
	got := w.do("live", "POST", "/v1/sms", single(number, "ACME", "x"))
	sameJSON(t, got.body, failsFirst("phone_number", text))
	got = w.do("live", "POST", "/v1/sms", single("+25701000006", testSender, "x"))
	sameJSON(t, got.body, failsFirst("phone_number", text))
	got = w.do("live", "POST", "/v1/sms", object("phone_number", number, "sender", testSender))
	sameJSON(t, got.body, failsFirst("message", "The message content is required."))
	got = w.do("live", "POST", "/v1/sms", object("phone_number", number, "sender", "no sender", "message", "x"))
	sameJSON(t, got.body, failsFirst("phone_number", text, "sender", "The sender must be 1-11 alphanumeric characters."))
	got = w.do("live", "POST", "/v1/sms/bulk", bulk("ACME", item(number, "x")))
	sameJSON(t, got.body, failsBatch("messages.0.phone_number", "The messages.0.phone_number field must be a valid Burundi (+257) number."))
	got = w.do("live", "POST", "/v1/sms/bulk", bulk(testSender, item(number, "x")))
	sameJSON(t, got.body, failsBatch("messages.0.phone_number", "The messages.0.phone_number field must be a valid Burundi (+257) number."))
	got = w.do("nobody", "POST", "/v1/sms", single(number, testSender, "x"))
	sameJSON(t, got.body, messageJSON("You must create a company before sending messages."))
	// The test mode stays as it is.
	got = w.do("live", "POST", "/v1/sms", single("+25779123456", testSender, "x"))
	sameJSON(t, got.body, messageJSON("Test messages can only be sent to your verified test number."))
	if n := w.count(`SELECT count(*) FROM messages`); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// What costs nothing is bounded: so many a user and day, whatever the key, and a
// repetition is none.
func TestSandboxHasItsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Intake: func(o *intake.Options) { o.SandboxADay = 2 }}).settle()
	body := single("01000001", testSender, "x")
	for range 3 {
		if got := w.do("live", "POST", "/v1/sms", body, keyHeader, "same"); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := w.do("live", "POST", "/v1/sms", body); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	got := w.do("live", "POST", "/v1/sms", body)
	sameJSON(t, got.body, messageJSON("Sandbox quota exceeded."))
	if code := got.header.Get("X-Error-Code"); code != "sandbox_quota" {
		t.Errorf("code %q", code)
	}
	if got := w.do("other", "POST", "/v1/sms", body); got.status != 200 {
		t.Errorf("another user: %d %s", got.status, got.body)
	}
	w.exec(`UPDATE sandbox SET created_at = now() - interval '25 h', settled = true`)
	if got := w.do("live", "POST", "/v1/sms", body); got.status != 200 {
		t.Errorf("a day later: %d %s", got.status, got.body)
	}
	if n, err := w.rooms.Messages.ForgetSandbox(t.Context()); err != nil || n != 3 {
		t.Errorf("%d forgotten, %v", n, err)
	}
}

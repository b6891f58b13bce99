package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/intake"
	"intumwa/sms"
)

// A message to a sandbox number is accepted, shown and listed like any other. It needs only a company, costs nothing
// and reaches no carrier.
func TestSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	for _, fate := range sms.SandboxFates() {
		got := w.do("new", "POST", "/v1/sms", single(string(fate.Number), testSender, "Rehearsal"), "Prefer",
			"include=message_id")
		var answer struct {
			MessageID int64 `json:"message_id"`
		}
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != 200 {
			t.Fatalf("%d %v %s", got.status, err, got.body)
		}
		sameJSON(t, got.body, object("id", "ULID", "item_count", 1, "remaining_items", 5, "status", "queued", "to",
			string(fate.Number),
			"sender", testSender, "message", "Message queued for delivery.", "message_id", answer.MessageID))
		shown := w.do("new", "GET", fmt.Sprintf("/v1/sms/%d", answer.MessageID), "").body
		for _, want := range []string{`"status":"pending"`, `"test":true`, `"carrier":"(sandbox)"`} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: %s is not in %s", fate.Number, want, shown)
			}
		}
	}
	if n := w.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Errorf("%d messages wait for a carrier", n)
	}
	if audit, err := w.deps.Statistics.Audit(t.Context(), time.Hour); err != nil || audit.StuckPending != 0 {
		t.Errorf("the audit finds %+v, %v", audit, err)
	}
	if left, err := w.deps.Ledger.Balance(t.Context(), w.company["new"]); err != nil || left != 1000 {
		t.Errorf("%d credits left, %v", left, err)
	}
	if n := w.count(`SELECT count(*) FROM balances WHERE test_used <> 0`) +
		w.count(`SELECT count(*) FROM ledger WHERE kind <> 'adjustment'`); n != 0 {
		t.Errorf("%d rows record a payment", n)
	}
	list := w.do("new", "GET", "/v1/sms?phone_number=01000002", "")
	if n := strings.Count(list.body, `"to":"+25701000002"`); n != 1 {
		t.Errorf("%d are listed, not 1: %s", n, list.body)
	}
}

// Elsewhere sandbox numbers are invalid.
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
	sameJSON(t, got.body, failsBatch("messages.0.phone_number",
		"The messages.0.phone_number field must be a valid Burundi (+257) number."))
	got = w.do("live", "POST", "/v1/sms/bulk", bulk(testSender, item(number, "x")))
	sameJSON(t, got.body, failsBatch("messages.0.phone_number",
		"The messages.0.phone_number field must be a valid Burundi (+257) number."))
	got = w.do("nocompany", "POST", "/v1/sms", single(number, testSender, "x"))
	sameJSON(t, got.body, messageJSON("You must create a company before sending messages."))
	// Test mode is unchanged.
	got = w.do("live", "POST", "/v1/sms", single("+25779123456", testSender, "x"))
	sameJSON(t, got.body, messageJSON("Test messages can only be sent to your verified test number."))
	if n := w.count(`SELECT count(*) FROM messages`); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// Sandbox messages are limited per user and day, for all keys together; repeated requests do not count.
func TestSandboxIsLimitedPerDay(t *testing.T) {
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
	if n, err := w.deps.Messages.ForgetSandbox(t.Context()); err != nil || n != 3 {
		t.Errorf("%d forgotten, %v", n, err)
	}
}

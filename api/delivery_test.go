package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/webhooks"
)

// recordEvents records an event for each of a customer's messages 1 to n. Every third is given up, every third
// delivered.
func (w *world) recordEvents(customer string, n int64) {
	w.t.Helper()
	ctx, company := w.t.Context(), w.company[customer]
	if _, err := w.deps.Webhooks.SetEndpoint(ctx, company, webhooks.Setting{URL: "http://127.0.0.1:1/hook"}); err != nil {
		w.t.Fatal(err)
	}
	at := time.Now()
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		var events []webhooks.Event
		for i := range n {
			name := webhooks.Sent
			if i%2 == 1 {
				name = webhooks.Failed
			}
			events = append(events, webhooks.Event{CompanyID: company, MessageID: 1 + i, Name: name, PhoneNumber: "+25761000001",
				At: at})
		}
		return w.deps.Webhooks.Enqueue(ctx, tx, events)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`UPDATE webhook_deliveries SET delivered = true, due = NULL,
		attempts = json_build_array(json_build_object('at', now(), 'ms', 3, 'status', 200, 'result', '2xx'))
		WHERE id / 8 % 3 = 1`)
	w.exec(`UPDATE webhook_deliveries SET due = 'infinity', tries = 6, given_up_at = now(), attempts = '[
		{"at":"2026-03-01T08:00:02.512Z","ms":41,"status":503,"result":"5xx","excerpt":"a\u0007way\nnow"},
		{"at":"2026-03-01T08:00:12.6Z","ms":5,"result":"dns","error":"the host name does not resolve"}]' WHERE id / 8 % 3 ` +
		`= 2`)
}

const failedDelivery = `{"id":16,"webhook_id":"evt_16","message_id":2,"event":"sms.failed","state":"failed",` +
	`"attempt_count":2,
	"created_at":"TIME","next_at":null,"finished_at":"TIME"}`

func TestDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.recordEvents("live", 3)
	// Message 2's event has the number 2*8+1.
	want := strings.NewReplacer(`"id":16`, `"id":17`, `evt_16`, `evt_17`).Replace(failedDelivery)
	detail := func(delivery string) string {
		return strings.TrimSuffix(delivery, "}") + `,"body":"BODY","attempts":[
			{"number":1,"at":"TIME","result":"5xx","status":503,"duration_ms":41,"error":null,"answer":"away now"},
			{"number":2,"at":"TIME","result":"dns","status":null,"duration_ms":5,"error":"the host name does not resolve",` +
			`"answer":null}]}`
	}
	masked := func(body string) string {
		var v map[string]any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if text, _ := v["body"].(string); !strings.HasPrefix(text, `{"event":"sms.failed"`) {
			t.Errorf("body %q", text)
		}
		v["body"] = "BODY"
		return encode(v)
	}
	for _, id := range []string{"17", "evt_17"} {
		got := w.do("live", "GET", "/v1/webhook-deliveries/"+id, "")
		if got.status != 200 {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		sameJSON(t, masked(got.body), detail(want))
		if !strings.Contains(got.body, `"at":"2026-03-01T08:00:02.512+00:00"`) {
			t.Errorf("%s", got.body)
		}
	}
	got := w.do("live", "POST", "/v1/webhook-deliveries/17/resend", "")
	if got.status != 200 {
		t.Fatalf("%d: %s", got.status, got.body)
	}
	pending := strings.NewReplacer(`"failed","attempt_count"`, `"pending","attempt_count"`,
		`"next_at":null,"finished_at":"TIME"`, `"next_at":"TIME","finished_at":null`).Replace(want)
	sameJSON(t, masked(got.body), detail(pending))
	if n := w.count(`SELECT count(*) FROM webhook_undelivered WHERE id = 17 AND tries = 0 AND due <= now()`); n != 1 {
		t.Error("it is not due")
	}
	for _, wrong := range []struct{ method, path, allow string }{
		{"POST", "/v1/webhook-deliveries", "GET, HEAD"}, {"DELETE", "/v1/webhook-deliveries/17", "GET, HEAD"},
		{"GET", "/v1/webhook-deliveries/17/resend", "POST"},
	} {
		if got := w.do("live", wrong.method, wrong.path, ""); got.status != 405 || got.header.Get("Allow") != wrong.allow {
			t.Errorf("%s %s: %d, Allow %q", wrong.method, wrong.path, got.status, got.header.Get("Allow"))
		}
	}
}

// Another company's deliveries cannot be read or sent again.
func TestDeliveriesTenancy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.recordEvents("live", 3)
	for _, id := range []string{"17", "evt_17", "0", "-17", "99", "nope", "18446744073709551633", "evt_test_17",
		"%2e%2e"} {
		for _, try := range []struct{ method, path string }{{"GET", ""}, {"POST", "/resend"}} {
			got := w.do("other", try.method, "/v1/webhook-deliveries/"+id+try.path, "")
			if got.status != 404 {
				t.Errorf("%s %s%s answers %d: %s", try.method, id, try.path, got.status, got.body)
			}
			sameJSON(t, got.body, messageJSON("Not found."))
		}
	}
	for _, query := range []string{"", "?message_id=2", "?state=failed"} {
		w.gets("other", "/v1/webhook-deliveries"+query, 200, `{"data":[],"next_cursor":null}`)
	}
	if n := w.count(`SELECT count(*) FROM webhook_undelivered WHERE due = 'infinity'`); n != 1 {
		t.Error("another company's delivery was sent again")
	}
}

func TestListDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.recordEvents("live", 12)
	type delivery struct {
		MessageID int64 `json:"message_id"`
	}
	ids := func(list []delivery) (ids string) {
		for _, d := range list {
			ids += fmt.Sprint(" ", d.MessageID)
		}
		return ids
	}
	w.exec(`UPDATE webhook_deliveries SET at = now() - interval '1 day' WHERE id / 8 <= 6`)
	since := url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339))
	for query, want := range map[string]string{
		"":                              " 12 11 10 9 8 7 6 5 4 3 2 1",
		"state=failed":                  " 11 8 5 2",
		"state=delivered":               " 10 7 4 1",
		"state=pending":                 " 12 9 6 3",
		"event=sms.failed":              " 12 10 8 6 4 2",
		"state=failed&event=sms.failed": " 8 2",
		"message_id=5":                  " 5",
		"message_id=5&state=pending":    "",
		"message_id=99":                 "",
		"since=" + since:                " 12 11 10 9 8 7",
		"state=failed&since=" + since:   " 11 8",
	} {
		if got, _ := listed[delivery](w, "live", "/v1/webhook-deliveries?"+query); ids(got) != want {
			t.Errorf("%q lists%s, want%s", query, ids(got), want)
		}
		if all, _ := walk[delivery](w, "live", "/v1/webhook-deliveries?limit=3&"+query); ids(all) != want {
			t.Errorf("%q in pages lists%s, want%s", query, ids(all), want)
		}
	}
	for query, want := range map[string]string{
		"state=exhausted": failsFirst("state", "The state must be pending, delivered or failed."),
		"event=sms.pending": failsFirst(
			"event", "The event must be sms.sent, sms.failed, sms.received, balance.low, batch.finished or "+
				"verification.finished."),
		"message_id=x": failsFirst(
			"message_id", "The message_id must be a whole number above 0 or a ULID."),
		"message_id=0": failsFirst(
			"message_id", "The message_id must be a whole number above 0 or a ULID."),
		"since=yesterday": failsFirst(
			"since", "The since must be a date and time such as 2026-03-01T10:00:00+02:00."),
		"limit=101":                          failsFirst("limit", "The limit must be between 1 and 100."),
		"cursor=x":                           failsFirst("cursor", "The cursor is not valid."),
		"cursor=" + cursorOf(messageList, 5): failsFirst("cursor", "The cursor is not valid."), // of the other list
		"state=failed&cursor=" + cursorOf(deliveryList, 5): failsFirst("cursor", "The cursor is not valid."),
	} {
		w.gets("live", "/v1/webhook-deliveries?"+query, 422, want)
	}
}

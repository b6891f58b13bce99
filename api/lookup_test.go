package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// sent sends a message and returns its ULID.
func (w *world) sent(customer, body string) string {
	w.t.Helper()
	got := w.do(customer, "POST", "/v1/sms", body)
	if got.status != 200 {
		w.t.Fatalf("sending: %s", got.body)
	}
	var result struct{ ID string }
	if err := json.Unmarshal([]byte(got.body), &result); err != nil {
		w.t.Fatal(err)
	}
	return result.ID
}

func (w *world) sentBatch(customer, body string) string {
	w.t.Helper()
	got := w.do(customer, "POST", "/v1/sms/bulk", body)
	if got.status != 200 {
		w.t.Fatalf("sending: %s", got.body)
	}
	var result struct {
		BatchID string `json:"batch_id"`
	}
	if err := json.Unmarshal([]byte(got.body), &result); err != nil {
		w.t.Fatal(err)
	}
	return result.BatchID
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	testenv.Exec(w.t, w.pool, statement, args...)
}

const view = `{"id":"ULID","message_id":1,"batch_id":null,"status":"pending","to":"+25779123456","sender":"ACME",` +
	`"message":"Bonjour <&>","encoding":"gsm7",
	"segments":1,"test":false,"carrier":"leo","failure_reason":null,"created_at":"TIME","sent_at":null,"failed_at":null,
	"timeline":[{"at":"TIME","event":"accepted","detail":null}]}`

func TestGetMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	id := w.sent("live", single("79123456", "ACME", "Bonjour <&>"))
	for _, written := range []string{id, strings.ToLower(id)} {
		got := w.do("live", "GET", "/v1/sms/"+written, "")
		if got.status != 200 || !strings.Contains(got.body, id) || !strings.Contains(got.body, "<&>") {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		sameJSON(t, got.body, view)
	}
	at := time.Date(2026, 3, 1, 8, 0, 2, 480_000_000, time.UTC)
	w.exec(`UPDATE messages SET status = 2, failed_at = $1, failure_reason = 'UNDELIV 027',
		created_at = $1::timestamptz - interval '3 s'`, at)
	w.exec(`DELETE FROM outbox`)
	w.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at, state, receipt, error,
		receipt_at)
		VALUES (1, 1, 1, 'leo', 'leo-1', 'abc', $1::timestamptz - interval '1 s', 2, 'UNDELIV', '027', $1)`, at)
	got := w.do("live", "GET", "/v1/sms/"+id, "")
	want := strings.NewReplacer(`"pending"`, `"failed"`, `"failure_reason":null`, `"failure_reason":"UNDELIV 027"`,
		`"failed_at":null`, `"failed_at":"TIME"`,
		`"timeline":[{"at":"TIME","event":"accepted","detail":null}]`,
		`"timeline":[{"at":"TIME","event":"accepted","detail":null},
		{"at":"TIME","event":"submitted","detail":"segment 1 of 1 by leo-1"},{"at":"TIME","event":"receipt",`+
			`"detail":"segment 1: UNDELIV"},
		{"at":"TIME","event":"failed","detail":"UNDELIV 027"}]`).Replace(view)
	sameJSON(t, got.body, want)
	for _, exact := range []string{`"failed_at":"2026-03-01T08:00:02+00:00"`, `"at":"2026-03-01T08:00:02.480+00:00"`} {
		if !strings.Contains(got.body, exact) {
			t.Errorf("%s is not in %s", exact, got.body)
		}
	}
}

// Another company's messages and batches are not found.
func TestTenancy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	id := w.sent("live", single("79123456", "ACME", "x"))
	batch := w.sentBatch("live", bulk("ACME", item("79123456", "x")))
	for _, path := range []string{"/v1/sms/" + id, "/v1/sms/batches/" + batch, "/v1/sms/" + batch, "/v1/sms/batches/" + id,
		"/v1/sms/1", "/v1/sms/nope",
		"/v1/sms/batches/nope", "/v1/sms/01JNA2K3M4N5P6Q7R8S9T0V1W2", "/v1/sms/81JNA2K3M4N5P6Q7R8S9T0V1W2"} {
		w.gets("other", path, 404, messageJSON("Not found."))
	}
	for _, path := range []string{"/v1/sms", "/v1/sms?batch_id=" + batch} {
		w.gets("other", path, 200, `{"data":[],"next_cursor":null}`)
	}
}

func TestGetBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	id := w.sentBatch("live", bulk("ACME", item("79123456", "x"), item("79123457", long(161)), item("61123456", "x")))
	w.exec(`UPDATE messages SET status = 1, sent_at = now() WHERE id = 1`)
	w.exec(`UPDATE messages SET status = 2, failed_at = now() WHERE id = 3`)
	got := w.do("live", "GET", "/v1/sms/batches/"+strings.ToLower(id), "")
	sameJSON(t, got.body, `{"batch_id":"ULID","status":"queued","sender":"ACME","recipients_count":3,"item_count":4,
		"counts":{"pending":1,"sent":1,"failed":1},"created_at":"TIME","state":"sending"}`)
	if !strings.Contains(got.body, id) {
		t.Errorf("%s is not in %s", id, got.body)
	}
}

// A batch is scheduled until its time, sending while a message is pending, then finished, or cancelled if all its
// messages are.
func TestBatchState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	batch := bulk("ACME", item("79123456", "x"), item("79123457", "y"))
	id := w.sentBatch("live", with(batch, "send_at", in(time.Hour)))
	is := func(want string) {
		t.Helper()
		if got := w.do("live", "GET", "/v1/sms/batches/"+id, "").body; !strings.Contains(got, `"status":"queued"`) ||
			!strings.Contains(got, `"state":"`+want+`"`) {
			t.Errorf("want %s: %s", want, got)
		}
	}
	is("scheduled")
	w.exec(`UPDATE batches SET send_at = now() - interval '1 second'`)
	is("sending")
	w.exec(`UPDATE messages SET status = 2, failed_at = now(), failure_reason = 'cancelled' WHERE id = 1`)
	is("sending")
	w.exec(`UPDATE messages SET status = 1, sent_at = now() WHERE id = 2`)
	is("finished")
	id = w.sentBatch("live", with(batch, "send_at", in(time.Hour)))
	w.do("live", "DELETE", "/v1/sms/batches/"+id, "")
	is("cancelled")
	id = w.sentBatch("live", batch)
	is("sending")
	w.exec(`UPDATE messages SET status = 2, failed_at = now(), failure_reason = 'UNDELIV' WHERE status = 0`)
	is("finished")
}

func TestBalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.sent("live", single("79123456", "ACME", long(161)))
	w.gets("live", "/v1/balance", 200, `{"credits":998,"unit":"credits"}`)
}

// listed returns a page of a list and the cursor of the next one.
func listed[R any](w *world, customer, path string) (rows []R, next string) {
	w.t.Helper()
	got := w.do(customer, "GET", path, "")
	var page struct {
		Data       []R
		NextCursor *string `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
		w.t.Fatalf("%s: %d %s, %v", path, got.status, got.body, err)
	}
	if page.NextCursor != nil {
		next = *page.NextCursor
	}
	return page.Data, next
}

// walk reads a list to its end; path must have a query.
func walk[R any](w *world, customer, path string) (all []R, pages int) {
	w.t.Helper()
	for next := ""; ; {
		from := path
		if next != "" {
			from += "&cursor=" + next
		}
		var rows []R
		rows, next = listed[R](w, customer, from)
		all = append(all, rows...)
		if pages++; next == "" || pages > 20 {
			return all, pages
		}
	}
}

// gets fails unless the look-up has this response.
func (w *world) gets(customer, path string, status int, want string) {
	w.t.Helper()
	got := w.do(customer, "GET", path, "")
	if got.status != status {
		w.t.Errorf("%s: %d %s, want %d", path, got.status, got.body, status)
	}
	sameJSON(w.t, got.body, want)
}

func TestListMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	var items []any
	for _, text := range strings.Split("abcdefghij", "") {
		items = append(items, item("79123456", text))
	}
	batch := w.sentBatch("live", bulk("ACME", items...))
	w.sent("live", single("61234567", "ACME", "k"))
	w.sent("other", single("61234567", "ACME", "not mine"))
	w.exec(`UPDATE messages SET status = 1, sent_at = now() WHERE body IN ('b', 'd', 'k')`)
	w.exec(`UPDATE messages SET created_at = timestamptz '2026-03-01 00:00+02' + id * interval '1 day'`)
	for _, c := range []struct {
		query, want string
		pages       int
	}{
		{"", "kjihgfedcba", 1}, {"limit=4", "kjihgfedcba", 3}, {"limit=11", "kjihgfedcba", 1}, {"limit=1", "kjihgfedcba", 11},
		{"status=sent", "kdb", 1}, {"status=sent&limit=2", "kdb", 2}, {"status=failed", "", 1},
		{"status=pending&limit=8", "jihgfeca", 1},
		{"phone_number=61+23+45+67", "k", 1}, {"phone_number=%2B25761234567", "k", 1}, {"phone_number=79123457", "", 1},
		{"batch_id=" + strings.ToLower(batch), "jihgfedcba", 1}, {"batch_id=" + batch + "&limit=3&status=sent", "db", 1},
		{"batch_id=" + batch + "&limit=5", "jihgfedcba", 2}, {"batch_id=01JNA2K3M4N5P6Q7R8S9T0V1W2", "", 1},
		{"from=2026-03-10T00:00:00%2B02:00", "kji", 1}, {"from=2026-03-10T00:00:00+02:00", "kji", 1},
		{"to=2026-03-04T00:00:00%2B02:00", "ba", 1},
		{"from=2026-03-03&to=2026-03-05T00:00:00Z", "dc", 1}, {"from=2027-01-01", "", 1}, {"to=2020-01-01", "", 1},
		{"limit=&cursor=", "kjihgfedcba", 1}, {"from=2026-03-03t00:00:00z&to=2026-03-05T00:00:00z", "dc", 1},
	} {
		t.Run(c.query, func(t *testing.T) {
			w.t = t
			all, pages := walk[struct{ Message string }](w, "live", "/v1/sms?"+c.query)
			got := ""
			for _, m := range all {
				got += m.Message
			}
			if got != c.want || pages != c.pages {
				t.Errorf("%q in %d pages, not %q in %d", got, pages, c.want, c.pages)
			}
		})
	}
	w.t = t
	const time = " must be a date and time such as 2026-03-01T10:00:00+02:00."
	for query, want := range map[string]string{
		"status=&batch_id=": failsFirst("batch_id", "The batch_id parameter must not be empty.", "status",
			"The status parameter must not be empty."),
		"client_reference=": failsFirst("client_reference", "The client_reference parameter must not be empty."),
		"phone_number=":     failsFirst("phone_number", "The phone_number parameter must not be empty."),
		"from=&to=": failsFirst("from", "The from parameter must not be empty.", "to",
			"The to parameter must not be empty."),
		"status=queued": failsFirst("status", "The status must be pending, sent or failed."),
		"batch_id=1":    failsFirst("batch_id", "The batch_id must be a ULID."),
		"phone_number=1&limit=x": failsFirst("phone_number", "The phone number must be a valid Burundi (+257) number.",
			"limit", "The limit must be between 1 and 100."),
		"from=yesterday": failsFirst("from", "The from"+time), "to=2026-13-01": failsFirst("to", "The to"+time),
		"limit=0":                 failsFirst("limit", "The limit must be between 1 and 100."),
		"limit=101":               failsFirst("limit", "The limit must be between 1 and 100."),
		"cursor=abc":              failsFirst("cursor", "The cursor is not valid."),
		"cursor=AAAAAAAAAAEAAAAA": failsFirst("cursor", "The cursor is not valid."),
		"status=sent&cursor=" + cursorOf(messageList, 5): failsFirst("cursor", "The cursor is not valid."),
	} {
		w.gets("live", "/v1/sms?"+query, 422, want)
	}
}

// cursorOf is a cursor of a list without filters.
func cursorOf(l list, last int64) string {
	q := &query{of: l}
	return q.cursor(last)
}

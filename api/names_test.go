package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"intumwa/intake"
)

// Each of a message's two ids finds it, for its own company only.
func TestMessageIsFoundByEitherID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	id := w.sent("live", single("79123456", "ACME", "Bonjour"))
	w.recordEvents("live", 1)
	for _, name := range []string{id, strings.ToLower(id), "1"} {
		if got := w.do("live", "GET", "/v1/sms/"+name, ""); got.status != 200 ||
			!strings.Contains(got.body, `"id":"`+id+`","message_id":1,`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if got := w.do("live", "GET", "/v1/webhook-deliveries?message_id="+name, ""); got.status != 200 ||
			!strings.Contains(got.body, `"message_id":1,`) {
			t.Errorf("deliveries of %s: %d %s", name, got.status, got.body)
		}
		if got := w.do("other", "GET", "/v1/sms/"+name, ""); got.status != 404 {
			t.Errorf("%s of another company: %d %s", name, got.status, got.body)
		}
		w.gets("other", "/v1/webhook-deliveries?message_id="+name, 200, `{"data":[],"next_cursor":null}`)
	}
	for _, name := range []string{"0", "-1", "+1", "2", "1.0", "9223372036854775808", "01JNA2K3M4N5P6Q7R8S9T0V1W2"} {
		if got := w.do("live", "GET", "/v1/sms/"+url.PathEscape(name), ""); got.status != 404 ||
			got.header.Get("X-Error-Code") != "not_found" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	w.gets("live", "/v1/webhook-deliveries?message_id=one", 422,
		failsFirst("message_id", "The message_id must be a whole number above 0 or a ULID."))
}

// The messages of a batch, page by page, with both ids.
func TestBatchMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	var items []any
	for i := range 5 {
		items = append(items, item(fmt.Sprintf("7912340%d", i), "x"))
	}
	batch, second := w.sentBatch("live", bulk("ACME", items...)), w.sentBatch("live", bulk("ACME", items...))
	w.exec(`UPDATE messages SET status = 1 WHERE id = 2`)
	path := "/v1/batches/" + batch + "/messages?"
	read := func(query string) (ids []int64) {
		t.Helper()
		all, _ := walk[struct {
			ID        string
			MessageID int64  `json:"message_id"`
			BatchID   string `json:"batch_id"`
		}](w, "live", path+query)
		for _, m := range all {
			if m.BatchID != batch || !anyULID.MatchString(m.ID) {
				t.Errorf("%+v", m)
			}
			ids = append(ids, m.MessageID)
		}
		return ids
	}
	all := read("limit=2")
	_, next := listed[any](w, "live", path+"limit=2")
	if got := w.do("live", "GET", "/v1/batches/"+second+"/messages?limit=2&cursor="+next, ""); got.status != 422 {
		t.Errorf("a cursor in another batch: %d %s", got.status, got.body)
	}
	if fmt.Sprint(all) != "[5 4 3 2 1]" {
		t.Errorf("pages %v", all)
	}
	if ids := read("status=sent"); fmt.Sprint(ids) != "[2]" {
		t.Errorf("sent: %v", ids)
	}
	if ids := read("phone_number=79123404"); fmt.Sprint(ids) != "[5]" {
		t.Errorf("of one number: %v", ids)
	}
	for customer, path := range map[string]string{"other": batch, "live": "01JNA2K3M4N5P6Q7R8S9T0V1W2"} {
		if got := w.do(customer, "GET", "/v1/batches/"+path+"/messages", ""); got.status != 404 {
			t.Errorf("%s, %s: %d", customer, path, got.status)
		}
	}
	if got := w.do("live", "GET", "/v1/batches/1/messages", ""); got.status != 404 {
		t.Errorf("no ULID: %d", got.status)
	}
}

// An unknown parameter of a look-up is an error that names it: a mistyped filter would filter nothing.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	id, batch := w.sent("live", single("79123456", "ACME", "x")), w.sentBatch("live", bulk("ACME", item("79123456", "x")))
	w.recordEvents("live", 1)
	for _, path := range []string{"/v1/sms", "/v1/sms/" + id, "/v1/sms/1", "/v1/sms/batches/" + batch, "/v1/batches/" +
		batch + "/messages", "/v1/balance",
		"/v1/test-number", "/v1/webhook-deliveries", "/v1/webhook-deliveries/8"} {
		if got := w.do("live", "GET", path, ""); got.status != 200 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		got := w.do("live", "GET", path+"?statsu=sent", "")
		if got.status != 422 || got.header.Get("X-Error-Code") != "parameter_unknown" {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
		sameJSON(t, got.body, failsFirst("statsu", "The statsu parameter is not known."))
		w.gets("live", path+"?a=%zz", 422, failsFirst("query", "The query string is not valid."))
	}
	w.gets("live", "/v1/sms?message_id=1&limit=0&b=", 422,
		fails("The b parameter is not known.", "b", "The b parameter is not known.",
			"message_id", "The message_id parameter is not known.", "limit", "The limit must be between 1 and 100."))
	// Sends ignore parameters.
	if got := w.do("live", "POST", "/v1/sms?statsu=sent", single("79123456", "ACME", "x")); got.status != 200 {
		t.Errorf("a send with a parameter: %d %s", got.status, got.body)
	}
}

// With Prefer: include=message_id the response has the message's number, also when it is repeated; without it the
// response has no number.
func TestPreferMessageID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	body := single("79123456", "ACME", "x")
	for _, c := range []struct {
		headers []string
		want    bool
	}{
		{nil, false},
		{[]string{"Prefer", "include=message_id"}, true},
		{[]string{"Prefer", `respond-async, Include="message_id"; x=1`}, true},
		{[]string{"Prefer", "include=message_ids"}, false},
		{[]string{"Prefer", "exclude=message_id"}, false},
		{[]string{"Prefer", "message_id"}, false},
		{[]string{keyHeader, "first", "Prefer", "include=message_id"}, true},
		{[]string{keyHeader, "first"}, false}, // repeated, as stored
		{[]string{keyHeader, "first", "Prefer", "include=message_id"}, true},
	} {
		got := w.do("live", "POST", "/v1/sms", body, c.headers...)
		var answer map[string]any
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != 200 {
			t.Fatalf("%v: %d %s", c.headers, got.status, got.body)
		}
		number, given := answer["message_id"]
		if given != c.want || (got.header.Get("Preference-Applied") == "include=message_id") != c.want {
			t.Errorf("%v: %s %v", c.headers, got.body, got.header)
		}
		if given {
			look := w.do("live", "GET", fmt.Sprintf("/v1/sms/%.0f", number), "")
			if !strings.Contains(look.body, fmt.Sprint(answer["id"])) {
				t.Errorf("%v: the number is %v: %s", c.headers, number, look.body)
			}
			if before, _, _ := strings.Cut(got.body, `,"message_id"`); !strings.HasSuffix(
				before, `"message":"Message queued for delivery."`) {
				t.Errorf("the rest is not as ever: %s", got.body)
			}
		} else if len(answer) != 7 {
			t.Errorf("%v: %s", c.headers, got.body)
		}
	}
	if n := w.count(`SELECT count(*) FROM messages`); n != 7 {
		t.Errorf("%d messages", n)
	}
}

// lines is a log for tests to read.
type lines struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// A request has one id in its response and in the log: the client's own, if it is valid.
func TestRequestID(t *testing.T) {
	t.Parallel()
	log := &lines{}
	handler := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w := newWorld(t, worldOptions{Options: Options{Log: handler},
		Intake: func(o *intake.Options) { o.Log = handler }}).settle()
	for _, path := range []string{"/docs", "/docs/style.css", "/v1/openapi.json", "/nowhere", "/v1/balance"} {
		got := w.do("", "GET", path, "", "X-Request-Id", "my-own.name:1=2/3+4@5_6")
		if id := got.header.Get("X-Request-Id"); id != "my-own.name:1=2/3+4@5_6" {
			t.Errorf("%s: %q", path, id)
		}
	}
	for _, id := range []string{strings.Repeat("a", 128), "01JNA2K3M4N5P6Q7R8S9T0V1W2"} {
		if got := w.do("live", "GET", "/v1/balance", "", "X-Request-Id", id).header.Get("X-Request-Id"); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	for _, id := range []string{"", strings.Repeat("a", 129), "two words", "é", "a;b", `a"b`, "<script>", "%0a"} {
		if got := w.do("live", "GET", "/v1/balance", "", "X-Request-Id", id).header.Get("X-Request-Id"); got == id ||
			!anyULID.MatchString(got) {
			t.Errorf("%q became %q", id, got)
		}
	}
	w.do("live", "POST", "/v1/sms", single("79123456", "ACME", "x"), "X-Request-Id", "of-a-send")
	w.do("live", "POST", "/v1/sms", single("79123456", "NONE", "x"), "X-Request-Id", "of-a-refusal")
	w.pool.Close()
	if got := w.do("live", "GET", "/v1/balance", "", "X-Request-Id", "of-an-outage"); got.status != 503 {
		t.Fatalf("without a database: %d", got.status)
	}
	for _, want := range []string{`msg="message accepted"`, `request_id=of-a-send`,
		`request_id=of-a-refusal method=POST route=/v1/sms status=400 code=sender_not_found`,
		`event=request_failed`, `request_id=of-an-outage`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in the log:\n%s", want, log)
		}
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "message accepted") && !strings.Contains(line, "request_id=of-a-send") {
			t.Errorf("a message's line does not name its request: %s", line)
		}
	}
}

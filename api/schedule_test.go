package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/intake"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

// Texts of rule choices 12.1 and 12.2.
const (
	referenceText = "The client_reference must contain printable characters only."
	referenceLong = "The client_reference must not exceed 64 characters."
	referenceType = "The client_reference must be a string."
	centerText    = "The cost_center must contain printable characters only."
	centerLong    = "The cost_center must not exceed 64 characters."
	centerType    = "The cost_center must be a string."
	sendText      = "The send_at must be a date and time such as 2026-03-01T10:00:00+02:00."
	pastText      = "The send_at must not be in the past."
	farText       = "The send_at must be at most 30 days ahead."
	expireText    = "The expire_at must be a date and time such as 2026-03-01T10:00:00+02:00."
	earlyText     = "The expire_at must be after the time of sending."
	lateText      = "The expire_at must be at most 3 days after the time of sending."
)

// uuidOf returns a ULID in the database's form.
func uuidOf(t *testing.T, text string) pgtype.UUID {
	t.Helper()
	id, err := ulid.ParseStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	return pgtype.UUID{Bytes: id, Valid: true}
}

// in returns a time from now in the API's form.
func in(d time.Duration) string { return time.Now().Add(d).In(sms.Burundi).Format(time.RFC3339) }

// with adds fields to a request.
func with(body string, pairs ...any) string {
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		panic(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i].(string)] = pairs[i+1]
	}
	return encode(fields)
}

// rule choices 12.1, 12.2
func TestGoldenSchedule(t *testing.T) {
	t.Parallel()
	const number, day = "+25779123456", 24 * time.Hour
	plain := single(number, "ACME", "x")
	ok := object("id", "ULID", "item_count", 1, "remaining_items", 9, "status", "queued", "to", number, "sender", "ACME",
		"message", "Message queued for delivery.")
	batch := bulk("ACME", item(number, "x"))
	okBatch := object("batch_id", "ULID", "status", "queued", "sender", "ACME", "recipients_count", 1, "item_count", 1,
		"remaining_items", 9)
	template := object("sender", "ACME", "template", "x", "recipients",
		[]any{map[string]any{"phone_number": number, "variables": map[string]any{}}})
	one := func(name, body string) golden { return golden{name, "live", 10, body, 200, ok, ""} }
	wrong := func(name, body string, texts ...string) golden {
		return golden{name, "live", 0, body, 422, failsFirst(texts...), ""}
	}
	cases := []golden{
		one("a reference", with(plain, "client_reference", "facture n° 42 – 日本")),
		one("a reference of 64", with(plain, "client_reference", strings.Repeat("é", 64))),
		one("no reference", with(plain, "client_reference", nil)),
		one("an empty reference", with(plain, "client_reference", "")),
		one("a blank reference", with(plain, "client_reference", " \u2003\t")),
		one("a no-break space", with(plain, "client_reference", "n°\u00a042\u202f000")),
		one("joined emoji", with(plain, "client_reference", "👩\u200d👧 ❤\ufe0f 🏳\ufe0f\u200d🌈")),
		one("a word with a non-joiner", with(plain, "client_reference", "می\u200cخواهم")),
		one("later", with(plain, "send_at", in(time.Hour))),
		one("a moment ago", with(plain, "send_at", in(-20*time.Second))),
		one("in 30 days", with(plain, "send_at", in(30*day-time.Minute))),
		one("in UTC", with(plain, "send_at", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))),
		one("in lower case", with(plain, "send_at", strings.ToLower(time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))),
		one("with a fraction", with(plain, "send_at", time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.999Z"))),
		one("no time", with(plain, "send_at", nil, "expire_at", nil)),
		one("expires", with(plain, "expire_at", in(time.Hour))),
		one("expires later", with(plain, "send_at", in(20*day), "expire_at", in(23*day-time.Minute))),

		one("a cost centre", with(plain, "cost_center", "IT – 2026")),
		one("a cost centre of 64", with(plain, "cost_center", strings.Repeat("é", 64))),
		one("no cost centre", with(plain, "cost_center", nil)),
		one("an empty cost centre", with(plain, "cost_center", "")),

		wrong("a cost centre of 65", with(plain, "cost_center", strings.Repeat("é", 65)), "cost_center", centerLong),
		wrong("a cost centre with a line break", with(plain, "cost_center", "a\nb"), "cost_center", centerText),
		wrong("a cost centre with DEL", with(plain, "cost_center", "a\x7f"), "cost_center", centerText),
		wrong("a number as a cost centre", with(plain, "cost_center", 42), "cost_center", centerType),
		wrong("both names", with(plain, "cost_center", 42, "client_reference", 42), "client_reference", referenceType,
			"cost_center", centerType),
		wrong("65 characters", with(plain, "client_reference", strings.Repeat("é", 65)), "client_reference", referenceLong),
		wrong("a line break", with(plain, "client_reference", "a\nb"), "client_reference", referenceText),
		wrong("a text that turns", with(plain, "client_reference", "a\u202eb"), "client_reference", referenceText),
		wrong("a line separator", with(plain, "client_reference", "a\u2028b"), "client_reference", referenceText),
		wrong("a private character", with(plain, "client_reference", "a\ue000b"), "client_reference", referenceText),
		wrong("a character that does not exist", with(plain, "client_reference", "a\u0378b"), "client_reference",
			referenceText),
		wrong("a zero-width space", with(plain, "client_reference", "a\u200bb"), "client_reference", referenceText),
		wrong("a joiner alone", with(plain, "client_reference", "\u200d"), "client_reference", referenceText),
		wrong("a joiner at the end", with(plain, "client_reference", "a\u200d"), "client_reference", referenceText),
		wrong("U+0000", with(plain, "client_reference", "a\x00"), "client_reference", referenceText),
		wrong("a number as a reference", with(plain, "client_reference", 42), "client_reference", referenceType),
		wrong("a list as a reference", with(plain, "client_reference", []int{1}), "client_reference", referenceType),
		wrong("an empty time", with(plain, "send_at", ""), "send_at", sendText),
		wrong("a blank time", with(plain, "expire_at", " "), "expire_at", expireText),
		wrong("an hour of one digit", with(plain, "send_at", "2030-03-01T1:00:00+02:00"), "send_at", sendText),
		wrong("a date", with(plain, "send_at", "2030-03-01"), "send_at", sendText),
		wrong("no offset", with(plain, "send_at", "2030-03-01T10:00:00"), "send_at", sendText),
		wrong("Unix seconds", with(plain, "send_at", 1_900_000_000), "send_at", sendText),
		wrong("a comma", with(plain, "send_at", "2030-03-01T10:00:00,5+02:00"), "send_at", sendText),
		wrong("no such day", with(plain, "send_at", "2030-02-30T10:00:00+02:00"), "send_at", sendText),
		wrong("past", with(plain, "send_at", in(-2*time.Minute)), "send_at", pastText),
		wrong("the year 1", with(plain, "send_at", "0001-01-01T00:00:00Z"), "send_at", pastText),
		wrong("far", with(plain, "send_at", in(30*day+time.Hour)), "send_at", farText),
		wrong("expires some time", with(plain, "expire_at", "tomorrow"), "expire_at", expireText),
		wrong("expired", with(plain, "expire_at", in(-time.Second)), "expire_at", earlyText),
		wrong("expires before", with(plain, "send_at", in(2*time.Hour), "expire_at", in(time.Hour)), "expire_at", earlyText),
		wrong("expires late", with(plain, "expire_at", in(3*day+time.Hour)), "expire_at", lateText),
		wrong("expires late, later", with(plain, "send_at", in(day), "expire_at", in(4*day+time.Hour)), "expire_at",
			lateText),
		wrong("both", with(plain, "send_at", "x", "expire_at", "y"), "send_at", sendText, "expire_at", expireText),
		wrong("one for a wrong other", with(plain, "send_at", in(-time.Hour), "expire_at", in(-time.Hour)), "send_at",
			pastText),
		wrong("all", with(single(nil, "!", ""), "client_reference", "\a", "send_at", "x", "expire_at", "y"),
			"phone_number", "The phone number is required.", "sender", "The sender must be 1-11 alphanumeric characters.",
			"message", "The message content is required.",
			"client_reference", referenceText, "send_at", sendText, "expire_at", expireText),
	}
	for _, c := range []struct{ path, body, list string }{{"/v1/sms/bulk", batch, "messages"},
		{"/v1/sms/template", template, "recipients"}} {
		referenced := func(reference any) string {
			return strings.Replace(c.body, `"phone_number"`, `"client_reference":`+encode(reference)+`,"phone_number"`, 1)
		}
		itemText := func(end string) string { return "The " + c.list + ".0.client_reference field must " + end }
		own := func(key string, value any) string {
			return strings.Replace(c.body, `"phone_number"`, encode(key)+`:`+encode(value)+`,"phone_number"`, 1)
		}
		misplaced := func(key string, value any) golden {
			return golden{c.list + ", " + key + " of an item", "live", 0, own(key, value), 422,
				failsBatch(c.list+".0."+key, "The "+c.list+".0."+key+" field must be given for the whole request."), c.path}
		}
		cases = append(cases,
			golden{c.list + ", a reference", "live", 10, referenced("42"), 200, okBatch, c.path},
			golden{c.list + ", later", "live", 10, with(c.body, "send_at", in(time.Hour), "expire_at", in(2*time.Hour)), 200,
				okBatch, c.path},
			golden{c.list + ", none", "live", 10, with(referenced(nil), "send_at", nil, "expire_at", nil), 200, okBatch, c.path},
			golden{c.list + ", a long reference", "live", 0, referenced(strings.Repeat("a", 65)), 422,
				failsBatch(c.list+".0.client_reference", itemText("not exceed 64 characters.")), c.path},
			golden{c.list + ", a control character", "live", 0, referenced("\a"), 422,
				failsBatch(c.list+".0.client_reference", itemText("contain printable characters only.")), c.path},
			golden{c.list + ", a cost centre", "live", 10, with(c.body, "cost_center", "IT"), 200, okBatch, c.path},
			golden{c.list + ", a long cost centre", "live", 0, with(c.body, "cost_center", strings.Repeat("a", 65)), 422,
				failsBatch("cost_center", centerLong), c.path},
			golden{c.list + ", a control character in a cost centre", "live", 0, with(c.body, "cost_center", "\a"), 422,
				failsBatch("cost_center", centerText), c.path},
			golden{c.list + ", a list as a cost centre", "live", 0, with(c.body, "cost_center", []int{1}), 422,
				failsBatch("cost_center", centerType), c.path},
			golden{c.list + ", the same cost centre of an item", "live", 10, with(own("cost_center", "IT"), "cost_center", "IT"),
				200, okBatch, c.path},
			misplaced("cost_center", "IT"),
			misplaced("send_at", in(time.Hour)),
			misplaced("send_at", ""),
			misplaced("expire_at", 7),
			golden{c.list + ", a sender of an item", "live", 10, own("sender", "NEWS"), 200, okBatch, c.path},
			golden{c.list + ", the same sender of an item", "live", 10, own("sender", "ACME"), 200, okBatch, c.path},
			golden{c.list + ", no time of an item", "live", 10, own("send_at", nil), 200, okBatch, c.path},
			golden{c.list + ", an unknown field of an item", "live", 10, own("priority", 1), 200, okBatch, c.path},
			golden{c.list + ", a number as a reference", "live", 0, referenced(7), 422,
				failsBatch(c.list+".0.client_reference", itemText("be a string.")), c.path},
			golden{c.list + ", past", "live", 0, with(c.body, "send_at", in(-time.Hour)), 422, failsBatch("send_at", pastText),
				c.path},
			golden{c.list + ", all wrong", "live", 0, with(referenced("\a"), "send_at", 5, "expire_at", false), 422,
				failsBatch("send_at", sendText, "expire_at", expireText, c.list+".0.client_reference",
					itemText("contain printable characters only.")), c.path},
		)
	}
	runGolden(t, "/v1/sms", cases)
}

// A cost centre is on every message of its request, in look-ups and lists, and filters them. Other messages are shown
// without one. A repetition with another one is another request. rule choices 12.1
func TestCostCenter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	one := with(single("79123456", "ACME", "x"), "cost_center", " IT & co")
	id := w.sent("live", one)
	batch := w.sentBatch("live", with(bulk("ACME", item("79123456", "a"), item("61123456", "b")), "cost_center", "HR"))
	template := with(object("sender", "ACME", "template", "x", "recipients",
		[]any{map[string]any{"phone_number": "79123456", "variables": map[string]any{}}}), "cost_center", "HR")
	if got := w.do("live", "POST", "/v1/sms/template", template); got.status != 200 {
		t.Fatal(got.body)
	}
	plain := w.sent("live", single("79123456", "ACME", "x"))
	if got := w.do("live", "GET", "/v1/sms/"+id, "").body; !strings.Contains(got, `"cost_center":" IT & co"`) {
		t.Errorf("its message is %s", got)
	}
	for _, path := range []string{"/v1/sms/" + plain, "/v1/sms/batches/" + batch} {
		if got := w.do("live", "GET", path, "").body; strings.Contains(got, "cost_center") {
			t.Errorf("%s: %s", path, got)
		}
	}
	for query, want := range map[string]int{"cost_center=HR": 3, "cost_center=+IT+%26+co": 1, "cost_center=IT+%26+co": 0,
		"cost_center=HR&limit=1":     1,
		"cost_center=HR&status=sent": 0, "cost_center=HR&batch_id=" + batch: 2, "cost_center=hr": 0} {
		got, _ := listed[struct {
			CostCenter string `json:"cost_center"`
		}](w, "live", "/v1/sms?"+query)
		if len(got) != want || want > 0 && got[0].CostCenter == "" {
			t.Errorf("%s finds %v", query, got)
		}
	}
	if got, _ := listed[struct{}](w, "other", "/v1/sms?cost_center=HR"); len(got) > 0 {
		t.Errorf("another company finds %v", got)
	}
	w.gets("live", "/v1/sms?cost_center=", 422, failsFirst("cost_center", "The cost_center parameter must not be empty."))
	w.gets("live", "/v1/sms?cost_center="+strings.Repeat("a", 65), 422, failsFirst("cost_center", centerLong))
	_, next := listed[struct{}](w, "live", "/v1/sms?cost_center=HR&limit=1")
	w.gets("live", "/v1/sms?cost_center=IT&cursor="+next, 422, failsFirst("cursor", "The cursor is not valid."))
	if n := w.count(`SELECT count(*) FROM messages WHERE channel IS NOT NULL`); n != 0 {
		t.Errorf("%d messages of the API have a channel", n)
	}
}

// A scheduled message is charged at once and shown with its times; others are shown without.
func TestSchedulesInLookups(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	send, expire := in(2*time.Hour), in(3*time.Hour)
	id := w.sent("live", with(single("79123456", "ACME", "x"), "client_reference", "a & b", "send_at", send, "expire_at",
		expire))
	batch := w.sentBatch("live", with(bulk("ACME", item("79123456", "x"), item("61123456", "x")), "send_at", send))
	plain := w.sent("live", single("79123456", "ACME", "x"))
	if n := w.count(`SELECT count(*) FROM scheduled`); n != 3 {
		t.Errorf("%d are scheduled", n)
	}
	if n := w.count(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d are on their way", n)
	}
	if n := w.count(`SELECT credits FROM balances WHERE company_id = $1`, w.company["live"]); n != 1000-4 {
		t.Errorf("%d credits are left", n)
	}
	utc := func(text string) string {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return timestamp(moment)
	}
	got := w.do("live", "GET", "/v1/sms/"+id, "").body
	for _, want := range []string{`"status":"pending"`, `"client_reference":"a & b"`, `"send_at":"` + utc(send) + `"`,
		`"expire_at":"` + utc(expire) + `"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if got := w.do("live", "GET", "/v1/sms/batches/"+batch, "").body; !strings.Contains(got, `"send_at":"`+utc(send)+
		`"`) || strings.Contains(got, "expire_at") {
		t.Errorf("the batch: %s", got)
	}
	for _, word := range []string{"client_reference", "send_at", "expire_at"} {
		if got := w.do("live", "GET", "/v1/sms/"+plain, "").body; strings.Contains(got, word) {
			t.Errorf("%s is in %s", word, got)
		}
	}
	for reference, want := range map[string]string{url.QueryEscape("a & b"): "[{" + id + "}]", "a": "[]", "A+%26+b": "[]",
		"a+%26+b+": "[]"} {
		if got, _ := listed[struct{ ID string }](w, "live", "/v1/sms?client_reference="+reference); fmt.Sprint(got) != want {
			t.Errorf("%s finds %v, want %s", reference, got, want)
		}
	}
	const empty = "The client_reference parameter must not be empty."
	for query, text := range map[string]string{strings.Repeat("a", 65): referenceLong, "a%0Ab": referenceText,
		"a%FFb": referenceText, "a%00": referenceText, "%ED%A0%80": referenceText, "%20": empty, "": empty} {
		w.gets("live", "/v1/sms?client_reference="+query, 422, failsFirst("client_reference", text))
	}
}

// rule choices 12.4
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	later := in(time.Hour)
	scheduled := w.sent("live", with(single("79123456", "ACME", long(161)), "send_at", later))
	queued := w.sent("live", single("79123456", "ACME", "x"))
	flying := w.sent("live", single("79123456", "ACME", "x"))
	test := w.sent("live", with(single("61234567", testSender, "x"), "send_at", later))
	sandbox := w.sent("live", with(single("+25701000001", testSender, "x"), "send_at", later))
	batch := w.sentBatch("live", with(bulk("ACME", item("79123456", "x"), item("79123456", "x"), item("79123456", "x")),
		"send_at", later))
	other := w.sentBatch("live", bulk("ACME", item("79123456", "x"), item("79123456", "x")))
	w.exec(`UPDATE outbox SET claimed_by = 7 WHERE message_id = (SELECT id FROM messages WHERE ulid = $1)`,
		uuidOf(t, flying))
	w.exec(`UPDATE outbox SET claimed_by = 7 WHERE message_id = (SELECT min(m.id) FROM messages m
		JOIN batches b ON b.id = m.batch_id WHERE b.ulid = $1)`, uuidOf(t, other))
	if n := w.count(`SELECT credits FROM balances WHERE company_id = $1`, w.company["live"]); n != 1000-2-2-5 {
		t.Fatalf("%d credits are left", n)
	}
	message := func(n int) string { return fmt.Sprintf(`{"id":"ULID","cancelled":%d,"credits_returned":%d}`, n, n) }
	of := func(n, credits int) string {
		return fmt.Sprintf(`{"batch_id":"ULID","cancelled":%d,"credits_returned":%d}`, n, credits)
	}
	for _, c := range []struct{ as, path, want string }{
		{"other", "/v1/sms/" + scheduled, ""},
		{"other", "/v1/sms/batches/" + batch, ""},
		{"other", "/v1/batches/" + batch, ""},
		{"live", "/v1/sms/" + batch, ""},
		{"live", "/v1/sms/batches/" + scheduled, ""},
		{"live", "/v1/sms/nope", ""},
		{"live", "/v1/sms/" + scheduled, `{"id":"ULID","cancelled":1,"credits_returned":2}`},
		{"live", "/v1/sms/" + scheduled, message(0)},
		{"live", "/v1/sms/" + strings.ToLower(queued), message(1)},
		{"live", "/v1/sms/" + flying, message(0)},
		{"live", "/v1/sms/" + test, `{"id":"ULID","cancelled":1,"credits_returned":0}`},
		{"live", "/v1/sms/" + sandbox, `{"id":"ULID","cancelled":1,"credits_returned":0}`},
		{"live", "/v1/sms/" + sandbox, message(0)},
		{"live", "/v1/sms/batches/" + batch, of(3, 3)},
		{"live", "/v1/batches/" + batch, of(0, 0)},
		{"live", "/v1/batches/" + other, of(1, 1)},
	} {
		got := w.do(c.as, "DELETE", c.path, "")
		if c.want == "" {
			if got.status != 404 {
				t.Errorf("%s cancels %s: %d %s", c.as, c.path, got.status, got.body)
			}
			continue
		}
		if got.status != 200 {
			t.Errorf("%s: %d", c.path, got.status)
		}
		sameJSON(t, got.body, c.want)
	}
	if n := w.count(`SELECT credits FROM balances WHERE company_id = $1`, w.company["live"]); n != 1000-2 {
		t.Errorf("%d credits are left, want all except those in flight", n)
	}
	if n := w.count(`SELECT sum(test_used) FROM balances`); n != 0 {
		t.Errorf("%d segments of the test pool are used", n)
	}
	got := w.do("live", "GET", "/v1/sms/"+scheduled, "").body
	if !strings.Contains(got, `"status":"failed"`) || !strings.Contains(got, `"failure_reason":"cancelled"`) {
		t.Errorf("it is %s", got)
	}
	if got := w.do("live", "DELETE", "/v1/sms/"+scheduled+"?now=1", ""); got.status != 422 {
		t.Errorf("a parameter: %d", got.status)
	}
	if got := w.do("live", "DELETE", "/v1/sms/bulk", ""); got.status != 405 || got.header.Get("Allow") != "POST" {
		t.Errorf("DELETE /v1/sms/bulk: %d, Allow %q", got.status, got.header.Get("Allow"))
	}
}

// Cancelling responds when the credits can be spent. While another transaction locks the balance it waits for a limited
// time, then responds with 503 and changes nothing.
func TestCancelledCreditsAreSpendable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{Lookups: 20, LookupsPerUser: 20}}).settle()
	w.credits("live", 20)
	var ids []string
	for range 20 {
		ids = append(ids, w.sent("live", with(single("79123456", "ACME", "x"), "send_at", in(time.Hour))))
	}
	waiting := func() bool { return testenv.Blocked(t, w.pool) }
	lock := func() (release func()) {
		tx, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{`SET LOCAL idle_in_transaction_session_timeout = 0`,
			`SELECT FROM balances FOR UPDATE`} {
			if _, err := tx.Exec(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		return func() { _ = tx.Rollback(context.Background()) }
	}

	release := lock()
	got := w.do("live", "DELETE", "/v1/sms/"+ids[0], "")
	if left := w.count(`SELECT count(*) FROM scheduled`); got.status != 503 || got.header.Get("Retry-After") == "" ||
		left != 20 {
		t.Errorf("with a balance that stays locked: %d %s, %d messages are scheduled; want 503 and 20", got.status, got.body,
			left)
	}
	replies := make(chan reply, len(ids))
	go func() { replies <- w.do("live", "DELETE", "/v1/sms/"+ids[0], "") }()
	for deadline := time.Now().Add(10 * time.Second); !waiting() && len(replies) == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	release()
	if got := <-replies; got.status != 200 || !strings.Contains(got.body, `"credits_returned":1`) {
		t.Errorf("with a balance that was locked for a moment: %d %s", got.status, got.body)
	}

	for _, id := range ids[1:] {
		go func() { replies <- w.do("live", "DELETE", "/v1/sms/"+id, "") }()
	}
	for range ids[1:] {
		if got := <-replies; got.status != 200 || !strings.Contains(got.body, `"credits_returned":1`) {
			t.Errorf("one of many: %d %s", got.status, got.body)
		}
	}
	w.sentBatch("live", bulk("ACME", repeat(20, item("79123456", "x"))...))
}

// rule choices 12.3
func TestQuietHours(t *testing.T) {
	t.Parallel()
	now := time.Now().In(sms.Burundi)
	clock := func(d time.Duration) string { return now.Add(d).Format("15:04") }
	hours := clock(-2*time.Hour) + "-" + clock(2*time.Hour)
	quiet, err := sms.ParseQuietHours(hours)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := quiet.End(now)
	w := newWorld(t, worldOptions{Intake: func(o *intake.Options) { o.QuietHours = quiet }}).settle()
	one := bulk("ACME", item("79123456", "x"))
	due := func(batch string) (at time.Time, scheduled bool) {
		t.Helper()
		if w.count(`SELECT count(*) FROM scheduled s JOIN messages m ON m.id = s.message_id
			JOIN batches b ON b.id = m.batch_id WHERE b.ulid = $1`, uuidOf(t, batch)) == 0 {
			return at, false
		}
		if err := w.pool.QueryRow(t.Context(), `SELECT s.due_at FROM scheduled s JOIN messages m ON m.id = s.message_id
			JOIN batches b ON b.id = m.batch_id
			WHERE b.ulid = $1 AND b.send_at = s.due_at AND m.send_at = s.due_at`, uuidOf(t, batch)).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at, true
	}
	batch := w.sentBatch("live", one)
	if at, scheduled := due(batch); !scheduled || !at.Equal(end) {
		t.Errorf("a batch waits until %v, %v; want %v", at, scheduled, end)
	}
	if got := w.do("live", "GET", "/v1/sms/batches/"+batch, "").body; !strings.Contains(got, `"send_at":"`+timestamp(end)+
		`"`) {
		t.Errorf("its look-up: %s", got)
	}
	if at, scheduled := due(w.sentBatch("live", with(one, "send_at", in(time.Hour)))); !scheduled || !at.Equal(end) {
		t.Errorf("one for within them waits until %v, want %v", at, end)
	}
	later := in(5 * time.Hour)
	if at, scheduled := due(w.sentBatch("live", with(one, "send_at", later))); !scheduled ||
		at.In(sms.Burundi).Format(time.RFC3339) != later {
		t.Errorf("one for later waits until %v, want %s", at, later)
	}
	before := w.count(`SELECT count(*) FROM scheduled`)
	w.sent("live", single("79123456", "ACME", "x"))
	if n := w.count(`SELECT count(*) FROM scheduled`); n != before {
		t.Error("a single message waits")
	}
	recorded := w.recorded()
	got := w.do("live", "POST", "/v1/sms/bulk", with(one, "expire_at", in(time.Hour)))
	sameJSON(t, got.body, messageJSON("The messages would expire before the quiet hours end."))
	if got.status != 400 || got.header.Get("X-Error-Code") != "quiet_hours" || w.recorded() != recorded {
		t.Errorf("one that expires in them: %d %s", got.status, got.header.Get("X-Error-Code"))
	}
	for own, want := range map[string]bool{"none": false, clock(-5*time.Hour) + "-" + clock(-4*time.Hour): false,
		hours: true} {
		w.exec(`UPDATE companies SET quiet_hours = $2 WHERE id = $1`, w.company["live"], own)
		w.deps.Holders.ForgetUser(fmt.Sprint(w.users["live"]))
		if _, scheduled := due(w.sentBatch("live", one)); scheduled != want {
			t.Errorf("with %s of its own, scheduled is %v", own, scheduled)
		}
	}
}

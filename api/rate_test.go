package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rateHeaders are the names as they go over the wire.
func rateHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"} {
		if text := h.Get(name); text != "" {
			out[name] = text
		}
	}
	return out
}

// One window for the three endpoints together; whatever the answer, it counts,
// except 401, 404 and 405.
func TestRateLimit(t *testing.T) {
	w := newWorld(t, worldOptions{Limit: 10}).settle()
	left := 10
	for _, c := range []struct {
		path, body string
		status     int
		headers    []string
	}{
		{"/v1/sms", single("79123456", "ACME", "x"), 200, nil},
		{"/v1/sms/bulk", bulk("ACME", item("79123456", "x")), 200, nil},
		{"/v1/sms/template", templated("ACME", "x", to("79123456", vars{})), 200, nil},
		{"/v1/sms", "{}", 422, nil},
		{"/v1/sms/bulk", bulk("NONE", item("79123456", "x")), 400, nil},
		{"/v1/sms/template", "{", 400, nil},
		{"/v1/sms", "{}", 415, []string{"Content-Type", "text/plain"}},
		{"/v1/sms", "{}", 400, []string{keyHeader, "a b"}},
	} {
		got := w.do("live", "POST", c.path, c.body, c.headers...)
		left--
		h := rateHeaders(got.header)
		if got.status != c.status || h["X-Ratelimit-Limit"] != "10" || h["X-Ratelimit-Remaining"] != strconv.Itoa(left) || len(h) != 2 {
			t.Errorf("%s: %d %v, not %d and %d left", c.path, got.status, h, c.status, left)
		}
	}
	for _, path := range []string{"/v1/sms", "/v1/balance", "/v1/sms/bulk"} { // not counted
		if h := rateHeaders(w.do("live", "GET", path, "").header); len(h) != 0 {
			t.Errorf("GET %s has %v", path, h)
		}
	}
	w.do("live", "POST", "/v1/sms/preview", `{"message":"x"}`)
	if h := rateHeaders(w.do("", "POST", "/v1/sms", "{}").header); len(h) != 0 {
		t.Errorf("401 has %v", h)
	}
	for range 2 {
		w.do("live", "POST", "/v1/sms", "{}")
	}
	for _, path := range []string{"/v1/sms", "/v1/sms/bulk", "/v1/sms/template"} {
		got := w.do("live", "POST", path, "{}")
		sameJSON(t, got.body, messageJSON("Too Many Attempts."))
		h := rateHeaders(got.header)
		wait, _ := strconv.Atoi(h["Retry-After"])
		reset, _ := strconv.ParseInt(h["X-Ratelimit-Reset"], 10, 64)
		end := time.Now().Add(time.Duration(wait) * time.Second).Unix()
		if got.status != 429 || h["X-Ratelimit-Limit"] != "10" || h["X-Ratelimit-Remaining"] != "0" || wait < 1 || wait > 60 || reset < end-1 || reset > end+1 {
			t.Errorf("%d %v", got.status, h)
		}
	}
	if got := w.do("other", "POST", "/v1/sms", "{}"); got.status != 422 {
		t.Errorf("another user: %d", got.status)
	}
}

// The rate's headers are where they are promised, on every status of the sends once
// the token is known, and nowhere else; Retry-After is on every 429 and 503.
func TestRateHeadersEverywhere(t *testing.T) {
	w := newWorld(t, worldOptions{Limit: 1000, FailedLogins: 5, Options: Options{MaxBody: 1 << 16}}).settle()
	id, batch := w.sent("live", single("79123456", "ACME", "x")), w.sentBatch("live", bulk("ACME", item("79123456", "x")))
	w.told("live", 1)
	check := func(got reply, what string, status int, want string) {
		t.Helper()
		names := slices.Sorted(maps.Keys(rateHeaders(got.header)))
		if got.status != status || strings.Join(names, " ") != want {
			t.Errorf("%s: %d with %v, not %d with %s", what, got.status, names, status, want)
		}
	}
	const rate, wait, over = "X-Ratelimit-Limit X-Ratelimit-Remaining", "Retry-After", "Retry-After X-Ratelimit-Limit X-Ratelimit-Remaining X-Ratelimit-Reset"
	sends := map[string]string{"/v1/sms": single("79123456", "ACME", "x"), "/v1/sms/bulk": bulk("ACME", item("79123456", "x")),
		"/v1/sms/template": templated("ACME", "x", to("79123456", vars{}))}
	looks := map[string]int{"/v1/sms": 200, "/v1/sms/" + id: 200, "/v1/sms/999": 404, "/v1/sms/batches/" + batch: 200, "/v1/sms/batches/x": 404,
		"/v1/batches/" + batch + "/messages": 200, "/v1/batches/x/messages": 404, "/v1/balance": 200, "/v1/balance?x=1": 422, "/v1/test-number": 200,
		"/v1/webhook-deliveries": 200, "/v1/webhook-deliveries?x=1": 422, "/v1/webhook-deliveries/8": 200, "/v1/webhook-deliveries/x": 404,
		"/nowhere": 404, "/docs": 200, "/v1/openapi.json": 200, "/v1/sms/bulk": 405}
	for path, body := range sends {
		check(w.do("live", "POST", path, body, keyHeader, path), path, 200, rate)
		check(w.do("live", "POST", path, body, keyHeader, path), path+" replayed", 200, rate)
		check(w.do("live", "POST", path, strings.Replace(body, "x", "y", 1), keyHeader, path), path+" with the key of another", 422, rate)
		check(w.do("live", "POST", path, strings.Replace(body, "ACME", "NONE", 1)), path+" as nobody", 400, rate)
		check(w.do("live", "POST", path, "{"), path+" malformed", 400, rate)
		check(w.do("live", "POST", path, "{}"), path+" empty", 422, rate)
		check(w.do("live", "POST", path, body, "Content-Type", "text/plain"), path+" as text", 415, rate)
		check(w.do("live", "POST", path, long(1<<16+1)), path+" large", 413, rate)
		check(w.do("", "POST", path, body), path+" as a stranger", 401, "")
		check(w.do("live", "DELETE", path, ""), "DELETE "+path, 405, "")
	}
	for path, status := range looks {
		check(w.do("live", "GET", path, ""), path, status, "")
	}
	check(w.do("live", "POST", "/v1/webhook-deliveries/8/resend", ""), "a re-send", 200, "")
	check(w.do("live", "POST", "/v1/sms/preview", `{"message":"x"}`), "a preview", 200, "")
	check(w.do("live", "PUT", "/v1/test-number", `{"phone_number":"79123457"}`), "a test number", 200, "")
	check(w.do("live", "PUT", "/v1/test-number", `{"phone_number":"79123457"}`), "a test number at once", 429, wait)
	check(w.do("live", "POST", "/v1/test-number/verify", `{"code":"x"}`), "a code", 422, "")

	// A fault of ours, and then no database.
	rooms := w.rooms
	rooms.Intake = nil
	broken, err := New(rooms, Options{Plan: w.plan, TestSender: testSender})
	if err != nil {
		t.Fatal(err)
	}
	whole := w.server.Config.Handler
	w.server.Config.Handler = broken
	for path, body := range sends {
		check(w.do("live", "POST", path, body), path+" with a fault", 500, rate)
	}
	w.server.Config.Handler = whole
	w.do("live", "GET", "/v1/balance", "") // its token is known from now
	w.pool.Close()
	for path, body := range sends {
		check(w.do("live", "POST", path, body), path+" without a database", 503, "Retry-After "+rate)
		check(w.do("approved", "POST", path, body), path+" of an unknown token without a database", 503, wait)
	}
	for path, status := range looks {
		if strings.HasPrefix(path, "/v1/") && status == 200 && path != "/v1/openapi.json" {
			check(w.do("live", "GET", path, ""), path+" without a database", 503, wait)
		}
	}

	// Over the rates: of one user's sends, and of wrong tokens.
	narrow := newWorld(t, worldOptions{Limit: 1, FailedLogins: 1}).settle()
	narrow.do("live", "POST", "/v1/sms", "{}")
	narrow.tokens["wrong"] = "1|" + long(40)
	narrow.do("wrong", "POST", "/v1/sms", "{}")
	for path, body := range sends {
		check(narrow.do("live", "POST", path, body), path+" over the rate", 429, over)
		check(narrow.do("wrong", "POST", path, body), path+" with a wrong token", 429, wait)
	}
	check(narrow.do("wrong", "GET", "/v1/balance", ""), "a wrong token", 429, wait)
}

// The names go out as rule choices 1.9 writes them, since
// people look for them with grep.
func TestRateHeaderNames(t *testing.T) {
	w := newWorld(t, worldOptions{Limit: 1}).settle()
	raw := w.raw("POST /v1/sms HTTP/1.1\r\nHost: x\r\nAuthorization: bearer " + w.tokens["live"] + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" +
		"POST /v1/sms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.tokens["live"] + "\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
	for _, want := range []string{"\r\nX-RateLimit-Limit: 1\r\n", "\r\nX-RateLimit-Remaining: 0\r\n", "\r\nX-RateLimit-Reset: ", "\r\nRetry-After: ", "\r\nContent-Type: application/json\r\n"} {
		if !contains(raw, want) {
			t.Errorf("%q is not in\n%s", want, raw)
		}
	}
}

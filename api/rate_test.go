package api

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// rateHeaders returns the headers with their names as sent.
func rateHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"} {
		if text := h.Get(name); text != "" {
			out[name] = text
		}
	}
	return out
}

// The three endpoints share one window. Every response counts, except 401, 404 and 405.
func TestRateLimit(t *testing.T) {
	t.Parallel()
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
		if got.status != c.status || h["X-Ratelimit-Limit"] != "10" || h["X-Ratelimit-Remaining"] != strconv.Itoa(left) ||
			len(h) != 2 {
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
		began := time.Now()
		got := w.do("live", "POST", path, "{}")
		took := int64(time.Since(began)/time.Second) + 1
		sameJSON(t, got.body, messageJSON("Too Many Attempts."))
		h := rateHeaders(got.header)
		wait, _ := strconv.Atoi(h["Retry-After"])
		reset, _ := strconv.ParseInt(h["X-Ratelimit-Reset"], 10, 64)
		end := time.Now().Add(time.Duration(wait) * time.Second).Unix()
		if got.status != 429 || h["X-Ratelimit-Limit"] != "10" || h["X-Ratelimit-Remaining"] != "0" || wait < 1 ||
			wait > 60 || reset < end-took || reset > end+1 {
			t.Errorf("%d %v", got.status, h)
		}
	}
	if got := w.do("other", "POST", "/v1/sms", "{}"); got.status != 422 {
		t.Errorf("another user: %d", got.status)
	}
}

// Header names are sent as rule choices 1.9 spells them, so grep finds them.
func TestRateHeaderNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Limit: 1}).settle()
	raw := w.raw("POST /v1/sms HTTP/1.1\r\nHost: x\r\nAuthorization: bearer " + w.tokens["live"] +
		"\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" +
		"POST /v1/sms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.tokens["live"] +
		"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
	for _, want := range []string{"\r\nX-RateLimit-Limit: 1\r\n", "\r\nX-RateLimit-Remaining: 0\r\n",
		"\r\nX-RateLimit-Reset: ", "\r\nRetry-After: ", "\r\nContent-Type: application/json\r\n"} {
		if !contains(raw, want) {
			t.Errorf("%q is not in\n%s", want, raw)
		}
	}
}

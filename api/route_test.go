package api

import (
	"strings"
	"testing"
)

// Every endpoint needs a token and a company. The sends have golden tests for the company.
func TestEveryEndpointNeedsATokenAndACompany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	for _, e := range (&API{Deps: w.deps}).table() {
		path, below := strings.CutPrefix(e.path, "/v1/")
		if !below || path == "openapi.json" {
			continue
		}
		path, body := "/v1/"+strings.Replace(path, ":id", "79123401", 1), ""
		if e.method != "GET" && e.method != "DELETE" {
			body = `{"phone_number":"79123401"}`
		}
		got := w.do("", e.method, path, body)
		if got.status != 401 {
			t.Errorf("%s %s without a token: %d", e.method, path, got.status)
		}
		sameJSON(t, got.body, messageJSON("Unauthenticated."))
		if path == "/v1/sms" && e.method == "POST" || path == "/v1/verifications" || path == "/v1/sms/bulk" ||
			path == "/v1/sms/template" {
			continue
		}
		got = w.do("nocompany", e.method, path, body)
		if got.status != 400 {
			t.Errorf("%s %s without a company: %d", e.method, path, got.status)
		}
		sameJSON(t, got.body, messageJSON("You must create a company before sending messages."))
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 404, ""}, {"GET", "/v1", 404, ""}, {"POST", "/v1/nope", 404, ""}, {"POST", "/v1/sms/", 404, ""},
		{"GET", "/v1/sms/a/b", 404, ""},
		{"POST", "/sms", 404, ""}, {"POST", "/V1/sms", 404, ""}, {"GET", "/v1/balance/", 404, ""},
		{"GET", "/metrics", 404, ""},
		{"PUT", "/v1/sms", 405, "POST, GET, HEAD"}, {"DELETE", "/v1/sms/bulk", 405, "POST"},
		{"GET", "/v1/sms/bulk", 405, "POST"},
		{"GET", "/v1/sms/template", 405, "POST"}, {"GET", "/v1/sms/preview", 405, "POST"},
		{"POST", "/v1/sms/01JNA2K3M4N5P6Q7R8S9T0V1W2", 405, "GET, HEAD, DELETE"},
		{"POST", "/v1/balance", 405, "GET, HEAD"}, {"PATCH", "/v1/test-number", 405, "GET, HEAD, PUT"},
		{"GET", "/v1/test-number/verify", 405, "POST"},
		{"PUT", "/v1/sms/batches/01JNA2K3M4N5P6Q7R8S9T0V1W2", 405, "GET, HEAD, DELETE"},
		{"GET", "/v1/batches/01JNA2K3M4N5P6Q7R8S9T0V1W2", 405, "DELETE"}, {"OPTIONS", "/v1/sms", 405, "POST, GET, HEAD"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			w.t = t
			for _, customer := range []string{"", "live"} {
				got := w.do(customer, c.method, c.path, "")
				want := messageJSON("Not found.")
				if c.status == 405 {
					want = messageJSON("Method not allowed.")
				}
				if got.status != c.status || got.header.Get("Allow") != c.allow || got.header.Get("X-RateLimit-Limit") != "" {
					t.Errorf("status %d, Allow %q, %v", got.status, got.header.Get("Allow"), got.header)
				}
				sameJSON(t, got.body, want)
			}
		})
	}
	if got := w.raw("no request\r\n\r\n"); !contains(got, "HTTP/1.1 400 ") || !contains(got, "text/plain") ||
		!contains(got, "Connection: close") {
		t.Errorf("an invalid HTTP request: %q", got)
	}
}

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"intumwa/configs"
)

// TestOpsNetworks: with ops.networks, only they and this machine read metrics and profiles; probes are for everyone.
func TestOpsNetworks(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	some := readOnlyBy((&configs.Ops{Networks: []string{"10.0.0.0/8", "2001:db8::/32"}}).Readers(), served)
	for _, c := range []struct {
		path, from string
		want       int
	}{
		{"/metrics", "10.1.2.3:4000", 200}, {"/debug/pprof/", "[::ffff:10.1.2.3]:4000", 200},
		{"/metrics", "[2001:db8::7]:4000", 200},
		{"/metrics", "127.0.0.1:4000", 200}, {"/metrics", "[::1]:4000", 200},
		{"/metrics", "203.0.113.5:4000", 403}, {"/debug/pprof/", "203.0.113.5:4000", 403},
		{"/debug/links/a/trace", "[2001:db9::1]:4000", 403},
		{"/healthz", "203.0.113.5:4000", 200}, {"/readyz", "203.0.113.5:4000", 200},
		{"/readyz/../metrics", "203.0.113.5:4000", 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://x"+c.path, nil)
		r.RemoteAddr = c.from
		answer := httptest.NewRecorder()
		some.ServeHTTP(answer, r)
		if answer.Code != c.want {
			t.Errorf("%s from %s: %d, want %d", c.path, c.from, answer.Code, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.RemoteAddr = "203.0.113.5:4000"
	answer := httptest.NewRecorder()
	readOnlyBy(nil, served).ServeHTTP(answer, r)
	if answer.Code != http.StatusOK {
		t.Errorf("without networks: %d", answer.Code)
	}
}

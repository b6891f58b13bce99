package api

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/accounts/keys"
)

func TestBearerForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	token := w.tokens["live"]
	for text, status := range map[string]int{
		"Bearer " + token: 200, "bearer " + token: 200, "BEARER  " + token + " ": 200,
		"": 401, "Bearer": 401, "Bearer ": 401, token: 401, "Basic " + token: 401, "Bearer " + token + "x": 401,
		"Bearer x" + token:                     401,
		"Bearer " + token[:len(token)-1] + "~": 401, "Bearer 1|": 401, "Bearer |": 401, "Bearer 999999|" +
			strings.Repeat("a", 40): 401,
		"Bearer 99999999999999999999|" + strings.Repeat("a", 40): 401,
	} {
		got := w.do("", "GET", "/v1/balance", "", "Authorization", text)
		if got.status != status {
			t.Errorf("%q: %d %s", text, got.status, got.body)
		}
		if status == 401 && got.body != messageJSON("Unauthenticated.") {
			t.Errorf("%q: %s", text, got.body)
		}
	}
}

// After too many wrong tokens an address gets 429; its valid tokens and other addresses do not.
func TestFailedLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{FailedLogins: 3, Options: Options{TrustedProxies: []string{"127.0.0.1"}}}).settle()
	wrong := "Bearer 1|" + strings.Repeat("a", 40)
	from := func(address, token string) int {
		return w.do("", "GET", "/v1/balance", "", "Authorization", token, "X-Forwarded-For", address).status
	}
	for i, want := range []int{401, 401, 401, 429, 429} {
		if got := from("192.0.2.1", wrong); got != want {
			t.Errorf("try %d: %d, not %d", i+1, got, want)
		}
	}
	if got := from("192.0.2.2", wrong); got != 401 {
		t.Errorf("another address: %d", got)
	}
	if got := from("192.0.2.1", "Bearer "+w.tokens["live"]); got != 200 {
		t.Errorf("a right token: %d", got)
	}
	for i, address := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::ffff:1", "2001:db8::3"} { // one /64
		want := 401
		if i == 3 {
			want = 429
		}
		if got := from(address, wrong); got != want {
			t.Errorf("%s: %d, not %d", address, got, want)
		}
	}
}

// X-Forwarded-For counts only from a trusted proxy.
func TestUntrustedProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{FailedLogins: 1}).settle()
	wrong := "Bearer 1|" + strings.Repeat("a", 40)
	for i, want := range []int{401, 429, 429} {
		address := "192.0.2." + string(rune('1'+i))
		if got := w.do("", "GET", "/v1/balance", "", "Authorization", wrong, "X-Forwarded-For", address).status; got != want {
			t.Errorf("%s: %d, not %d", address, got, want)
		}
	}
}

// Behind a trusted proxy only X-Forwarded-For has the client's address, even if the proxy writes a port into it;
// X-Real-IP may come from the client.
func TestRealIPHeaderIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{TrustedProxies: []string{"127.0.0.1"}}}).settle()
	networks, err := keys.ParseNetworks("192.0.2.0/24")
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := w.keys.CreateToken(t.Context(), "live@example.com", "x", accounts.TokenLimits{Networks: networks})
	if err != nil {
		t.Fatal(err)
	}
	for _, forwarded := range []string{"", "203.0.113.9:40112", "203.0.113.9", "192.0.2.1, 203.0.113.9"} {
		got := w.do("", "GET", "/v1/balance", "", "Authorization", "Bearer "+token, "X-Forwarded-For", forwarded, "X-Real-IP",
			"192.0.2.1")
		if got.status != 403 {
			t.Errorf("%q: %d %s", forwarded, got.status, got.body)
		}
	}
}

// tokenLookups returns how many look-ups of tokens reached the database.
func tokenLookups(t *testing.T, registry *prometheus.Registry) (n float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "intumwa_token_lookups_total" && m.GetLabel()[0].GetValue() == "database" {
				n = m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// An address with too many failures causes few look-ups, and tokens behind it that were valid before still pass.
func TestGuessedTokensCauseFewLookups(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	w := newWorld(t, worldOptions{FailedLogins: 10, Keys: keys.Options{Metrics: registry}}).settle()
	balance := func(token string) int { return w.do("", "GET", "/v1/balance", "", "Authorization", token).status }
	guess := func(i int) int { return balance(fmt.Sprintf("Bearer %d|%s", 1_000_000+i, strings.Repeat("a", 40))) }
	right := "Bearer " + w.tokens["live"]
	if got := balance(right); got != 200 {
		t.Fatal(got)
	}
	for i := range 30 {
		if want := map[bool]int{true: 401, false: 429}[i < 10]; guess(i) != want {
			t.Fatalf("guess %d is not answered with %d", i, want)
		}
	}
	before, start := tokenLookups(t, registry), time.Now()
	const guesses = 200
	var all sync.WaitGroup
	for i := range guesses {
		all.Go(func() {
			if got := guess(100 + i); got != 429 && got != 503 { // 503: one of the few look-ups took too long
				t.Errorf("a guess past the limit: %d", got)
			}
		})
	}
	if got := balance(right); got != 200 {
		t.Errorf("a right token meanwhile: %d", got)
	}
	all.Wait()
	// suspectLookupsPerSecond a second, and one of the customer every two seconds.
	most := float64(suspectLookupsPerSecond+1) * (time.Since(start).Seconds() + 2)
	if n := tokenLookups(t, registry) - before; n > most {
		t.Errorf("%v look-ups for %d guesses in %v", n, guesses, time.Since(start))
	}
}

// Refusing a token takes equally long whether its id exists or not: longer than a look-up.
func TestWrongTokensTakeEquallyLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	known, _, _ := strings.Cut(w.tokens["live"], "|")
	for range 3 {
		for _, id := range []string{known, "987654321"} {
			start := time.Now()
			if got := w.do("", "GET", "/v1/balance", "", "Authorization", "Bearer "+id+"|"+
				strings.Repeat("a", 40)); got.status != 401 {
				t.Fatal(got.status)
			}
			if took := time.Since(start); took < refusalDelay {
				t.Errorf("token %s was refused after %v", id, took)
			}
		}
	}
}

// A token's limits are checked after 401 and before everything else. Other tests use tokens without limits.
func TestTokenLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{TrustedProxies: []string{"127.0.0.1"}}}).settle()
	token := func(limits accounts.TokenLimits) string {
		_, text, err := w.keys.CreateToken(t.Context(), "live@example.com", "x", limits)
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + text
	}
	networks, err := keys.ParseNetworks("192.0.2.0/24")
	if err != nil {
		t.Fatal(err)
	}
	const noSend, noRead = "The API token does not have the scope send.", "The API token does not have the scope read."
	sends, reads, bound := token(accounts.TokenLimits{Scopes: []string{accounts.ScopeSend}}),
		token(accounts.TokenLimits{Scopes: []string{accounts.ScopeRead}}),
		token(accounts.TokenLimits{Networks: networks})
	for _, c := range []struct {
		token, method, path, from string
		status                    int
		code, text                string
	}{
		{sends, "POST", "/v1/sms", "192.0.2.1", 415, "content_type_invalid", "The Content-Type must be application/json."},
		{sends, "DELETE", "/v1/sms/1", "192.0.2.1", 404, "not_found", "Not found."},
		{sends, "GET", "/v1/balance", "192.0.2.1", 403, "token_scope", noRead},
		{reads, "GET", "/v1/sms/1", "192.0.2.1", 404, "not_found", "Not found."},
		{reads, "POST", "/v1/sms", "192.0.2.1", 403, "token_scope", noSend},
		{reads, "POST", "/v1/sms/preview", "192.0.2.1", 403, "token_scope", noSend},
		{reads, "POST", "/v1/opt-outs", "192.0.2.1", 403, "token_scope", noSend},
		{reads, "PUT", "/v1/test-number", "192.0.2.1", 403, "token_scope", noSend},
		{reads, "DELETE", "/v1/sms/1", "192.0.2.1", 403, "token_scope", noSend},
		{bound, "GET", "/v1/sms/1", "192.0.2.1", 404, "not_found", "Not found."},
		{bound, "GET", "/v1/sms/1", "192.0.3.1", 403, "token_network", "The API token must not be used from this network."},
		{bound + "x", "GET", "/v1/sms/1", "192.0.3.1", 401, "unauthenticated", "Unauthenticated."},
	} {
		got := w.do("", c.method, c.path, "", "Authorization", c.token, "X-Forwarded-For", c.from)
		if got.status != c.status || got.header.Get("X-Error-Code") != c.code || got.body != messageJSON(c.text) {
			t.Errorf("%s %s from %s: %d %s", c.method, c.path, c.from, got.status, got.body)
		}
	}
}

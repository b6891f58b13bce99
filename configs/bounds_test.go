package configs

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestReachableListeners: a range that has strangers and a public ops listener are refused; what may be meant is warned
// of.
func TestReachableListeners(t *testing.T) {
	both := "accounts: {otp_key: " + otpKey + "}\nencryption_key: " + strings.Repeat("Q", 43) + "=\n"
	for _, c := range []struct {
		text     string
		refused  string // keys
		warnings string
	}{
		{"", "[]", "[]"},
		{"api: {trusted_proxies: [0.0.0.0/0]}", "[api.trusted_proxies[0]]", "[]"},
		{"api: {trusted_proxies: [127.0.0.1, \"::/0\", 0.0.0.0/1, 8.0.0.0/8, \"::ffff:0:0/96\", \"2000::/3\", " +
			"\"::ffff:10.0.0.0/104\"]}",
			"[api.trusted_proxies[1] api.trusted_proxies[2] api.trusted_proxies[3] api.trusted_proxies[4] " +
				"api.trusted_proxies[5]]", "[]"},
		{"api: {trusted_proxies: [10.0.0.0/8, 104.16.0.0/13, \"2400:cb00::/32\", \"fc00::/7\", 172.16.0.0/12, " +
			"\"2001:db8::1\"]}", "[]", "[]"},
		{"api: {trusted_proxies: [10.0.0.0/33]}", "[api.trusted_proxies[0]]", "[]"},
		{"ops: {listen: \"203.0.113.5:9090\"}", "[ops.listen]", "[]"},
		{"ops: {listen: \"[2001:db8::5]:9090\"}", "[ops.listen]", "[]"},
		{"ops: {listen: \"203.0.113.5:9090\", networks: [203.0.113.0/24]}", "[]", "[]"},
		{"ops: {listen: \"203.0.113.5:9090\", networks: [0.0.0.0/0]}", "[ops.networks[0]]", "[]"},
		{"ops: {listen: \"0.0.0.0:9090\"}", "[]", "[ops.listen]"},
		{"ops: {listen: \":9090\"}", "[]", "[ops.listen]"},
		{"ops: {listen: \"[::]:9090\"}", "[]", "[ops.listen]"},
		{"ops: {listen: \"0.0.0.0:9090\", networks: [10.0.0.0/8]}", "[]", "[]"},
		{"ops: {listen: \"10.1.2.3:9090\"}", "[]", "[]"},
		{"api: {listen: \"0.0.0.0:8080\"}", "[]", "[api.listen]"},
		{"api: {listen: \"10.1.2.3:8080\"}", "[]", "[api.listen]"},
		{"api: {listen: \":8080\", trusted_proxies: [127.0.0.1]}", "[]", "[]"},
		{"dashboard: {listen: \"203.0.113.5:8081\"}", "[]", "[dashboard.listen]"},
		{"kannel: {listen: \"0.0.0.0:13013\"}", "[]", "[kannel.listen]"},
	} {
		config := load(t, both+c.text+"\n"+strings.TrimPrefix(sound, "\n"))
		keys := func(problems []Problem) string {
			got := []string{}
			for _, p := range problems {
				got = append(got, p.Key)
			}
			return fmt.Sprint(got)
		}
		if refused, warnings := keys(config.Check(Roles...)), keys(config.Warnings(Roles...)); refused != c.refused ||
			len(config.Check(Roles...)) == 0 && warnings != c.warnings {
			t.Errorf("%s: refused %s, warned of %s; want %s, %s", c.text, refused, warnings, c.refused, c.warnings)
		}
	}
}

// TestEveryNumberIsBounded: every number and duration has a minimum and a maximum, and its default is within.
func TestEveryNumberIsBounded(t *testing.T) {
	c := load(t, sound)
	seen := 0
	walk(c, func(l leaf) {
		kind := l.field.Type.Kind()
		if list := l.field.Type; list == reflect.TypeFor[[]time.Duration]() {
			kind = reflect.Int64
		}
		if kind != reflect.Int && kind != reflect.Int64 {
			return
		}
		seen++
		low, hasLow := bound(l.field, "min")
		high, hasHigh := bound(l.field, "max")
		if !hasLow || !hasHigh || low >= high || high > int64(math.MaxInt64/2) {
			t.Errorf("%s: from %d (%t) to %d (%t)", l.path, low, hasLow, high, hasHigh)
		}
	})
	if seen < 20 {
		t.Errorf("%d keys", seen)
	}
}

// TestAbsurdValues: a value that no installation can mean is refused, and one that few mean is warned of.
func TestAbsurdValues(t *testing.T) {
	both := "accounts: {otp_key: " + otpKey + "}\nencryption_key: " + strings.Repeat("Q", 43) + "=\n"
	for text, want := range map[string]string{
		"messages: {validity: 1ms}":   "messages.validity (line 3): must be from 1s to 720h",
		"messages: {validity: 9000h}": "messages.validity (line 3): must be from 1s to 720h",
		"messages: {validity: 30s}":   "warning messages.validity (line 3): is unusually low: below 1m",
		"messages: {inbound_retention: 1s}": "messages.inbound_retention (line 3): must be from " +
			"1m to 876000h",
		"webhooks: {timeout: 1h}":             "webhooks.timeout (line 3): must be from 100ms to 1m",
		"webhooks: {timeout: 200ms}":          "warning webhooks.timeout (line 3): is unusually low: below 1s",
		"webhooks: {retry_delays: [1s, 48h]}": "webhooks.retry_delays[1] (line 3): must be from 1ms to 24h",
		"retention: {receipts: 1s}":           "retention.receipts (line 3): must be from 1m to 876000h",
		"api: {rate_limit_per_minute: 2000000000}": "api.rate_limit_per_minute (line 3): must be from 1 " +
			"to 1000000000",
		"operator: {nif: \"4000\\n1\"}": "operator.nif (line 3): must be one line of at most 40 " +
			"printable characters",
		"operator: {name: " + strings.Repeat("é", 101) +
			"}": "operator.name (line 3): must be one line of at most 100 printable characters",
		"accounts: {test_codes_a_day: 0}": "accounts.test_codes_a_day (line 3): must be from 1 to 1000000",
	} {
		prefix := both
		if strings.HasPrefix(text, "accounts") {
			prefix = "\n" + strings.SplitAfter(both, "\n")[1]
		}
		config := load(t, prefix+text+"\n"+strings.TrimPrefix(sound, "\n"))
		var got []string
		for _, p := range config.Check(Roles...) {
			got = append(got, p.String())
		}
		for _, w := range config.Warnings(Roles...) {
			if !strings.HasPrefix(w.Key, "accounts.otp") {
				got = append(got, "warning "+w.String())
			}
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

package configs

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "intumwa.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string, env ...string) *Config {
	t.Helper()
	c, err := Load(write(t, text), env)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// refused returns the problems that Load finds in a file, one a line.
func refused(t *testing.T, text string, env ...string) []string {
	t.Helper()
	path := write(t, text)
	_, err := Load(path, env)
	if err == nil {
		t.Fatalf("Load took %q", text)
	}
	return strings.Split(strings.ReplaceAll(err.Error(), path, "FILE"), "\n")
}

func wants(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEmptyFileIsTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "api:\nops:\n  listen:\n"} {
		c := load(t, text)
		c.lines = nil
		if want := Default(); !reflect.DeepEqual(c, want) {
			t.Errorf("%q: these keys differ: %v", text, c.Changed(want))
		}
	}
}

// TestDefaultsOfTheContract: customers rely on these defaults (rule api 4.4, 6, 8).
func TestDefaultsOfTheContract(t *testing.T) {
	c := Default()
	if want := []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
		15 * time.Minute}; !slices.Equal(c.Webhooks.RetryDelays, want) {
		t.Errorf("webhooks are retried after %v, want %v", c.Webhooks.RetryDelays, want)
	}
	if c.API.RateLimitPerMinute != 500 || c.Accounts.TestQuota != 5 {
		t.Errorf("%d requests a minute and %d test segments, want 500 and 5", c.API.RateLimitPerMinute, c.Accounts.TestQuota)
	}
}

// TestUnknownKeys: each is refused with path and line, and one of an earlier build with what replaces it.
func TestUnknownKeys(t *testing.T) {
	wants(t, refused(t, `api:
  listn: 127.0.0.1:1
carriers:
  - name: a
    links:
      - name: b
        windw: 4
        tls: {cacert: x}
smpp: {}
api: {}
accounts: {test_number_replacements: 4, encryption_key: x, otp_key_file: y}
`), []string{
		"api (line 10): is defined in line 1 already",
		"api.listn (line 2): unknown key",
		"carriers[0].links[0].windw (line 7): unknown key",
		"carriers[0].links[0].tls.cacert (line 8): unknown key",
		"smpp (line 9): unknown key",
		"accounts.test_number_replacements (line 11): unknown key: a test number can always be replaced 3 times",
		"accounts.encryption_key (line 11): unknown key: write encryption_key at the top of the file",
		"accounts.otp_key_file (line 11): unknown key: write otp_key: ${file:PATH}",
	})
}

func TestWrongTypes(t *testing.T) {
	wants(t, refused(t, `api: 7
messages:
  validity: 24
  max_segments: many
webhooks:
  allow_private: yes
  retry_delays: [10s, soon]
  timeout: [1s]
carriers:
  - prefixes: 61
    receipt_states: [UNKNOWN]
    links: {name: x}
  -
test_sender: {a: b}
`, "INTUMWA_MESSAGES_VALIDITY=long", "INTUMWA_WEBHOOKS_RETRY_DELAYS=1s,x", "INTUMWA_CARRIERS_1_RECEIPT_STATES=UNKNOWN",
		"INTUMWA_API_RATE_LIMIT_PER_MINUTE="), []string{
		"api (line 1): must be an object with keys",
		"messages.validity (line 3): must be a duration such as 90s, 5m or 24h",
		"messages.max_segments (line 4): must be a whole number",
		"webhooks.allow_private (line 6): must be true or false",
		"webhooks.retry_delays[1] (line 7): must be a duration such as 90s, 5m or 24h",
		"webhooks.timeout (line 8): must be a single value",
		"carriers[0].prefixes (line 10): must be a list",
		"carriers[0].receipt_states (line 11): must be an object with keys",
		"carriers[0].links (line 12): must be a list",
		"carriers[1] (line 13): is empty",
		"test_sender (line 14): must be a single value",
		"INTUMWA_API_RATE_LIMIT_PER_MINUTE: must be a whole number",
		"INTUMWA_MESSAGES_VALIDITY: must be a duration such as 90s, 5m or 24h",
		"INTUMWA_WEBHOOKS_RETRY_DELAYS: must be a duration such as 90s, 5m or 24h",
		"INTUMWA_CARRIERS_1_RECEIPT_STATES: must be comma-separated key=value pairs",
	})
}

func TestNoYAML(t *testing.T) {
	for text, want := range map[string]string{
		"api: [1\n":                             "line 1",
		"a: *nowhere\n":                         "Alias is not supported",
		"a: &x 1\n":                             "Anchor is not supported",
		"a: {<<: {b: 1}}\n":                     "MergeKey is not supported",
		"a: !x 1\n":                             "Tag is not supported",
		"a: 1\n---\nb: 2\n":                     "more than one YAML document",
		"? [a, b]\n: 1\n":                       "line 2",
		"carriers:\n  - name: a\n    name: b\n": "line 3",
	} {
		if got := refused(t, text); !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%q: got %q, want something with %q", text, got, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing.yaml"), nil); err == nil {
		t.Error("a missing file is no error")
	}
}

// TestValuesAsWritten: text that YAML would read as a number stays unchanged.
func TestValuesAsWritten(t *testing.T) {
	c := load(t, `
carriers:
  - name: a
    prefixes: [61, "062", 0x1]
    links:
      - name: one
        system_id: 0123
        password: 1e3
        system_type: |-
          true
        tps: 7
        tls: {ca: /ca.pem}
`)
	if got, want := c.Carriers[0].Prefixes, []string{"61", "062", "0x1"}; !slices.Equal(got, want) {
		t.Errorf("prefixes %q, want %q", got, want)
	}
	if l := c.Carriers[0].Links[0]; l.SystemID != "0123" || l.Password != "1e3" || l.SystemType != "true" || l.TPS != 7 ||
		!l.TLS.Enabled || l.Window != 100 {
		t.Errorf("the link is %+v", l)
	}
}

const twoCarriers = `
carriers:
  - name: lumitel
    links: [{name: lumitel-1}, {name: lumitel.2, tls: true}]
  - name: leo
    links: [{name: leo-1}]
`

func TestOverrides(t *testing.T) {
	c := load(t, twoCarriers,
		"INTUMWA_API_LISTEN=:1",
		"INTUMWA_API_RATE_LIMIT_PER_MINUTE=9",
		"INTUMWA_API_TRUSTED_PROXIES=10.0.0.1, 10.0.0.2",
		"INTUMWA_TEST_SENDER=TRY",
		"INTUMWA_ACCOUNTS_OTP_KEY=k", "INTUMWA_ENCRYPTION_KEY=k",
		"INTUMWA_WEBHOOKS_RETRY_DELAYS=1s,2s",
		"INTUMWA_WEBHOOKS_ALLOW_PRIVATE=true",
		"INTUMWA_DATABASE_URL=postgres://a:b@c/d?sslmode=require",
		"INTUMWA_CARRIERS_0_DEFAULT=true",
		"INTUMWA_CARRIERS_LUMITEL_RECEIPT_STATES=UNKNOWN=failed,ACCEPTD=none",
		"INTUMWA_CARRIERS_LUMITEL_LINKS_LUMITEL_1_PASSWORD=p,$q",
		"INTUMWA_CARRIERS_0_LINKS_LUMITEL_2_TPS=5",
		"INTUMWA_CARRIERS_LEO_LINKS_0_TLS=true",
		"INTUMWA_CARRIERS_1_LINKS_0_WINDOW=3",
		"INTUMWA_CARRIERS_LEO_LINKS_LEO_1_WINDOW=4", // the name wins over the index
		"INTUMWA_CARRIERS_LUMITEL_LINKS_LUMITEL_1_TLS_CA=/ca.pem",
		"INTUMWA_CARRIERS_LUMITEL_PREFIXES=",
		"INTUMWA_CARRIERS_LUMITEL_SOURCE_TON_NPI=5,1", // as in the file, for all kinds
		"INTUMWA_CARRIERS_LUMITEL_SOURCE_TON_NPI_SHORT=0,1",
	)
	lumitel, leo := c.Carriers[0], c.Carriers[1]
	for key, right := range map[string]bool{
		"api.listen":                c.API.Listen == ":1",
		"api.rate_limit_per_minute": c.API.RateLimitPerMinute == 9,
		"api.trusted_proxies":       slices.Equal(c.API.TrustedProxies, []string{"10.0.0.1", "10.0.0.2"}),
		"test_sender":               c.TestSender == "TRY",
		"webhooks.retry_delays":     slices.Equal(c.Webhooks.RetryDelays, []time.Duration{time.Second, 2 * time.Second}),
		"webhooks.allow_private":    c.Webhooks.AllowPrivate,
		"database.url":              c.Database.URL == "postgres://a:b@c/d?sslmode=require",
		"default":                   lumitel.Default,
		"receipt_states": maps.Equal(lumitel.ReceiptStates,
			map[string]string{"UNKNOWN": "failed", "ACCEPTD": "none"}),
		"prefixes": len(lumitel.Prefixes) == 0,
		"source_ton_npi": reflect.DeepEqual(lumitel.SourceTONNPI,
			TONNPI{Alphanumeric: []int{5, 1}, Short: []int{0, 1}, International: []int{5, 1}}),
		"password": lumitel.Links[0].Password == "p,$q",
		"tls.ca":   lumitel.Links[0].TLS == TLS{Enabled: true, CA: "/ca.pem"},
		"tps":      lumitel.Links[1].TPS == 5,
		"tls":      leo.Links[0].TLS.Enabled,
		"window":   leo.Links[0].Window == 4,
	} {
		if !right {
			t.Errorf("%s was not overridden", key)
		}
	}
	if w := c.Warnings(Roles...); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
}

// TestEveryKeyHasAVariable of its own (rule choices 11.1).
func TestEveryKeyHasAVariable(t *testing.T) {
	seen := map[string]string{}
	walk(load(t, twoCarriers), func(l leaf) {
		for _, name := range l.variables {
			if other, taken := seen[name]; taken {
				t.Errorf("%s and %s share %s", other, l.path, name)
			}
			seen[name] = l.path
			if serviceLink.MatchString(name) {
				t.Errorf("%s looks like a variable of Kubernetes", name)
			}
		}
	})
	for _, name := range []string{"INTUMWA_REDIS_MASTER_NAME", "INTUMWA_BILLING_REFUND", "INTUMWA_CARRIERS_LEO_CONFIRM"} {
		if seen[name] == "" {
			t.Errorf("no key has %s", name)
		}
	}
}

func TestMisspeltVariablesAreWarnings(t *testing.T) {
	c := load(t, "redis: {prefix: '${INTUMWA_MINE}'}\naccounts: {otp_key: k}\nencryption_key: k",
		"INTUMWA_API_LISTN=x", "INTUMWA_CARRIERS_7_NAME=x", "INTUMWA_CONFIG=x", "INTUMWA_MINE=x", "PATH=x",
		"INTUMWA_SERVICE_HOST=10.0.0.1", "INTUMWA_PORT_8080_TCP_ADDR=10.0.0.1", "INTUMWA_API_SERVICE_PORT_HTTP=80")
	var got []string
	for _, w := range c.Warnings(Roles...) {
		got = append(got, w.Key)
	}
	wants(t, got, []string{"INTUMWA_API_LISTN", "INTUMWA_CARRIERS_7_NAME"})
}

// FuzzLoad: Load returns for any file, and every problem is one line.
func FuzzLoad(f *testing.F) {
	f.Add(Sample)
	for _, text := range []string{"a: &a [*a]", "carriers: &c\n  <<: *c\n", "&a : *a", "<<: [{a: 1}, *x]", "? {a: b}\n: c",
		"!t x", "%YAML 1.2\n---\na: 1", "redis: {tls: [x]}", "carriers: [null, {links: [~]}]", "api: &x\n<<: *x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Load(write(t, text), []string{"A=b"})
		var problems Problems
		if err != nil && !errors.As(err, &problems) {
			t.Fatal(err)
		}
		if c != nil {
			problems = append(append(problems, c.Check(Roles...)...), c.Warnings(Roles...)...)
		}
		for _, p := range problems {
			if strings.ContainsAny(p.String(), "\n\r") {
				t.Errorf("%q", p)
			}
		}
	})
}

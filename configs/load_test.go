package configs

import (
	"errors"
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

// refused answers what Load says of a file, one problem a line.
func refused(t *testing.T, text string, env ...string) []string {
	t.Helper()
	path := write(t, text)
	_, err := Load(path, env)
	if err == nil {
		t.Fatalf("Load took %q", text)
	}
	return strings.Split(strings.ReplaceAll(err.Error(), path, "FILE"), "\n")
}

func TestEmptyFileIsTheDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "api:\nops:\n  listen:\n"} {
		c := load(t, text)
		c.lines, c.foreign, c.warnings = nil, nil, nil
		if want := Default(); !reflect.DeepEqual(c, want) {
			t.Errorf("%q\n got %+v\nwant %+v", text, c.Redacted(), want.Redacted())
		}
	}
}

func TestSampleIsTheDefaults(t *testing.T) {
	c := load(t, string(Sample))
	if problems := c.Check(Roles...); len(problems) > 0 {
		t.Fatalf("the sample has mistakes: %v", problems)
	}

	carrier := *withDefaults[Carrier]()
	carrier.Name, carrier.Prefixes = "lumitel", []string{"61", "62", "68", "69"}
	link := *withDefaults[Link]()
	link.Name, link.Address, link.SystemID, link.Password = "lumitel-1", "127.0.0.1:2775", "demo", "demo"
	carrier.Links = []Link{link}
	want := Default()
	want.Carriers = []Carrier{carrier}
	want.Database.URL = c.Database.URL
	want.Redis.URL = c.Redis.URL
	c.lines, c.foreign, c.warnings = nil, nil, nil
	if !reflect.DeepEqual(c, want) {
		t.Errorf("\n got %v\nwant %v", c.Redacted(), want.Redacted())
	}
}

// Every key stands in the sample, with a comment in the line above it.
func TestSampleExplainsEveryKey(t *testing.T) {
	c := load(t, string(Sample))
	lines := strings.Split(string(Sample), "\n")
	walk(c, func(l leaf) {
		if l.within != nil { // the keys of tls's object are explained at tls
			return
		}
		line := c.lines[l.path]
		if line == 0 {
			t.Errorf("%s is not in the sample", l.path)
			return
		}
		if above := strings.TrimSpace(lines[line-2]); !strings.HasPrefix(above, "#") {
			t.Errorf("%s has no comment above it (line %d): %q", l.path, line, above)
		}
	})
}

// A key of an earlier version is refused with what to do instead.
func TestRemovedKeysNameTheirReplacement(t *testing.T) {
	got := refused(t, "database:\n  session_url: postgres://h/d\n")
	if len(got) != 1 || !strings.HasPrefix(got[0], "database.session_url (line 2): was removed: point database.url at PostgreSQL itself") {
		t.Errorf("%q", got)
	}
}

func TestUnknownKeysNamePathAndLine(t *testing.T) {
	got := refused(t, `api:
  listn: 127.0.0.1:1
carriers:
  - name: a
    links:
      - name: b
        windw: 4
        tls: {cacert: x}
smpp: {}
`)
	want := []string{
		"api.listn (line 2): unknown key",
		"carriers[0].links[0].windw (line 7): unknown key",
		"carriers[0].links[0].tls.cacert (line 8): unknown key",
		"smpp (line 9): unknown key",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWrongTypes(t *testing.T) {
	got := refused(t, `api: 7
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
`)
	want := []string{
		"api (line 1): must be an object with keys",
		`messages.validity (line 3): must be a duration such as 90s, 5m or 24h, not "24"`,
		`messages.max_segments (line 4): must be a whole number, not "many"`,
		`webhooks.allow_private (line 6): must be true or false, not "yes"`,
		`webhooks.retry_delays[1] (line 7): must be a duration such as 90s, 5m or 24h, not "soon"`,
		"webhooks.timeout (line 8): must be a single value",
		"carriers[0].prefixes (line 10): must be a list",
		"carriers[0].receipt_states (line 11): must be an object with keys",
		"carriers[0].links (line 12): must be a list",
		"carriers[1] (line 13): is empty",
		"test_sender (line 14): must be a single value",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNoYAML(t *testing.T) {
	for text, want := range map[string]string{
		"api:\n  listen: a\n  listen: b\n": "line 3",
		"api: [1\n":                        "line 1",
		"a: *nowhere\n":                    "no anchor above",
		"a: 1\n---\nb: 2\n":                "more than one YAML document",
		"? [a, b]\n: 1\n":                  "line 2",
	} {
		if got := refused(t, text); !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%q: got %q, want something with %q", text, got, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing.yaml"), nil); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestValuesAsWritten(t *testing.T) {
	c := load(t, `
carriers:
  - name: a
    prefixes: [61, "062", 0x1]
    links:
      - &link
        name: one
        system_id: 0123
        password: 1e3
        system_type: |-
          true
        tps: 7
      - <<: *link
        name: two
        tls: {ca: /ca.pem}
`)
	if got, want := c.Carriers[0].Prefixes, []string{"61", "062", "0x1"}; !slices.Equal(got, want) {
		t.Errorf("prefixes %q, want %q", got, want)
	}
	one, two := c.Carriers[0].Links[0], c.Carriers[0].Links[1]
	if one.SystemID != "0123" || string(one.Password) != "1e3" || one.SystemType != "true" || one.TLS.Enabled {
		t.Errorf("link one: %q %q %q %v", one.SystemID, string(one.Password), one.SystemType, one.TLS)
	}
	if two.Name != "two" || two.SystemID != "0123" || two.TPS != 7 || !two.TLS.Enabled || two.TLS.CA != "/ca.pem" {
		t.Errorf("link two did not take over link one: %+v", two)
	}
	if two.Window != 100 || two.EnquireLink != 30*time.Second {
		t.Errorf("link two lacks defaults: %+v", two)
	}
}

func TestExpansion(t *testing.T) {
	c := load(t, `
redis: {prefix: "x${A}y$$z$${A}$1", password: "${P}"}
messages: {max_segments: "${N}"}
carriers: [{name: c, tlvs: {0x1401: "${A}"}}]
`, "A=1", "N=12", "P=p${A}", "B")
	if got, want := c.Redis.Prefix, "x1y$z${A}$1"; got != want {
		t.Errorf("prefix %q, want %q", got, want)
	}
	if got := string(c.Redis.Password); got != "p${A}" {
		t.Errorf("a variable's value was expanded again: %q", got)
	}
	if c.Messages.MaxSegments != 12 || c.Carriers[0].TLVs["0x1401"] != "1" {
		t.Errorf("got %d and %q", c.Messages.MaxSegments, c.Carriers[0].TLVs)
	}
	got := refused(t, "redis:\n  prefix: ${GONE}\n  username: ${open\nmessages: {max_segments: '${GONE}'}\n")
	want := []string{
		"redis.prefix (line 2): the environment variable GONE is not set",
		"redis.username (line 3): has a ${ that is not closed; write $$ for a dollar",
		"messages.max_segments (line 4): the environment variable GONE is not set",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// FuzzLoad: whatever the file is, Load answers, and every mistake is one line.
func FuzzLoad(f *testing.F) {
	f.Add(string(Sample))
	for _, text := range []string{"a: &a [*a]", "carriers: &c\n  <<: *c\n", "&a : *a", "<<: [{a: 1}, *x]", "? {a: b}\n: c", "!t x", "%YAML 1.2\n---\na: 1", "redis: {tls: [x]}", "carriers: [null, {links: [~]}]", "api: &x\n<<: *x"} {
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
			_ = c.Redacted()
		}
		for _, p := range problems {
			if strings.ContainsAny(p.String(), "\n\r") {
				t.Errorf("%q", p)
			}
		}
	})
}

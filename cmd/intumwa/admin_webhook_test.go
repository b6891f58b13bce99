package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"intumwa/internal/postgres"
	"intumwa/webhooks"
)

// TestWebhookSecret: a secret comes by standard input or a file, is shown by the command that made or set it, and never
// again.
func TestWebhookSecret(t *testing.T) {
	s := newAdmin(t)
	s.admin("correct horse", "user_id email", "user", "create", "--email", "a@example.com", "--name", "A", "--password-stdin")
	id := number(s.admin("", "company_id credits", "company", "create", "--owner", "a@example.com", "--name", "A")["company_id"])
	pool, err := postgres.Open(t.Context(), databaseOf(t, s), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	stored := func() string {
		e, err := webhooks.New(pool, webhooks.Options{AllowPrivate: true}).Endpoint(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return e.Secret
	}
	given := func(fill string) string {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, 32)))
	}
	inFile := func(text string) string {
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	set := []string{"webhook", "set", "--company", id}
	with := func(more ...string) []string { return append(slices.Clone(set), more...) }

	made := s.admin("", "company_id url secret active", with("--url", "http://127.0.0.1:1/")...)
	if made["secret"] != stored() {
		t.Error("the secret that was made is not the one that was shown")
	}
	s.admin("", "company_id url active", with("--url", "http://127.0.0.1:1/x")...)
	s.admin("", "company_id url active", with("--active=false")...)
	if _, stdout, _ := s.run("", append([]string{"admin"}, with("--active=true")...)...); strings.Contains(stdout, "whsec") || strings.Contains(stdout, "secret") {
		t.Errorf("people are shown %q", stdout)
	}
	for _, way := range []struct {
		stdin, want string
		args        []string
	}{
		{given("a") + "\n", given("a"), with("--secret-stdin")},
		{given("b"), given("b"), with("--secret-stdin")},
		{given("c") + "\r\n", given("c"), with("--secret-stdin", "--active=false")},
		{"", given("d"), with("--secret-file", inFile(given("d")+"\n"))},
	} {
		if got := s.admin(way.stdin, "company_id url secret active", way.args...); got["secret"] != way.want || stored() != way.want {
			t.Errorf("%v: shown %v, stored %v, want %v", way.args, got["secret"], stored(), way.want)
		}
	}
	code, stdout, stderr := s.run("", append([]string{"admin"}, with("--secret", given("e"), "--json")...)...)
	if code != exitOK || stored() != given("e") || !strings.Contains(stdout, given("e")) {
		t.Errorf("%d %q", code, stdout)
	}
	if !strings.Contains(stderr, "--secret-stdin") || strings.Contains(stderr, given("e")) {
		t.Errorf("the warning is %q", stderr)
	}

	for _, try := range []struct {
		reason, stdin string
		args          []string
	}{
		{"can't be used together", given("f"), with("--secret", given("f"), "--secret-stdin")},
		{"can't be used together", given("f"), with("--secret-file", inFile(given("f")), "--secret-stdin")},
		{"can't be used together", given("f"), with("--secret-file", inFile(given("f")), "--secret", given("f"))},
		{"is empty", "", with("--secret-stdin")},
		{"is empty", "\n", with("--secret-stdin")},
		{"is empty", "", with("--secret-file", inFile(""))},
		{"is empty", "", with("--secret=")},
		{"longer than 1024 octets", strings.Repeat("x", 1<<20), with("--secret-stdin")},
		{"longer than 1024 octets", "", with("--secret-file", "/dev/zero")},
		{"no such file", "", with("--secret-file", filepath.Join(t.TempDir(), "nowhere"))},
		{"must start with whsec_", "hush-canary\n", with("--secret-stdin")},
		{"padded standard base64", given("f") + "\n\n", with("--secret-stdin")},
		{"padded standard base64", given("f") + " ", with("--secret-stdin")},
		{"24 to 64 bytes", "whsec_AAAA", with("--secret-stdin")},
	} {
		args := append([]string{"admin"}, try.args...)
		code, stdout, stderr := s.run(try.stdin, args...)
		if code == exitOK || stdout != "" || !strings.Contains(stderr, try.reason) || strings.Contains(stderr, given("f")) || strings.Contains(stderr, "canary") {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q, want the reason %q", try.args, code, stdout, stderr, try.reason)
		}
	}
	if stored() != given("e") {
		t.Error("a refused secret was stored")
	}
}

// TestWebhookSecretWithoutItsKey: a key of signing secrets that the configuration takes from a variable which is not set
// is no reason to store them in plain.
func TestWebhookSecretWithoutItsKey(t *testing.T) {
	s := newAdmin(t)
	s.admin("correct horse", "user_id email", "user", "create", "--email", "a@example.com", "--name", "A", "--password-stdin")
	id := number(s.admin("", "company_id credits", "company", "create", "--owner", "a@example.com", "--name", "A")["company_id"])
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	keyed := newShell(t, strings.Replace(string(text), "webhooks: {", `webhooks: {encryption_key: "${NO_SUCH_KEY}", `, 1))
	keyed.admin("", "company_id credits", "credits", "add", "--company", id, "--amount", "1", "--note", "x") // needs no key
	keyed.refused("NO_SUCH_KEY is not set", "", "admin", "webhook", "set", "--company", id, "--url", "http://127.0.0.1:1/")
}

// TestConfigurationKeepsSecrets: what the commands say of a configuration that is wrong holds none of its secrets.
func TestConfigurationKeepsSecrets(t *testing.T) {
	const canary = "hunter2canary"
	for _, text := range []string{
		"database: {url: 'postgres://u:hunter2canary@127.0.0.1:port/d'}",
		"database: {url: 'postgres://u:1/hunter2canary@127.0.0.1:1/d'}",
		"database: {url: 'host=127.0.0.1 port=x password = hunter2canary'}",
		"database: {url: 'host=127.0.0.1 port=1 password=hunter2canary'}",
		"database: {url: 'postgres://u:hunter2canary@127.0.0.1:1/d?sslmode=nonsense'}",
		"database: {url: 'postgres://127.0.0.1:1/d?password=hunter2canary'}",
		"database: {url: 'postgres://u:hunter2canary@127.0.0.1:1/d'}",
		"database: {url: 'postgres://127.0.0.1:1/d'}\nredis: {addresses: ['redis://u:hunter2canary@127.0.0.1:1']}",
		"database: {url: 'postgres://127.0.0.1:1/d'}\nredis: {url: 'redis://:hunter2canary@127.0.0.1:1/x'}",
		"database: {url: 'postgres://127.0.0.1:1/d'}\ncarriers: [{name: a, links: [{name: b, system_id: s, address: 's:hunter2canary@127.0.0.1:1'}]}]",
	} {
		s := newShell(t, text)
		for _, args := range [][]string{{"config", "check"}, {"config", "check", "--roles", "api"}, {"migrate"}, {"serve"}, {"admin", "links"}, {"admin", "audit"}} {
			code, stdout, stderr := s.run("", args...)
			if code == exitOK && args[0] != "config" {
				t.Errorf("%s\n%v works", text, args)
			}
			if strings.Contains(stdout+stderr, canary) {
				t.Errorf("%s\n%v says %s%s", text, args, stdout, stderr)
			}
		}
	}
}

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/webhooks"
)

// TestWebhookSecret: a secret comes by standard input or a file, and only the command that made or set it shows it.
func TestWebhookSecret(t *testing.T) {
	s := newAdmin(t)
	id := s.mustCompany("a@example.com")
	pool := s.pool()
	stored := func() (secret string) {
		if err := pool.QueryRow(t.Context(), `SELECT secret FROM webhook_endpoints`).Scan(&secret); err != nil {
			t.Fatal(err)
		}
		return secret
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
	if _, stdout, _ := s.run("", append([]string{"admin"}, with("--active=true")...)...); strings.Contains(
		stdout, "whsec") || strings.Contains(stdout, "secret") {
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
		if got := s.admin(way.stdin, "company_id url secret active", way.args...); got["secret"] != way.want ||
			stored() != way.want {
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
		{"longer than 1024 bytes", strings.Repeat("x", 1<<20), with("--secret-stdin")},
		{"longer than 1024 bytes", "", with("--secret-file", "/dev/zero")},
		{"no such file", "", with("--secret-file", filepath.Join(t.TempDir(), "nowhere"))},
		{"must start with whsec_", "plain-canary\n", with("--secret-stdin")},
		{"padded standard base64", given("f") + "\n\n", with("--secret-stdin")},
		{"padded standard base64", given("f") + " ", with("--secret-stdin")},
		{"24 to 64 bytes", "whsec_AAAA", with("--secret-stdin")},
	} {
		args := append([]string{"admin"}, try.args...)
		code, stdout, stderr := s.run(try.stdin, args...)
		if code == exitOK || stdout != "" || !strings.Contains(stderr, try.reason) || strings.Contains(stderr, given("f")) ||
			strings.Contains(stderr, "canary") {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q, want the reason %q", try.args, code, stdout, stderr, try.reason)
		}
	}
	if stored() != given("e") {
		t.Error("a refused secret was stored")
	}
}

// TestWebhookSecretWithoutKey: if the variable of the encryption key is not set, secrets are refused, not stored in
// plain text.
func TestWebhookSecretWithoutKey(t *testing.T) {
	s := newAdmin(t)
	id := s.mustCompany("a@example.com")
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	keyed := newShell(t, string(text)+"\nencryption_key: ${NO_SUCH_KEY}\n")
	// needs no key
	keyed.admin("", "company_id credits", "credits", "add", "--company", id, "--amount", "1", "--note", "x")
	keyed.refused("NO_SUCH_KEY is not set", "", "admin", "webhook", "set", "--company", id, "--url", "http://127.0.0.1:1/")
}

// TestConfigurationKeepsSecrets: errors about a configuration contain none of its secrets.
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
		"database: {url: 'postgres://127.0.0.1:1/d'}\ncarriers: [{name: a, links: [{name: b, system_id: s, address: " +
			"'s:hunter2canary@127.0.0.1:1'}]}]",
	} {
		s := newShell(t, text)
		for _, args := range [][]string{{"config", "check"}, {"config", "check", "--roles", "api"}, {"migrate"}, {"serve"},
			{"admin", "links"}, {"admin", "audit"}} {
			code, stdout, stderr := s.run("", args...)
			if code == exitOK && args[0] != "config" {
				t.Errorf("%s\n%v works", text, args)
			}
			if strings.Contains(stdout+stderr, canary) {
				t.Errorf("%s\n%v prints %s%s", text, args, stdout, stderr)
			}
		}
	}
}

// list runs a list command and returns its rows.
func (s *shell) list(args ...string) []map[string]any {
	s.t.Helper()
	code, stdout, stderr := s.run("", append(append([]string{"admin"}, args...), "--json")...)
	if code != exitOK {
		s.t.Fatalf("%v: %d %s", args, code, stderr)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || rows == nil {
		s.t.Fatalf("%v: %q, %v", args, stdout, err)
	}
	if code, table, stderr := s.run("", append([]string{"admin"}, args...)...); code != exitOK || stderr != "" ||
		len(rows) > 0 && strings.Count(table, "\n") < len(rows) {
		s.t.Errorf("%v for people: %d %q %q", args, code, table, stderr)
	}
	return rows
}

func keysIn(row map[string]any) string {
	var keys []string
	for key := range row {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// mustCompany makes a user without a password, which saves the hash, and a company with seven
// credits.
func (s *shell) mustCompany(email string) string {
	s.t.Helper()
	s.exec(`INSERT INTO users (email, name, password_hash) VALUES ($1, 'A', 'none')`, email)
	return number(s.admin("", "company_id credits", "company", "create", "--owner", email, "--name", "A", "--credits",
		"7")["company_id"])
}

// TestLists: everything provisioned is listed without secrets; a company is shown with
// its balance and endpoint.
func TestLists(t *testing.T) {
	s := newAdmin(t)
	for _, kind := range []string{"user", "company", "token", "sender", "webhook"} {
		if rows := s.list(kind, "list"); len(rows) != 0 {
			t.Errorf("%s list of nothing: %v", kind, rows)
		}
	}
	company := s.mustCompany("a@example.com")
	other := s.mustCompany("b@example.com")
	token := s.admin("", "token_id token", "token", "create", "--user", "a@example.com", "--name", "till")
	s.admin("", "token_id token", "token", "create", "--user", "b@example.com", "--name", "till",
		"--scope", "read", "--expires", "2999-01-01", "--network", "10.0.0.7/8", "--network", "196.2.8.7")
	s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "ACME")
	s.admin("", "sender_id name approved", "sender", "create", "--company", other, "--name", "OTHER")
	hook := s.admin("", "company_id url secret active", "webhook", "set", "--company", company, "--url",
		"http://127.0.0.1:1/hook")

	for _, want := range []struct {
		args []string
		rows int
		keys string
	}{
		{[]string{"user", "list"}, 2, "administrator company_id created_at disabled email name role user_id"},
		{[]string{"user", "list", "--limit", "1"}, 1, "administrator company_id created_at disabled email name role user_id"},
		{[]string{"user", "list", "--after", "1"}, 1, "administrator company_id created_at disabled email name role user_id"},
		{[]string{"company", "list"}, 2, "approved company_id credits name owner_id verified"},
		{[]string{"token", "list"}, 2, "created_at expires_at last_used_at name networks revoked_at scopes token_id user_id"},
		{[]string{"token", "list", "--user", "b@example.com"}, 1,
			"created_at expires_at last_used_at name networks revoked_at scopes token_id user_id"},
		{[]string{"sender", "list"}, 2, "approved company_id country name purpose refusal sender_id state"},
		{[]string{"sender", "list", "--company", company}, 1,
			"approved company_id country name purpose refusal sender_id state"},
		{[]string{"webhook", "list"}, 1, "active company_id failing_since previous_until url"},
	} {
		rows := s.list(want.args...)
		if len(rows) != want.rows || keysIn(rows[0]) != want.keys {
			t.Errorf("%v: %d rows, keys %s", want.args, len(rows), keysIn(rows[0]))
		}
	}
	if got := fmt.Sprint(s.list("token", "list", "--user", "b@example.com")); !strings.Contains(
		got, "expires_at:2999-01-01T00:00:00Z") ||
		!strings.Contains(got, "networks:[10.0.0.0/8 196.2.8.7/32]") || !strings.Contains(got, "scopes:[read]") {
		t.Error(got)
	}
	s.admin("", "sender_id approved", "sender", "refuse", "--id", "1", "--reason", "Whose name is it?")
	if row := s.list("sender", "list")[0]; row["state"] != "refused" || row["refusal"] != "Whose name is it?" ||
		row["purpose"] != "" {
		t.Errorf("%v", row)
	}
	if rows := s.list("company", "list"); number(rows[0]["credits"]) != "7" {
		t.Errorf("%v", rows[0])
	}
	shown := s.admin("", "company_id name owner_id owner approved verified smart_encoding credits senders webhook "+
		"spent_today bodies facts", "company", "show", "--id", company)
	endpoint, _ := shown["webhook"].(map[string]any)
	if number(shown["credits"]) != "7" || shown["owner"] != "a@example.com" ||
		endpoint["url"] != "http://127.0.0.1:1/hook" {
		t.Errorf("%v", shown)
	}
	if shown := s.admin("", "company_id name owner_id owner approved verified smart_encoding credits senders webhook "+
		"spent_today bodies facts", "company", "show", "--id", other); shown["webhook"] != nil {
		t.Errorf("%v", shown)
	}
	s.exec(`insert into company_facts (company_id, nif, phone) values ($1, '4000123456', '+257 22 21 00 00')`, company)
	for id, missing := range map[string]string{company: "[trade_register address contact document]",
		other: "[nif trade_register address phone contact document]"} {
		facts, _ := s.admin("", "company_id name owner_id owner approved verified smart_encoding credits senders webhook "+
			"spent_today bodies facts", "company", "show", "--id", id)["facts"].(map[string]any)
		if got := fmt.Sprint(facts["missing"]); got != missing || (facts["nif"] == "4000123456") != (id == company) {
			t.Errorf("%v", facts)
		}
	}
	for _, args := range [][]string{{"token", "list"}, {"webhook", "list"}, {"company", "show", "--id", company},
		{"log"}} {
		_, stdout, _ := s.run("", append([]string{"admin"}, args...)...)
		for _, secret := range []string{token["token"].(string)[2:], hook["secret"].(string)} {
			if strings.Contains(stdout, secret) {
				t.Errorf("%v shows a secret", args)
			}
		}
	}
	s.refused("no company with id 99", "", "admin", "company", "show", "--id", "99")
	s.refused("no company with id 99", "", "admin", "sender", "list", "--company", "99")
	s.refused("at least 1", "", "admin", "user", "list", "--limit", "0")
}

// TestWebhookDeliveries: deliveries are listed, resent, recovered since a time, and the
// secret is rotated.
func TestWebhookDeliveries(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	empty := s.mustCompany("b@example.com")
	pool := s.pool()
	s.admin("", "company_id url secret active", "webhook", "set", "--company", company, "--url", "http://127.0.0.1:1/hook")
	hooks := webhooks.New(pool, webhooks.Options{AllowPrivate: true})
	at := time.Now()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		var events []webhooks.Event
		for i := range int64(5) {
			events = append(events, webhooks.Event{CompanyID: 1, MessageID: 100 + i, Name: webhooks.Sent,
				PhoneNumber: "+25761000001", At: at})
		}
		return hooks.Enqueue(t.Context(), tx, events)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`update webhook_undelivered set due = 'infinity', tries = 6, given_up_at = now(),
			attempts = '[{"at":"2026-03-01T08:00:00Z","ms":3,"status":500,"result":"5xx"}]' where id / 8 < 104`,
		`update webhook_deliveries set at = now() - interval '1 hour' * (id / 8 - 99) where id / 8 < 104`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	all := s.list("webhook", "deliveries", "--company", company)
	if len(all) != 5 || keysIn(all[0]) != "attempts created_at event finished_at id last_result message_id next_at "+
		"state webhook_id" || all[0]["state"] != "pending" || number(all[0]["message_id"]) != "104" {
		t.Fatalf("%v", all)
	}
	if failed := s.list("webhook", "deliveries", "--company", company, "--state", "failed"); len(failed) != 4 ||
		number(failed[0]["attempts"]) != "1" || failed[0]["last_result"] != "5xx" {
		t.Errorf("%v", failed)
	}
	if since := s.list("webhook", "deliveries", "--company", company, "--since", "150m", "--state", "failed"); len(
		since) != 2 {
		t.Errorf("%d of the last 150 minutes", len(since))
	}
	if none := s.list("webhook", "deliveries", "--company", empty); len(none) != 0 {
		t.Errorf("another company's: %v", none)
	}
	if got := s.admin("", "resent", "webhook", "resend", "--id", number(all[1]["id"])); number(got["resent"]) != "1" {
		t.Errorf("%v", got)
	}
	if got := s.admin("", "resent company_id since", "webhook", "recover", "--company", company, "--since",
		"150m"); number(got["resent"]) != "2" {
		t.Errorf("%v", got) // 100 and 101; 103 was sent again already, 102 is older
	}
	if left := s.list("webhook", "deliveries", "--company", company, "--state", "failed"); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	rotated := s.admin("", "company_id secret previous_until", "webhook", "rotate", "--company", company)
	until, err := time.Parse(time.RFC3339, rotated["previous_until"].(string))
	if secret, _ := rotated["secret"].(string); !strings.HasPrefix(secret, "whsec_") || err != nil ||
		time.Until(until) < 23*time.Hour {
		t.Errorf("%v", rotated)
	}
	s.refused("less than a day ago", "", "admin", "webhook", "rotate", "--company", company)
	if ended := s.admin("", "company_id previous_until", "webhook", "rotate", "--company", company,
		"--end"); ended["previous_until"] != nil {
		t.Errorf("%v", ended)
	}
	s.refused("not found", "", "admin", "webhook", "resend", "--id", "99")
	s.refused("not found", "", "admin", "webhook", "rotate", "--company", empty)
	s.refused("no company with id 99", "", "admin", "webhook", "deliveries", "--company", "99")
	s.refused("no company with id 99", "", "admin", "webhook", "recover", "--company", "99", "--since", "24h")
	s.refused("is no time", "", "admin", "webhook", "recover", "--company", company, "--since", "yesterday")
	s.refused("", "", "admin", "webhook", "deliveries", "--company", company, "--state", "exhausted")
}

// TestEveryChangeIsRecorded: each command that changes something writes one audit entry
// with the operator, the act, before and after; a refused command writes none.
func TestEveryChangeIsRecorded(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	s.exec(`insert into links (name, carrier, state) values ('lumitel-1', 'lumitel', 'bound')`)
	s.exec(`insert into users (email, name, password_hash, company_id, role) values ('b@example.com', 'B', 'x', 1,
		'reader')`)
	sink := httptest.NewServer(http.NotFoundHandler())
	defer sink.Close()
	changes := []struct {
		args          []string
		act, subject  string
		before, after string
	}{
		{[]string{"company", "set", "--id", company, "--approved=true"}, "company.set", "company 1",
			`"approved":false`, `"approved":true`},
		{[]string{"credits", "add", "--company", company, "--amount=-2", "--note", "mistake"}, "credits.add", "company 1",
			`"credits":7`, `"credits":5`},
		{[]string{"sender", "create", "--company", company, "--name", "ACME"}, "sender.create", "sender 1", "",
			`"name":"ACME"`},
		{[]string{"sender", "set", "--id", "1", "--approved=true"}, "sender.set", "sender 1", `"approved":false`,
			`"approved":true`},
		{[]string{"sender", "refuse", "--id", "1", "--reason", "a bank's name"}, "sender.refuse", "sender 1",
			`"approved":true`, `"reason":"a bank's name"`},
		{[]string{"user", "role", "--email", "b@example.com", "--role", "owner"}, "user.role", "user 2", `"role":"reader"`,
			`"role":"owner"`},
		{[]string{"user", "role", "--email", "b@example.com", "--role", "none"}, "user.remove", "user 2", `"role":"owner"`,
			`"role":null`},
		{[]string{"token", "create", "--user", "a@example.com", "--name", "till"}, "token.create", "token 1", "",
			`"name":"till"`},
		{[]string{"token", "revoke", "--id", "1"}, "token.revoke", "token 1", `"revoked":false`, `"revoked":true`},
		{[]string{"test-number", "set", "--user", "a@example.com", "--number", "61000001", "--verified"}, "test_number.set",
			"user 1", "", `"verified":true`},
		{[]string{"test-number", "set", "--user", "a@example.com", "--number", "61000002"}, "test_number.set", "user 1",
			`"verified":true`, `"verified":false`},
		{[]string{"webhook", "set", "--company", company, "--url", sink.URL + "/hook?key=hidden"}, "webhook.set",
			"webhook of company 1", "", `"active":true`},
		{[]string{"webhook", "set", "--company", company, "--active=false"}, "webhook.set", "webhook of company 1",
			`"active":true`, `"active":false`},
		{[]string{"webhook", "rotate", "--company", company}, "webhook.rotate", "webhook of company 1", "", "previous_until"},
		{[]string{"webhook", "rotate", "--company", company, "--end"}, "webhook.rotation_end", "webhook of company 1",
			"previous_until", "previous_until"},
		{[]string{"link", "pause", "--name", "lumitel-1"}, "link.pause", "link lumitel-1", `"paused":false`, `"paused":true`},
		{[]string{"link", "resume", "--name", "lumitel-1"}, "link.resume", "link lumitel-1", `"paused":true`,
			`"paused":false`},
	}
	before := len(s.list("log"))
	for _, change := range changes {
		if code, _, stderr := s.run("", append([]string{"admin"}, change.args...)...); code != exitOK {
			t.Fatalf("%v: %s", change.args, stderr)
		}
	}
	log := s.list("log") // newest first
	if len(log) != before+len(changes) {
		t.Fatalf("%d changes left %d acts", len(changes), len(log)-before)
	}
	for i, change := range changes {
		act := log[len(changes)-1-i]
		was, _ := json.Marshal(act["before"])
		is, _ := json.Marshal(act["after"])
		if act["act"] != change.act || act["subject"] != change.subject || !strings.Contains(string(was), change.before) ||
			!strings.Contains(string(is), change.after) ||
			!strings.Contains(fmt.Sprint(act["actor"]), "@") {
			t.Errorf("%v: %v", change.args, act)
		}
		if change.before == "" && string(was) != "null" {
			t.Errorf("%v: before %s", change.args, was)
		}
		if text := string(was) + string(is); strings.Contains(text, "hidden") || strings.Contains(text, "61000001") ||
			strings.Contains(text, "whsec_") {
			t.Errorf("%v: the act has %s", change.args, text)
		}
	}
	for _, args := range [][]string{ // they change nothing
		{"company", "set", "--id", company, "--approved=true"},
		{"sender", "refuse", "--id", "1", "--reason", "a bank's name"}, {"token", "revoke", "--id", "1"},
		{"webhook", "set", "--company", company, "--active=false"}, {"webhook", "rotate", "--company", company, "--end"},
		{"webhook", "recover", "--company", company, "--since", "24h"}, {"link", "resume", "--name", "lumitel-1"},
		{"user", "enable", "--email", "a@example.com"},
	} {
		if code, _, stderr := s.run("", append([]string{"admin"}, args...)...); code != exitOK {
			t.Fatalf("%v: %s", args, stderr)
		}
	}
	for _, args := range [][]string{
		{"company", "set", "--id", "99", "--approved=true"}, {"credits", "add", "--company", company, "--amount=-100",
			"--note", "x"},
		{"token", "revoke", "--id", "99"}, {"sender", "create", "--company", company, "--name", "ACME"},
		{"link", "pause", "--name", "nowhere"},
		{"webhook", "set", "--company", company, "--url", "nonsense"},
		{"user", "role", "--email", "a@example.com", "--role", "reader"}, // the last owner
		{"user", "role", "--email", "b@example.com", "--role", "owner"},  // without a company
		{"user", "role", "--email", "a@example.com", "--role", "boss"},
	} {
		s.refused("", "", append([]string{"admin"}, args...)...)
	}
	if after := len(s.list("log")); after != len(log) {
		t.Errorf("%d acts of what was refused, or changed nothing", after-len(log))
	}
	if later := s.list("log", "--since", time.Now().Add(time.Hour).Format(time.RFC3339)); len(later) != 0 {
		t.Errorf("%d acts of the future", len(later))
	}
	if some := s.list("log", "--limit", "2", "--company", company); len(some) != 2 {
		t.Errorf("%d acts, want 2", len(some))
	}
}

package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// TestSenderAtCarrierCommands: a state is recorded and listed; another carrier, another state and a refusal without a
// reason are refused.
func TestSenderAtCarrierCommands(t *testing.T) {
	s := newAdminOf(t)
	for _, args := range [][]string{{"user", "create", "--email", "a@example.com", "--name", "A", "--password-stdin"},
		{"company", "create", "--owner", "a@example.com", "--name", "A"},
		{"sender", "create", "--company", "1", "--name", "ISOKO", "--approved"}} {
		if code, _, stderr := s.run("twelve green bananas", append([]string{"admin"}, args...)...); code != exitOK {
			t.Fatal(stderr)
		}
	}
	for command, want := range map[string]string{
		"--id 1 --carrier lumitel --state sent":               `no carrier is called "lumitel"`,
		"--id 1 --carrier leo --state refused":                "the reason is not 1 to 500 printable characters",
		"--id 9 --carrier leo --state sent":                   "there is no sender with id 9",
		"--id 1 --carrier leo --state maybe":                  "maybe",
		"--id 1 --carrier leo --state sent --sent-on 1/3":     "2026-03-01",
		"--id 1 --carrier leo --state sent --sent-on 2999-01": "2026-03-01",
	} {
		if code, stdout, stderr := s.run("", append([]string{"admin", "sender", "carrier", "set"},
			strings.Fields(command)...)...); code == exitOK || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s%s", command, code, stdout, stderr)
		}
	}
	list := func(args ...string) string {
		_, stdout, stderr := s.run("", append([]string{"admin", "sender", "carrier", "list", "--json"}, args...)...)
		return stdout + stderr
	}
	if got := list(); strings.TrimSpace(got) != "[]" {
		t.Errorf("a refused command left %s", got)
	}
	const keys = "carrier changed_at company_id name reason sender_id sent_on state"
	if got := s.admin("", keys, "sender", "carrier", "set", "--id", "1", "--carrier", "leo", "--state", "sent",
		"--sent-on", "2026-03-01"); got["state"] != "sent" || got["sent_on"] != "2026-03-01" || got["name"] != "ISOKO" {
		t.Errorf("%v", got)
	}
	for _, args := range [][]string{nil, {"--waiting"}, {"--id", "1"}} {
		if got := list(args...); !strings.Contains(got, `"state":"sent"`) {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := s.admin("", keys, "sender", "carrier", "set", "--id", "1", "--carrier", "leo", "--state", "refused",
		"--note", "a bank's"); got["reason"] != "a bank's" || got["sent_on"] != "2026-03-01" {
		t.Errorf("%v", got)
	}
	for _, args := range [][]string{{"--waiting"}, {"--id", "2"}} {
		if got := list(args...); strings.TrimSpace(got) != "[]" {
			t.Errorf("%v: %s", args, got)
		}
	}
}

// TestSenderRegistrationOfAGateway: on a running gateway a carrier's default is changed by a reload, and a state
// recorded by a command counts at once. A refused send is not charged.
func TestSenderRegistrationOfAGateway(t *testing.T) {
	rdb, prefix := testenv.Redis(t)
	api := rig.FreeAddress()
	config := func(leo string) string {
		return fmt.Sprintf(`
api: {listen: %q}
ops: {listen: "127.0.0.1:0"}
accounts: {otp_key: 0123456789abcdef0123456789abcdef}
database: {url: %%q}
redis: {url: %q, prefix: %q}
carriers:
  - {name: lumitel, prefixes: ["61"], links: [{name: lumitel-1, address: "127.0.0.1:1", system_id: a, password: p}]}
  - {name: leo, prefixes: ["79"], sender_registration: %s, links: [{name: leo-1, address: "127.0.0.1:1", system_id: `+
			`a, password: p}]}
`, api, redisURL(rdb), prefix, leo)
	}
	database := testenv.Database(t)
	s := newShell(t, fmt.Sprintf(config("not_needed"), database))
	s.admin("correct horse", "user_id email", "user", "create", "--email", "a@example.com", "--name", "A",
		"--password-stdin")
	company := number(s.admin("", "company_id credits", "company", "create", "--owner", "a@example.com", "--name", "A",
		"--approved", "--verified", "--credits", "9")["company_id"])
	s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "INFO", "--approved")
	token := fmt.Sprint(s.admin("", "token_id token", "token", "create", "--user", "a@example.com", "--name",
		"t")["token"])
	log := s.serve("api")
	log.has(t, "event=ready")
	send := func(to string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+api+"/v1/sms",
			strings.NewReader(`{"phone_number":"`+to+`","sender":"INFO","message":"Muraho"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.Status + answer.Header.Get("X-Error-Code")
	}
	wants := func(to, want string) {
		t.Helper()
		if got := send(to); got != want {
			t.Errorf("to %s: %s, want %s", to, got, want)
		}
	}
	const ok, refused = "200 OK", "400 Bad Requestsender_not_registered"
	wants("79000001", ok)
	if err := os.WriteFile(s.config, []byte(fmt.Sprintf(config("required"), database)), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp(t)
	log.has(t, "carriers[1].sender_registration")
	wants("79000001", refused)
	wants("61000001", ok)
	const keys = "carrier changed_at company_id name reason sender_id state"
	set := func(state string) {
		s.admin("", strings.TrimSpace(keys+map[string]string{"sent": " sent_on"}[state]), "sender", "carrier", "set", "--id",
			"1", "--carrier", "leo", "--state", state, "--reason", "x")
	}
	set("approved")
	wants("79000001", ok)
	set("refused")
	eventually(t, "the refusal counts", func() bool { return send("79000001") == refused })
	set("not_needed")
	wants("79000001", ok)
	var wrong int
	if err := s.pool().QueryRow(t.Context(), `select count(*) from (select (select credits from balances),
		(select sum(amount) from ledger), 9 - (select count(*) from messages)) x(b, l, m) where b <> l or b <> m`).Scan(
		&wrong); err != nil || wrong > 0 {
		t.Error("balance, ledger and messages differ", err)
	}
}

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/dispatcher"
	"intumwa/internal/testenv"
)

func TestProvisioning(t *testing.T) {
	s := newAdmin(t)
	if code, stdout, stderr := s.run("correct horse", "admin", "user", "create", "--email", "a@example.com", "--name", "A",
		"--password-stdin"); code != exitOK || stderr != "" || stdout != "user_id  1\nemail    a@example.com\n" {
		t.Errorf("for people: %d %q %q", code, stdout, stderr)
	}
	user := s.admin("correct horse\nignored\n", "user_id email", "user", "create", "--email", "Jean@Example.com", "--name",
		"Jean", "--password-stdin")
	if user["email"] != "jean@example.com" {
		t.Errorf("got %v", user)
	}
	for _, email := range []string{"root@example.com", "second@example.com"} {
		s.admin("correct horse", "user_id email", "user", "create", "--email", email, "--name", "R", "--administrator",
			"--password-stdin")
	}
	for _, step := range []struct {
		act                     string
		administrator, disabled bool
	}{{"reset", true, false}, {"disable", true, true}, {"enable", true, false}, {"demote", false, false}} {
		if got := s.admin("", "user_id email administrator disabled", "user", step.act, "--email",
			"second@example.com"); got["administrator"] != step.administrator || got["disabled"] != step.disabled {
			t.Errorf("%s: %v", step.act, got)
		}
	}
	if code, _, stderr := s.run("", "admin", "user", "demote", "--email", "root@example.com"); code == exitOK ||
		!strings.Contains(stderr, "last administrator") {
		t.Errorf("the last one: %d, %s", code, stderr)
	}
	token := s.admin("", "token_id token", "token", "create", "--user", "jean@example.com", "--name", "till")
	if text, _ := token["token"].(string); !regexp.MustCompile(`^` + number(token["token_id"]) +
		`\|[0-9A-Za-z]{40}$`).MatchString(text) {
		t.Errorf("token %v", token)
	}
	company := s.admin("", "company_id credits", "company", "create", "--owner", "jean@example.com", "--name", "Intore",
		"--approved", "--credits", "100")
	if number(company["credits"]) != "100" {
		t.Errorf("got %v", company)
	}
	id := number(company["company_id"])
	set := s.admin("", "company_id approved verified smart_encoding", "company", "set", "--id", id, "--verified=true",
		"--smart-encoding=true")
	if set["approved"] != true || set["verified"] != true || set["smart_encoding"] != true {
		t.Errorf("got %v", set)
	}
	if set = s.admin("", "company_id approved verified smart_encoding", "company", "set", "--id", id, "--approved=false",
		"--reason", "fraud"); set["approved"] != false || set["verified"] != true {
		t.Errorf("got %v", set)
	}
	for _, quiet := range []struct{ given, want string }{{"21:00-06:30", "21:00-06:30"}, {"none", "none"},
		{"default", ""}} {
		keys := "company_id approved verified smart_encoding quiet_hours"
		if quiet.want == "" {
			keys = "company_id approved verified smart_encoding"
		}
		if set = s.admin("", keys, "company", "set", "--id", id, "--quiet-hours", quiet.given); quiet.want != "" &&
			set["quiet_hours"] != quiet.want {
			t.Errorf("quiet hours %s: %v", quiet.given, set)
		}
	}
	for _, step := range []struct{ amount, want string }{{"--amount=50", "150"}, {"--amount=-149", "1"}} {
		if got := s.admin("", "company_id credits", "credits", "add", "--company", id, step.amount, "--note", "test"); number(
			got["credits"]) != step.want {
			t.Errorf("%s: %v", step.amount, got)
		}
	}
	if got := s.admin("", "company_id credits", "credits", "add", "--company", id, "--amount", "-1", "--note",
		"a negative amount as its own argument"); number(got["credits"]) != "0" {
		t.Errorf("got %v", got)
	}
	sender := s.admin("", "sender_id name approved", "sender", "create", "--company", id, "--name", "INTORE", "--country",
		"BI")
	if sender["name"] != "INTORE" || sender["approved"] != false {
		t.Errorf("got %v", sender)
	}
	if got := s.admin("", "sender_id approved", "sender", "set", "--id", number(sender["sender_id"]),
		"--approved=true"); got["approved"] != true {
		t.Errorf("got %v", got)
	}
	hook := s.admin("", "company_id url secret active", "webhook", "set", "--company", id, "--url",
		"http://127.0.0.1:1/hook")
	if secret, _ := hook["secret"].(string); !strings.HasPrefix(secret, "whsec_") || hook["active"] != true {
		t.Errorf("got %v", hook)
	}
	again := s.admin("", "company_id url active", "webhook", "set", "--company", id, "--url", "http://127.0.0.1:1/other",
		"--active=false")
	if again["active"] != false || again["url"] != "http://127.0.0.1:1/other" {
		t.Errorf("got %v", again)
	}
	test := s.admin("", "user_id phone_number verified", "test-number", "set", "--user", "jean@example.com", "--number",
		"79 00 00 01", "--verified")
	if test["phone_number"] != "+25779000001" || test["verified"] != true {
		t.Errorf("got %v", test)
	}

	// The API and the dashboard see what was provisioned.
	pool := s.pool()
	door := keys.NewHolders(pool, keys.Options{})
	p, err := door.Authenticate(t.Context(), token["token"].(string))
	if err != nil || !p.Company.Verified || !p.Company.Senders["INTORE"].Approved || p.TestNumber != "+25779000001" {
		t.Errorf("Authenticate: %+v, %v", p, err)
	}
	if _, err := people.NewSignIn(pool, nil).Login(t.Context(), "jean@example.com", "correct horse"); err != nil {
		t.Errorf("Login: %v", err)
	}
	if got := s.admin("", "token_id revoked", "token", "revoke", "--id",
		number(token["token_id"])); got["revoked"] != true {
		t.Errorf("got %v", got)
	}
	if _, err := door.Fresh(t.Context(), p); err == nil {
		t.Error("the revoked token passes")
	}
}

func TestProvisioningErrors(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	sender := []string{"admin", "sender", "create", "--company", company, "--name"}
	s.admin("", "sender_id name approved", append(sender[1:], "INFO")...)

	for _, try := range []struct {
		reason, stdin string
		args          []string
	}{
		{"a@example.com exists already", "x", []string{"admin", "user", "create", "--email", "A@example.com", "--name", "A",
			"--password-stdin"}},
		{"--password-stdin", "", []string{"admin", "user", "create", "--email", "b@example.com", "--name", "B"}},
		{"password is empty", "\n", []string{"admin", "user", "create", "--email", "b@example.com", "--name", "B",
			"--password-stdin"}},
		{"not an email address", "x", []string{"admin", "user", "create", "--email", "b", "--name", "B", "--password-stdin"}},
		{"--email", "", []string{"admin", "user", "create", "--name", "B"}},
		{"no user with the email b@example.com", "", []string{"admin", "token", "create", "--user", "b@example.com", "--name",
			"x"}},
		{"no scope", "", []string{"admin", "token", "create", "--user", "a@example.com", "--name", "x", "--scope", "write"}},
		{"expired already", "", []string{"admin", "token", "create", "--user", "a@example.com", "--name", "x", "--expires",
			"2020-01-01"}},
		{"no network", "", []string{"admin", "token", "create", "--user", "a@example.com", "--name", "x", "--network",
			"the office"}},
		{"names no network", "", []string{"admin", "token", "create", "--user", "a@example.com", "--name", "x", "--network",
			""}},
		{"names no scope", "", []string{"admin", "token", "create", "--user", "a@example.com", "--name", "x", "--scope", ""}},
		{"no token with id 99", "", []string{"admin", "token", "revoke", "--id", "99"}},
		{"a@example.com owns a company already", "", []string{"admin", "company", "create", "--owner", "a@example.com",
			"--name", "B"}},
		{"less than 0 credits", "", []string{"admin", "company", "create", "--owner", "a@example.com", "--name", "B",
			"--credits=-1"}},
		{"no company with id 99", "", []string{"admin", "company", "set", "--id", "99", "--approved=true"}},
		{"nothing to change", "", []string{"admin", "company", "set", "--id", company}},
		{"written as 21:00-06:00", "", []string{"admin", "company", "set", "--id", company, "--quiet-hours", "9-17"}},
		{"none or default", "", []string{"admin", "company", "set", "--id", company, "--quiet-hours="}},
		{"below zero", "", []string{"admin", "credits", "add", "--company", company, "--amount=-8", "--note", "x"}},
		{"no company with id 99", "", []string{"admin", "credits", "add", "--company", "99", "--amount", "1", "--note", "x"}},
		{"must not be 0", "", []string{"admin", "credits", "add", "--company", company, "--amount", "0", "--note", "x"}},
		{"whole number", "", []string{"admin", "credits", "add", "--company", company, "--amount", "many", "--note", "x"}},
		{"--amount", "", []string{"admin", "credits", "add", "--company", company, "--note", "x", "--amount"}},
		{"not 1-11 alphanumeric", "", append(sender[:len(sender):len(sender)], "TWELVELETTER")},
		{"test sender", "", append(sender[:len(sender):len(sender)], "INTUMWATEST")},
		{"has a sender INFO already", "", append(sender[:len(sender):len(sender)], "INFO")},
		{"no sender with id 99", "", []string{"admin", "sender", "set", "--id", "99", "--approved=true"}},
		{"--approved", "", []string{"admin", "sender", "set", "--id", "1"}},
		{"no company with id 99", "", []string{"admin", "webhook", "set", "--company", "99", "--url", "https://example.com"}},
		{"not a valid Burundi", "", []string{"admin", "test-number", "set", "--user", "a@example.com", "--number", "22123456",
			"--verified"}},
		{"no such link", "", []string{"admin", "link", "pause", "--name", "nowhere"}},
	} {
		s.refused(try.reason, try.stdin, try.args...)
	}

}

func TestLinks(t *testing.T) {
	s := newAdmin(t)
	if code, stdout, stderr := s.run("", "admin", "links", "--json"); code != exitOK || stdout != "[]\n" {
		t.Errorf("no links: %d %q %q", code, stdout, stderr)
	}
	s.exec(`insert into links (name, carrier, state, "window", tps) values ('lumitel-1', 'lumitel', 'bound', 100, 50)`)
	code, stdout, _ := s.run("", "admin", "links", "--json")
	pattern :=
		`^\[\{"carrier":"lumitel","link":"lumitel-1","state":"down","window":100,"in_flight":0,"tps":50,"since":"[^"]+",` +
			`"accepted":0,"throttled":0,"overdue":0,"broken":false,"served_at":"[^"]+","unheld":true,"refused":\{\},` +
			`"senders_held":0,"retired_to":null\}\]\n$`
	if code != exitOK || !regexp.MustCompile(pattern).MatchString(stdout) {
		t.Errorf("a link: %d %q", code, stdout)
	}
	if code, stdout, _ := s.run("", "admin", "links"); code != exitOK || !strings.HasPrefix(stdout, "carrier ") ||
		!strings.Contains(stdout, "lumitel-1") {
		t.Errorf("for people: %d %q", code, stdout)
	}
	if got := s.admin("", "link state", "link", "pause", "--name", "lumitel-1"); got["link"] != "lumitel-1" ||
		got["state"] != "paused" {
		t.Errorf("got %v", got)
	}
	if got := s.admin("", "link state", "link", "resume", "--name", "lumitel-1"); got["state"] != "down" {
		// no dispatcher holds it
		t.Errorf("got %v", got)
	}
}

// TestLinkResumed: resume waits for the report of the dispatcher that holds the link and
// prints its state.
func TestLinkResumed(t *testing.T) {
	s := newAdmin(t)
	pool := s.pool()
	report := func(statement string, args ...any) (rows int64) {
		tag, err := pool.Exec(t.Context(), statement, args...)
		if err != nil {
			t.Error(err)
			return 1
		}
		return tag.RowsAffected()
	}
	report(`insert into dispatchers (id, name) values (1, 'x')`)
	for _, state := range []string{"bound", "connecting", "down"} {
		t.Run(state, func(t *testing.T) {
			report(`with l as (insert into links (name, carrier, paused, state)
				values ($1, 'lumitel', true, 'paused')) insert into leases (name, holder) select 'link ' || $1, min(id)
				from dispatchers`, state)
			reported := make(chan struct{})
			go func() { // the dispatcher, at its second heartbeat
				defer close(reported)
				for report(`update links set state = $1, updated_at = now() where name = $1 and not paused`, state) == 0 {
					time.Sleep(20 * time.Millisecond)
				}
			}()
			if got := s.admin("", "link state", "link", "resume", "--name", state); got["state"] != state {
				t.Errorf("got %v", got)
			}
			<-reported
		})
	}
	report(`with l as (insert into links (name, carrier, state) values ('silent', 'lumitel', 'paused')) insert into leases
		(name, holder) select 'link silent', min(id) from dispatchers`)
	if state, err := resumed(t.Context(), pool, "silent", 100*time.Millisecond); state != "paused" || err != nil {
		t.Errorf("a dispatcher that does not report: %q, %v", state, err)
	}
	if _, err := resumed(t.Context(), pool, "nowhere", time.Minute); !errors.Is(err, dispatcher.ErrNoLink) {
		t.Errorf("a link that is gone: %v", err)
	}
}

// TestWarnings: warnings go to standard error beside the result.
func TestWarnings(t *testing.T) {
	s := newAdmin(t)
	_, _, stderr := s.run("short", "admin", "user", "create", "--email", "a@example.com", "--name", "A",
		"--password-stdin")
	if !strings.Contains(stderr, "shorter than 10 characters") || strings.Contains(stderr, "short ") {
		t.Errorf("a password of five characters: %q", stderr)
	}
	one, other := s.mustCompany("b@example.com"), s.mustCompany("c@example.com")
	create := func(company, name string, more ...string) string {
		t.Helper()
		code, _, stderr := s.run("", append([]string{"admin", "sender", "create", "--company", company, "--name", name},
			more...)...)
		if code != exitOK {
			t.Errorf("%s: %d %q", name, code, stderr)
		}
		return stderr
	}
	if warning := create(one, "LUM1CASH", "--approved"); !strings.Contains(
		warning, "LUM1CASH looks like Lumicash (wallet)") {
		t.Errorf("the name of a wallet: %q", warning)
	}
	if warning := create(one, "BANK", "--approved"); warning != "" {
		t.Errorf("the first of its name: %q", warning)
	}
	if warning := create(other, "Bank"); warning != "" {
		t.Errorf("one that is not approved: %q", warning)
	}
	id := number(s.list("sender", "list")[2]["sender_id"])
	if _, _, warning := s.run("", "admin", "sender", "set", "--id", id, "--approved=true"); !strings.Contains(
		warning, "company "+one+" may send as BANK too") {
		t.Errorf("two companies may send under one name: %q", warning)
	}
	for _, set := range [][]string{{"sender", "set", "--id", id, "--approved=false"},
		{"company", "set", "--id", one, "--approved=false"}, {"company", "set", "--id", one, "--verified=false"}} {
		if code, _, warning := s.run("", append([]string{"admin"}, set...)...); code != exitOK ||
			!strings.Contains(warning, "without --reason") {
			t.Errorf("%v: %d %q", set, code, warning)
		}
		if code, _, warning := s.run("", append(append([]string{"admin"}, set...), "--reason", "fraud")...); code != exitOK ||
			warning != "" {
			t.Errorf("%v with a reason: %d %q", set, code, warning)
		}
	}
}

// TestMistypedKey: a mistake anywhere in the configuration stops every command and is named; a key that only a role
// needs may be missing.
func TestMistypedKey(t *testing.T) {
	t.Parallel()
	config := fmt.Sprintf("database: {url: %q}\nencryption_key: ${NO_SUCH_KEY}\n", testenv.Database(t))
	for _, args := range [][]string{{"admin", "links"}, {"admin", "audit"}, {"migrate"}} {
		if code, _, stderr := newShell(t, config).run("", args...); code != exitOK {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
		s := newShell(t, config+"messages: {validty: 2h}\n")
		s.refused(s.config+" is not sound:\nmessages.validty (line 3): unknown key", "", args...)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/messages"
)

// carriersOf returns the carriers' part of a configuration: names with their prefixes.
func carriersOf(pairs ...string) string {
	text := "carriers:\n"
	for i := 0; i < len(pairs); i += 2 {
		text += fmt.Sprintf("  - {name: %[1]s, prefixes: [%[2]s], links: [{name: %[1]s-1, address: %[3]q, system_id: demo, "+
			"password: demo}]}\n", pairs[i], pairs[i+1], netip.MustParseAddrPort("127.0.0.1:1"))
	}
	return text
}

// TestRetire: a dry run changes nothing; the act hands over or refunds what waits, once, and says what is left.
func TestRetire(t *testing.T) {
	t.Parallel()
	s := newShell(t, fmt.Sprintf("database: {url: %q}\n", testenv.Database(t))+
		carriersOf("smart", `"75"`, "leo", `"79"`, "lumitel", `"61"`))
	retire := func(ok bool, args ...string) (got map[string]any, stderr string) {
		t.Helper()
		code, stdout, stderr := s.run("", append([]string{"admin", "carrier", "retire", "--json"}, args...)...)
		if ok != (code == exitOK) {
			t.Fatalf("%q: %d %s", args, code, stderr)
		}
		if stdout != "" {
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("%v: %s", err, stdout)
			}
		}
		return got, stderr
	}
	s.admin("twelve green bananas", "user_id email", "user", "create", "--email", "a@example.com", "--name", "A",
		"--password-stdin")
	s.admin("", "company_id credits", "company", "create", "--owner", "a@example.com", "--name", "Isoko", "--approved",
		"--credits", "1")
	s.waiting(5, func(i int, m *messages.Message) {
		m.CompanyID, m.Carrier, m.Segments, m.Test = 1, "smart", 1+i%2, i == 4
		if i == 1 {
			m.SendAt, m.Scheduled = time.Now().Add(time.Hour), true
		}
	})
	s.exec(`insert into segments (message_id, segment, total, carrier, link, key, submitted_at) select id, 1, 1, 'smart',
		'', '?x', now() from messages where phone_number like '%0'`)

	dry, _ := retire(true, "--name", "smart", "--to", "leo", "--dry-run")
	sum := func(messages, segments, credits float64) map[string]any {
		return map[string]any{"messages": messages, "segments": segments, "companies": min(messages, 1.0), "credits": credits,
			"more": false}
	}
	for key, want := range map[string]map[string]any{"waiting": sum(3, 4, 3), "scheduled": sum(1, 2, 2),
		"in_hand": sum(0, 0, 0), "at_carrier": sum(1, 1, 1), "unregistered": sum(0, 0, 0)} {
		if fmt.Sprint(dry[key]) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", key, dry[key], want)
		}
	}
	if dry["messages"] != 4.0 || dry["segments"] != 6.0 || dry["companies"] != 1.0 || dry["credits"] != 5.0 ||
		dry["more"] != false || dry["dry_run"] != true {
		t.Errorf("dry run: %v", dry)
	}
	s.holds(`select (select count(*) from outbox where carrier <> 'smart') + (select count(*)
		from retired_carriers) + (select count(*) from audit_log where act like 'carrier.%')`, 0)
	s.exec(`insert into senders (company_id, name, country, purpose, approved) values (1, 'INTORE', 'BI', '', true)`)
	s.exec(`insert into sender_carriers (sender_id, company_id, carrier, state) select id, 1, 'leo', 'sent' from senders`)
	if dry, _ := retire(true, "--name", "smart", "--to", "leo", "--dry-run"); fmt.Sprint(
		dry["unregistered"]) != fmt.Sprint(sum(3, 5, 5)) {
		t.Errorf("senders that leo does not know: %v", dry["unregistered"])
	}
	s.exec(`update sender_carriers set state = 'approved'`)
	for _, wrong := range [][]string{{"--name", "smart"}, {"--name", "smart", "--to", "smart"},
		{"--name", "smart", "--to", "econet"}, {"--name", "econet", "--to", "leo"}, {"--name", "smart", "--undo"},
		{"--name", "smart", "--to", "leo", "--undo"}} {
		if _, stderr := retire(false, wrong...); !strings.Contains(stderr, "smart") && !strings.Contains(stderr, "--") {
			t.Errorf("%q: %s", wrong, stderr)
		}
	}
	if got, _ := retire(true, "--name", "smart", "--to", "leo"); got["handed_over"] != 4.0 || got["failed"] != 0.0 ||
		got["left"] != 0.0 {
		t.Errorf("to leo: %v", got)
	}
	if got, _ := retire(true, "--name", "smart", "--to", "leo"); got["handed_over"] != 0.0 || got["messages"] != 0.0 {
		t.Errorf("again: %v", got)
	}
	for _, dry := range [][]string{nil, {"--dry-run"}} {
		if _, stderr := retire(false, append([]string{"--name", "leo", "--to", "smart"}, dry...)...); !strings.Contains(
			stderr, "retired too") {
			t.Errorf("a circle: %s", stderr)
		}
	}
	if got, _ := retire(true, "--name", "leo", "--to", "refuse"); got["failed"] != 4.0 || got["credits_returned"] != 5.0 {
		t.Errorf("refuse: %v", got)
	}
	s.holds(`select count(*) from messages where status = 2 and failure_reason = 'carrier_closed' and carrier = 'leo'`, 4)
	s.holds(`select credits::int from balances`, 6)
	s.holds(`select count(*) from outbox where carrier = 'smart' and due_at = expires_at`, 1) // it may have that one
	retire(true, "--name", "smart", "--undo")
	s.holds(`select count(*) from outbox where carrier = 'smart' and due_at <= now()`, 1)
	s.holds(`select count(*) from audit_log where act = 'carrier.retire'`, 2)
	s.holds(`select count(*) from audit_log where act = 'carrier.retire.done'`, 2)
	s.holds(`select count(*) from audit_log where act = 'carrier.reopen'`, 1)
}

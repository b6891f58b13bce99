package main

import (
	"strings"
	"testing"
)

// TestSenderAtCarrierCommands: a state is recorded and listed; another carrier, another state and a refusal without a reason
// are refused.
func TestSenderAtCarrierCommands(t *testing.T) {
	s := newAdminOf(t)
	for _, args := range [][]string{{"user", "create", "--email", "a@example.com", "--name", "A", "--password-stdin"},
		{"company", "create", "--owner", "a@example.com", "--name", "A"}, {"sender", "create", "--company", "1", "--name", "ISOKO", "--approved"}} {
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
		if code, stdout, stderr := s.run("", append([]string{"admin", "sender", "carrier", "set"}, strings.Fields(command)...)...); code == exitOK || !strings.Contains(stderr, want) {
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
	if got := s.admin("", keys, "sender", "carrier", "set", "--id", "1", "--carrier", "leo", "--state", "sent", "--sent-on", "2026-03-01"); got["state"] != "sent" || got["sent_on"] != "2026-03-01" || got["name"] != "ISOKO" {
		t.Errorf("%v", got)
	}
	for _, args := range [][]string{nil, {"--waiting"}, {"--id", "1"}} {
		if got := list(args...); !strings.Contains(got, `"state":"sent"`) {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := s.admin("", keys, "sender", "carrier", "set", "--id", "1", "--carrier", "leo", "--state", "refused", "--note", "a bank's"); got["reason"] != "a bank's" || got["sent_on"] != "2026-03-01" {
		t.Errorf("%v", got)
	}
	for _, args := range [][]string{{"--waiting"}, {"--id", "2"}} {
		if got := list(args...); strings.TrimSpace(got) != "[]" {
			t.Errorf("%v: %s", args, got)
		}
	}
}

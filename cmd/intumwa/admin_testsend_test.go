package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// TestTestSend: a test message passes through the running gateway and shows its stages. It succeeds only with its
// receipt, and costs no credits.
func TestTestSend(t *testing.T) {
	t.Parallel()
	leo, leoAt := playCarrier(t, "leo", "")
	lumitel, lumitelAt := playCarrier(t, "lumitel", "")
	rdb, prefix := testenv.Redis(t)
	s := newShell(t, fmt.Sprintf(`
ops: {listen: %q}
database: {url: %q}
redis: {url: %q, prefix: %q}
carriers:
- {name: leo, prefixes: ["71"], default: true, links: [{name: leo-1, address: %q, system_id: demo, password: demo}]}
- {name: lumitel, prefixes: ["61"], links: [{name: lumitel-1, address: %q, system_id: demo, password: demo}]}
`, rig.FreeAddress(), testenv.Database(t), redisURL(rdb), prefix, leoAt, lumitelAt))
	play := func(number string, args ...string) (stages string, code int, stderr string) {
		t.Helper()
		code, stdout, stderr := s.run("", append([]string{"admin", "test-send", "--to", number}, args...)...)
		for line := range strings.Lines(stdout) {
			stages += strings.Join(strings.Fields(line)[3:], " ") + "; " // after the time, seconds and their unit
		}
		return stages, code, stderr
	}
	if stages, code, stderr := play("71000100", "--wait", "1s"); code != exitError || stages != "accepted; " ||
		!strings.Contains(stderr, "no carrier took the message within 1s") {
		t.Errorf("without a dispatcher: exit code %d, stages %q, stderr %q", code, stages, stderr)
	} else if id := regexp.MustCompile(`\b[0-9A-Z]{26}\b`).FindString(stderr); id == "" {
		t.Errorf("no id in %q", stderr)
	} else if code, stdout, _ := s.run("", "admin", "message", "show", "--id", id, "--json"); code != exitOK ||
		!strings.Contains(stdout, `"failure_reason":"cancelled"`) {
		t.Errorf("a test message that no carrier took is not withdrawn: %s", stdout) // it would expire and alarm
	}
	s.serve("dispatcher")
	eventually(t, "the carriers are bound", func() bool {
		return leo.Stats().Sessions > 0 &&
			lumitel.Stats().Sessions > 0
	})
	for _, c := range []struct {
		number, reason string // the reason of its failure
		args, stages   []string
	}{
		{"71000100", "", nil, []string{"accepted; ", "submitted segment 1 of 1 by leo-1; ", "receipt segment 1: DELIVRD; ",
			"sent; "}},
		{"71000101", "the message failed: UNDELIV", nil, []string{"accepted; ", "submitted segment 1 of 1 by leo-1; ",
			"receipt segment 1: UNDELIV; ", "failed UNDELIV"}},
		{"71000107", `no receipt within 5s, the last stage is "submitted"`, []string{"--wait", "5s"},
			[]string{"accepted; ", "submitted segment 1 of 1 by leo-1; "}},
		{"71000100", "", []string{"--carrier", "lumitel", "--sender", "NOC", "--text", strings.Repeat("ê", 71)},
			[]string{"submitted segment 1 of 2 by lumitel-1; ", "submitted segment 2 of 2 by lumitel-1; ", "sent; "}},
	} {
		stages, code, stderr := play(c.number, c.args...)
		if (code == exitOK) != (c.reason == "") || !strings.Contains(stderr, c.reason) {
			t.Errorf("%s %v: exit code %d, stderr %q, want %q", c.number, c.args, code, stderr, c.reason)
		}
		for _, stage := range c.stages { // the receipt may come before the submit_sm_resp is recorded
			if !strings.Contains(stages, stage) {
				t.Errorf("%s %v: stages %q, want %q", c.number, c.args, stages, stage)
			}
		}
	}
	if code, stdout, stderr := s.run("", "admin", "audit"); code != exitOK {
		t.Errorf("audit: %s%s", stdout, stderr)
	}
	if code, stdout, _ := s.run("", "admin", "test-send", "--to", "71000100", "--json"); code != exitOK ||
		!regexp.MustCompile(
			`^\{"id":"\w{26}","message_id":\d+,"to":"\+25771000100","sender":"INTUMWATEST","carrier":"leo","status":"sent",`+
				`"failure_reason":"","stages":\[\{"after":0,"at":"[^"]+","stage":"accepted","detail":""\},`).MatchString(stdout) {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	for _, c := range []struct {
		reason string
		args   []string
	}{
		{"not a valid Burundi (+257) number", []string{"--to", "22123456"}},
		{`no carrier "onatel"`, []string{"--to", "71000100", "--carrier", "onatel"}},
		{"not 1-11 alphanumeric", []string{"--to", "71000100", "--sender", "a name"}},
		{"0 segments", []string{"--to", "71000100", "--text", ""}},
		{"--wait must be from 1s to 1h0m0s", []string{"--to", "71000100", "--wait", "2h"}},
	} {
		s.refused(c.reason, "", append([]string{"admin", "test-send"}, c.args...)...)
	}
}

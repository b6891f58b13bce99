package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
	"intumwa/tools/rig"
)

// TestCarrierTry: the command binds beside the gateway, learns how the carrier wants its SMPP and prints the lines of
// the configuration that say so. It refuses to disturb a link that carries messages.
func TestCarrierTry(t *testing.T) {
	t.Parallel()
	leo, leoAt := playCarrier(t, "leo", "")
	leo.Faults(func(f *carriersim.Faults) { f.NameSource, f.NoRelative = "0/0", true })
	rdb, prefix := testenv.Redis(t)
	s := newShell(t, fmt.Sprintf(`
ops: {listen: %q}
database: {url: %q}
redis: {url: %q, prefix: %q}
carriers:
- {name: leo, default: true, links: [{name: leo-1, address: %q, system_id: demo, password: demo}, {name: leo-2, `+
		`address: %q, system_id: demo, password: demo, bind: receiver}]}
`, rig.FreeAddress(), testenv.Database(t), redisURL(rdb), prefix, leoAt, leoAt))
	try := func(args ...string) (int, string, string) {
		t.Helper()
		return s.run("", append([]string{"admin", "--json", "carrier", "try"}, args...)...)
	}
	code, stdout, stderr := try("--link", "leo-1", "--to", "71000100", "--sender", "ACME")
	for _, want := range []string{`"bound":true`, `"bind":"transceiver"`, `"smsc_version":"0x34"`,
		`{"source_ton_npi":[5,0],"dest_ton_npi":[1,1],"status":"ESME_RINVSRCTON"}`,
		`"status":"ESME_RINVEXPIRY"`, `"status":"ESME_ROK"`, `"state":"DELIVRD"`, `"means":"sent"`,
		`"learnt":["source_ton_npi: {alphanumeric: [0, 0]}","validity_period: absolute","message_id_format: same"]`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s is missing in\n%s", want, stdout)
		}
	}
	if code != exitOK {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, stdout, stderr := try("--link", "leo-2"); code != exitOK || !strings.Contains(stdout, `"bind":"receiver"`) ||
		strings.Contains(stdout, "attempts") {
		t.Errorf("bind only: %d %s%s", code, stdout, stderr)
	}
	if code, stdout, _ := try("--link", "leo-1", "--to", "71000101", "--sender", "ACME"); code != exitError ||
		!strings.Contains(stdout, "UNDELIV") {
		t.Errorf("not delivered: %d %s", code, stdout)
	}
	for want, args := range map[string][]string{
		`no link "leo-9"`:               {"--link", "leo-9"},
		"not a valid Burundi":           {"--link", "leo-1", "--to", "22"},
		"leo-2 only receives":           {"--link", "leo-2", "--to", "71000100"},
		"--wait must be from 1s to 1h0": {"--link", "leo-1", "--wait", "1ms"},
	} {
		s.refused(want, "", append([]string{"admin", "carrier", "try"}, args...)...)
	}
}

// TestCarrierTryBusy: a link over which a dispatcher carries messages is not disturbed.
func TestCarrierTryBusy(t *testing.T) {
	t.Parallel()
	leo, leoAt := playCarrier(t, "leo", "")
	rdb, prefix := testenv.Redis(t)
	s := newShell(t, fmt.Sprintf(`
ops: {listen: %q}
database: {url: %q}
redis: {url: %q, prefix: %q}
carriers:
- {name: leo, default: true, links: [{name: leo-1, address: %q, system_id: demo, password: demo}]}
`, rig.FreeAddress(), testenv.Database(t), redisURL(rdb), prefix, leoAt))
	s.serve("dispatcher")
	eventually(t, "the carrier is bound", func() bool { return leo.Stats().Sessions > 0 })
	if code, _, stderr := s.run("", "admin", "carrier", "try", "--link", "leo-1", "--to", "71000100"); code != exitOK {
		t.Errorf("an idle link: %s", stderr)
	}
	if code, _, stderr := s.run("", "admin", "test-send", "--to", "71000100"); code != exitOK {
		t.Fatal(stderr)
	}
	eventually(t, "the link has reported it", func() bool {
		_, stdout, _ := s.run("", "admin", "--json", "links")
		return strings.Contains(stdout, `"accepted":1`)
	})
	s.refused("--beside", "", "admin", "carrier", "try", "--link", "leo-1", "--to", "71000100")
	began := time.Now()
	if code, _, stderr := s.run("", "admin", "carrier", "try", "--link", "leo-1", "--to", "71000100",
		"--beside"); code != exitOK || time.Since(began) > 30*time.Second {
		t.Errorf("--beside: %s", stderr)
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConfigImport: intumwa config check accepts a proposal once database and redis are added and its variables are
// set, and no password is printed.
func TestConfigImport(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := "group = smsc\nsmsc = smpp\nhost = h.example\nsmsc-username = u\nsmsc-password = canary\nsystem-type = a$b\n"
	for name, each := range map[string]struct{ from, path string }{
		"two operators":        {"kannel", "../../configs/importer/testdata/kannel.conf"},
		"connectors":           {"jasmin", "../../configs/importer/testdata/jasmin.txt"},
		"transmitter only":     {"kannel", file("1", link+"port = 1\n")},
		"receiver only":        {"kannel", file("2", link+"receive-port = 1\n")},
		"both":                 {"kannel", file("3", link+"port = 1\nreceive-port = 2\n")},
		"no receipts":          {"kannel", file("4", link+"transceiver-mode = 1\nno-dlr = true\n")},
		"rare enquire_link":    {"kannel", file("5", link+"transceiver-mode = 1\nenquire-link-interval = 600\n")},
		"SMPP 3.3":             {"kannel", file("6", link+"port = 1\nreceive-port = 2\ninterface-version = 33\n")},
		"odd names":            {"kannel", file("7", link+"smsc-id = 1 é/2\ntransceiver-mode = 1\n")},
		"a one-line connector": {"jasmin", file("8", "smppccm -a cid x1 host h.example username u password canary\nok\n")},
	} {
		s := newShell(t, "")
		code, proposal, stderr := s.run("", "config", "import", "--from", each.from, each.path)
		if code != exitOK || strings.Contains(proposal+stderr, "canary") {
			t.Errorf("%s: %d %s %s", name, code, proposal, stderr)
		}
		for _, variable := range regexp.MustCompile(`[A-Z0-9_]+_PASSWORD`).FindAllString(stderr, -1) {
			t.Setenv(variable, "secret")
		}
		// not on this machine
		proposal = strings.ReplaceAll(proposal, `tls: {cert: "/etc/kannel/client.pem", key: "/etc/kannel/client.pem"}`,
			"tls: true")
		rest := "database: {url: 'postgres://u:p@127.0.0.1/d'}\nredis: {url: 'redis://127.0.0.1'}\naccounts: {otp_key: " +
			"0123456789abcdef0123456789abcdef}\n"
		if err := os.WriteFile(s.config, []byte(proposal+rest), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := s.run("", "config", "check"); code != exitOK {
			t.Errorf("%s: %s in\n%s", name, stderr, proposal)
		}
	}
	newShell(t, "").refused("kannel", "", "config", "import", "--from", "asterisk", "x")
	newShell(t, "").refused("no such file", "", "config", "import", "--from", "kannel", "missing.conf")
}

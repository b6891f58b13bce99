package importer_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intumwa/configs/importer"
)

var update = flag.Bool("update", false, "write the expected proposals")

var importers = map[string]func(string) (*importer.Proposal, error){"kannel": importer.Kannel,
	"jasmin": importer.Jasmin}

// TestProposals: the files in testdata, in the forms that installations have, become the proposals beside them. Every
// line is taken over or reported, and no password is shown.
func TestProposals(t *testing.T) {
	for file, from := range map[string]string{"kannel.conf": "kannel", "jasmin.txt": "jasmin"} {
		p, err := importers[from]("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		got.WriteString(p.YAML())
		for _, i := range p.Ignored {
			fmt.Fprintln(&got, "# not imported:", i)
		}
		golden := "testdata/" + file + ".expected"
		if *update {
			if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != got.String() {
			t.Errorf("%s becomes, %v:\n%s", file, err, got.String())
		}
		if strings.Contains(got.String(), "canary") {
			t.Errorf("%s: a password is shown", file)
		}
	}
}

// TestLinks: one row for each thing that a line of a link means. Sources: smsc_smpp_create and msg_to_pdu of Kannel's
// smsc_smpp.c, SMPPClientConfig of Jasmin.
func TestLinks(t *testing.T) {
	for _, each := range []struct {
		from, lines string
		want        string // lines of the proposal, |
		ignored     string // names
	}{
		{"kannel", "port = 2775", "bind: transmitter|confirm: submit", ""},
		{"kannel", "alt-host = b.example\nalt-port = 0", `addresses: ["b.example:2775"]`, "alt-port"},
		{"kannel", "port = x", `address: "h.example:2775"`, "port"},
		{"jasmin", "port 0", `address: "h.example:2775"`, "port"},
		{"kannel", "port = 2775\ntransceiver-mode = true", "bind: transceiver|window: 10", ""},
		{"kannel", "transceiver-mode = 1", `address: "h.example:2775"|bind: transceiver`, ""},
		{"kannel", "port = 2775\nreceive-port = 2776", `bind: transmitter_receiver|receiver: {address: "h.example:2776"}`,
			""},
		{"kannel", "port = 2775\nreceive-port = 2775", "bind: transmitter_receiver", ""},
		{"kannel", "receive-port = 2776", `bind: receiver|address: "h.example:2776"`, ""},
		{"kannel", "transceiver-mode = 1\ninterface-version = 33", "interface_version: 0x33", ""},
		{"kannel", "transceiver-mode = 1\ninterface-version = 3", "", "interface-version"},
		{"kannel", "transceiver-mode = 1\nsource-addr-ton = 0\nsource-addr-npi = 1",
			"source_ton_npi: {alphanumeric: [5, 0], short: [0, 1], international: [0, 1]}", ""},
		{"kannel", "transceiver-mode = 1\nsource-addr-autodetect = no", "source_ton_npi: [2, 1]", ""},
		{"kannel", "transceiver-mode = 1\nmsg-id-type = 0x03", "message_id_format: same", ""},
		{"kannel", "transceiver-mode = 1\nmsg-id-type = 2", "message_id_format: decimal_to_hex", ""},
		{"kannel", "transceiver-mode = 1\nmsg-id-type = 9", "", "msg-id-type"},
		{"kannel", "transceiver-mode = 1\nuse-ssl = true", "tls: true", ""},
		{"kannel", "transceiver-mode = 1\nservice-type = \"VMA\"", `service_type: "VMA"`, ""},
		{"kannel", "transceiver-mode = 1\nservice-type = LONGER", "", "service-type"},
		{"kannel", "transceiver-mode = 1\nno-dlr = true", "confirm: submit|registered_delivery: 0", ""},
		{"kannel", "transceiver-mode = 1\nalt-charset = UTF-8", "", "alt-charset"},
		{"kannel", "transceiver-mode = 1\nalt-charset = GSM", "alphabet: gsm7", ""},
		{"kannel", "transceiver-mode = 1\nalt-host = h2.example\nalt-port = 9", `addresses: ["h2.example:9"]`, ""},
		{"kannel", "transceiver-mode = 1\nour-host = 192.0.2.1", `local_address: "192.0.2.1"`, ""},
		{"kannel", "transceiver-mode = 1\nenquire-link-interval = 600", "enquire_link: 600s|unknown_hold: 1220s", ""},
		{"kannel", "transceiver-mode = 1\nsystem-type = a$b", `system_type: "a$$b"`, ""},
		{"kannel", "transceiver-mode = 1\nthroughput = lots", "", "throughput"},
		{"kannel", "transceiver-mode = 1\nallowed-prefix = 25722", `prefixes: ["22"]`, ""},
		{"kannel", "transceiver-mode = 1\nallowed-prefix = 250788123456", "default: true", "allowed-prefix"},
		{"jasmin", "", "source_ton_npi: [2, 1]|dest_ton_npi: [1, 1]|tps: 1|bind: transceiver", ""},
		{"jasmin", "src_ton [evil", "source_ton_npi: [2, 1]", "src_ton"},
		{"jasmin", "bind sideways", "", ""},
		{"jasmin", "dlr_msgid 2", "message_id_format: decimal_to_hex", ""},
		{"jasmin", "addr_range ^25771", `address_range: "^25771"`, ""},
		{"jasmin", "coding 8", "", "coding"},
	} {
		text := "group = smsc\nsmsc = smpp\nhost = h.example\nsmsc-username = u\nsmsc-password = p\nsystem-type = \"\"\n" +
			each.lines
		if strings.Contains(each.lines, "system-type") {
			text = strings.Replace(text, "system-type = \"\"\n", "", 1)
		}
		if each.from == "jasmin" {
			text = "smppccm -a cid x1 host h.example username u password p\n" + each.lines + "\nok\n"
		}
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := importers[each.from](path)
		if err != nil {
			t.Errorf("%s: %v", each.lines, err)
			continue
		}
		for line := range strings.SplitSeq(each.want, "|") {
			if !strings.Contains(p.YAML(), line) {
				t.Errorf("%s: no %s in\n%s", each.lines, line, p.YAML())
			}
		}
		var names []string
		for _, i := range p.Ignored {
			names = append(names, i.Name)
		}
		if got := strings.Join(names, " "); got != each.ignored {
			t.Errorf("%s: not imported %q, want %q", each.lines, got, each.ignored)
		}
	}
}

func TestUnusable(t *testing.T) {
	for text, want := range map[string]string{
		"kannel|group = core\nadmin-port = 1\n":                        "no group = smsc",
		"kannel|group = smsc\nsmsc = smpp\n\nhost = x\n":               "an empty line ends a group",
		"kannel|group smsc\n":                                          "has no =",
		"kannel|group = smsc\ninclude = \"x\"\n":                       "includes itself",
		"kannel|group = smsc\ninclude = missing\n":                     "no such file",
		"jasmin|Persisted on 2026-01-01 [Jasmin 0.11]\n\x80\x04}q\x00": "smppccm -s CID",
		"jasmin|\x80\x04\x95":                                          "smppccm -s CID",
		"jasmin|# nothing\n":                                           "no smppccm connector",
		"jasmin|host 1.2.3.4":                                          "no smppccm connector",
		"kannel|\n# " + strings.Repeat("x", 1<<20):                     "bytes",
	} {
		from, text, _ := strings.Cut(text, "|")
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := importers[from](path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text[:min(len(text), 40)], err, want)
		}
	}
}

// TestNames: ids that differ are different carriers, also if what a name may have leaves no difference. Those that
// differ in case only are one.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, each := range []struct{ ids, want string }{
		{"lumi.tel lumi-tel Lumi-Tel lumi_tel", "lumi-tel lumi-tel-2 lumi-tel-3"},
		{"é ü smsc", "smsc smsc-2 smsc-3"},
		{long + "1 " + long + "2", long[:50] + " " + long[:48] + "-2"},
		{"a.b a-b-2 a-b", "a-b a-b-2 a-b-3"},
		{"x x X", "x"},
	} {
		var text string
		for id := range strings.FieldsSeq(each.ids) {
			text += "group = smsc\nsmsc = smpp\nhost = h.example\nsmsc-id = " + id + "\n\n"
		}
		file := filepath.Join(t.TempDir(), "kannel.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := importer.Kannel(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.SplitSeq(p.YAML(), "\n") {
			if name, is := strings.CutPrefix(line, "  - name: "); is {
				got = append(got, strings.Trim(name, `"`))
			}
		}
		if strings.Join(got, " ") != each.want {
			t.Errorf("%s: %v, want %s", each.ids, got, each.want)
		}
	}
}

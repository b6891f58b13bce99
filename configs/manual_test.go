package configs

import (
	"cmp"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files")

//go:generate go test . -run TestGenerated -update

// generatedBelow is the line of docs/configuration.md below which the page is generated.
const generatedBelow = "<!-- below: go generate ./configs -->\n"

// TestGenerated: the sample and the manual's lists match the keys.
func TestGenerated(t *testing.T) {
	manual, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	intro, _, found := strings.Cut(string(manual), generatedBelow)
	if !found {
		t.Fatal("docs/configuration.md lacks the line below which it is generated")
	}
	for file, want := range map[string]string{"intumwa.sample.yaml": sampleOf(),
		"../docs/configuration.md": intro + generatedBelow + manualOf()} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what the keys generate (%v): go generate ./configs", file, err)
		}
	}
}

// TestSampleIsTheDefaults: the sample is valid and has only defaults and required keys.
func TestSampleIsTheDefaults(t *testing.T) {
	c := load(t, Sample)
	if problems := c.Check(Roles...); len(problems) > 0 {
		t.Fatalf("the sample has mistakes: %v", problems)
	}
	var carrier Carrier
	var link Link
	fill(reflect.ValueOf(&carrier).Elem())
	fill(reflect.ValueOf(&link).Elem())
	carrier.Name, carrier.Prefixes = "lumitel", []string{"61", "62", "65", "66", "67", "68", "69"}
	link.Name, link.Address, link.SystemID, link.Password = "lumitel-1", "127.0.0.1:2775", "demo", "demo"
	carrier.Links = []Link{link}
	want := Default()
	want.Carriers, want.Database.URL, want.Redis.URL = []Carrier{carrier}, c.Database.URL, c.Redis.URL
	c.lines = nil
	if !reflect.DeepEqual(c, want) {
		t.Errorf("these keys differ from the defaults: %v", c.Changed(want))
	}
}

// TestTable: every key has a text.
func TestTable(t *testing.T) {
	for name, text := range texts {
		sections := []string{"Carrier.DataCoding", "Carrier.SourceTONNPI", "Link.Receiver"} // only their keys have texts
		if text == "" && !slices.Contains(sections, name) {
			t.Errorf("%s has no text", name)
		}
	}
	keys, profile := 0, 0
	walk(load(t, Sample), func(l leaf) {
		switch {
		case l.within != nil:
		case strings.HasPrefix(l.path, "carriers["):
			profile++
		default:
			keys++
		}
	})
	if keys > 75 {
		t.Errorf("%d keys: a setting that no operator changes should be a constant", keys)
	}
	if profile > 60 { // each is a question to the carrier in docs/carriers.md
		t.Errorf("%d keys of a carrier and its links", profile)
	}
	t.Logf("%d keys, %d of a carrier", keys, profile)
}

// TestRetentionPage: docs/retention.md has a row with the default of every retention key.
func TestRetentionPage(t *testing.T) {
	page, err := os.ReadFile("../docs/retention.md")
	if err != nil {
		t.Fatal(err)
	}
	walk(load(t, Sample), func(l leaf) {
		if !strings.HasPrefix(l.path, "retention.") && l.path != "messages.inbound_retention" {
			return
		}
		row := regexp.MustCompile("(?m)^\\| .*\\| `" + regexp.QuoteMeta(l.path) + "`[^|]*\\| (\\w+)").FindStringSubmatch(
			string(page))
		if want := cmp.Or(l.field.Tag.Get("default"), "0s"); row == nil || row[1] != want {
			t.Errorf("docs/retention.md has %q for %s, default %q", row, l.path, want)
		}
	})
}

// TestPortsPage: docs/install.md has the port of every listener.
func TestPortsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	walk(load(t, Sample), func(l leaf) {
		if !strings.HasSuffix(l.path, ".listen") {
			return
		}
		_, port, _ := strings.Cut(l.field.Tag.Get("default"), ":")
		port = cmp.Or(port, `\d+`) // it is off
		if !regexp.MustCompile("(?m)^\\| " + port + " \\| .*`" + regexp.QuoteMeta(l.path) + "`").Match(page) {
			t.Errorf("docs/install.md does not name port %s of %s", port, l.path)
		}
	})
}

package deployments

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intumwa/sms"
)

// TestPrefixes: docs/carriers-of-burundi.md is the one list of prefixes. The sample, the package, Compose, Helm,
// Kubernetes and make run give a carrier the page's, and the numbering plan accepts the page's mobile ranges alone.
func TestPrefixes(t *testing.T) {
	page, err := os.ReadFile("../docs/carriers-of-burundi.md")
	if err != nil {
		t.Fatal(err)
	}
	want, mobile := map[string][]string{}, map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \| (\d\d(?:, \d\d)*) \| (.*?) \|`).FindAllStringSubmatch(
		string(page), -1) {
		prefixes := strings.Split(row[2], ", ")
		if name := strings.Trim(row[3], "`"); name != row[3] {
			want[name] = prefixes
		}
		for _, prefix := range prefixes {
			if !strings.Contains(row[1], "fixed") {
				mobile[prefix] = true
			}
		}
	}
	if len(want) != 3 || len(mobile) != 15 {
		t.Fatalf("the page has %v and %v", want, slices.Sorted(maps.Keys(mobile)))
	}
	plan := sms.NewPlan()
	for a := '0'; a <= '9'; a++ {
		for b := '0'; b <= '9'; b++ {
			prefix := string(a) + string(b)
			if _, ok := plan.Parse(prefix + "123456"); ok != mobile[prefix] {
				t.Errorf("%s: the numbering plan accepts it: %v, and the page has it as mobile: %v", prefix, ok, mobile[prefix])
			}
		}
	}
	one, list := regexp.MustCompile(`(?s)name: (lumitel|leo|onatel)\n.{0,500}?prefixes: *(\[[^\]]*\]|(?:\n *- "\d\d")+)`),
		regexp.MustCompile(`\d\d`)
	for file, carriers := range map[string]int{"../configs/intumwa.sample.yaml": 1, "package/intumwa.yaml": 1,
		"compose/intumwa.yaml": 3, "helm/example.yaml": 1, manifests: 1} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := one.FindAllStringSubmatch(string(text), -1)
		if len(found) != carriers {
			t.Errorf("%s: %d carriers with prefixes, want %d", file, len(found), carriers)
		}
		for _, carrier := range found {
			if got := list.FindAllString(carrier[2], -1); !slices.Equal(got, want[carrier[1]]) {
				t.Errorf("%s: %s has %v, the page %v", file, carrier[1], got, want[carrier[1]])
			}
		}
	}
	script, err := os.ReadFile("../scripts/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`\$\(carrier (\w+) "\$\w+" '([^']*)'`).FindAllStringSubmatch(string(script), -1)
	for _, call := range calls {
		if got := list.FindAllString(call[2], -1); !slices.Equal(got, want[call[1]]) {
			t.Errorf("make run: %s has %v, the page %v", call[1], got, want[call[1]])
		}
	}
	if len(calls) != 3 {
		t.Errorf("make run has %d carriers", len(calls))
	}
}

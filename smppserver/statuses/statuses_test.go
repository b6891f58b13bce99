package statuses_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intumwa/smpp"
	"intumwa/smppserver/statuses"
)

// TestEveryAnswerHasARow: each status that the server or its session answers with is in the tables, and each reason of
// intake's refusals that a submit_sm can have.
func TestEveryAnswerHasARow(t *testing.T) {
	t.Parallel()
	rows := slices.Concat(statuses.Binds, statuses.Requests)
	names := map[string]bool{}
	for _, row := range rows {
		if row.EN == "" || row.FR == "" {
			t.Errorf("%v has no words", row.Status)
		}
		names[row.Status.String()] = true
	}
	table := read(t, "statuses.go")
	sources, err := filepath.Glob("../*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources", err)
	}
	sources = append(sources, "../../smpp/login.go", "../../smpp/request_decode.go", "../../smpp/allowance.go")
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") || source == "../courier.go" { // customers answer with those
			continue
		}
		for _, found := range regexp.MustCompile(`\b(?:smpp\.)?(Status(?:Inv|Msg|Thr|Sys|Sub|Can|Rep|Bind|Already)\w+)`).FindAllStringSubmatch(read(t, source), -1) {
			if name := found[1]; !overlong[name] && !strings.Contains(table, "{smpp."+name+",") {
				t.Errorf("%s answers with %s, which has no row", source, name)
			}
		}
	}
	for _, found := range regexp.MustCompile(`Reason: "(\w+)"`).FindAllStringSubmatch(read(t, "../../intake/refusal.go"),
		-1) {
		if _, mapped := statuses.Of(found[1]); mapped == elsewhere[found[1]] {
			t.Errorf("a submit_sm that is refused with %s: mapped %v", found[1], mapped)
		}
	}
	if status, known := statuses.Of("insufficient_credits"); status != 0x40B || !known ||
		!names[smpp.StatusThrottled.String()] {
		t.Errorf("no credits: %v", status)
	}
}

// overlong are statuses for fields that are longer than SMPP allows; the page has one sentence for them.
var overlong = map[string]bool{"StatusInvServiceType": true, "StatusInvSystemID": true, "StatusInvSysType": true}

// elsewhere are reasons of other requests than submit_sm.
var elsewhere = map[string]bool{"no_test_number": true, "other_test_number": true, "test_quota": true,
	"quiet_hours": true,
	"empty":       true, "missing_variables": true}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

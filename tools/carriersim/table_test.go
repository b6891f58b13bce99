package carriersim

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFaultsTable: the table has every fault, in the order of Faults.
func TestFaultsTable(t *testing.T) {
	data, err := json.Marshal(Faults{})
	if err != nil {
		t.Fatal(err)
	}
	var faults map[string]any
	if err := json.Unmarshal(data, &faults); err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Concat(faultsDo, demandsDo) {
		if _, is := faults[f.name]; !is || f.does == "" {
			t.Errorf("%s is unknown, listed twice, or has no description", f.name)
		}
		delete(faults, f.name)
	}
	for name := range faults {
		t.Errorf("%s is not in the table", name)
	}
}

// TestTable: the table in the doc comment matches Fates.
func TestTable(t *testing.T) {
	source, err := os.ReadFile("fate.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(source), "type Fate struct")
	names := map[string]bool{}
	for i, f := range Fates() {
		if f.Digits != fmt.Sprintf("%02d", i) {
			t.Errorf("row %d has the digits %s", i, f.Digits)
		}
		if !strings.Contains(comment, f.Digits+" ") {
			t.Errorf("%s is not in the doc comment", f.Digits)
		}
		if names[f.Name] || f.Name == "" || f.Does == "" || f.Ends == "" {
			t.Errorf("%s: name %q is empty or taken, or a text is empty", f.Digits, f.Name)
		}
		names[f.Name] = true
	}
}

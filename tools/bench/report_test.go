package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// ran is a report of one scenario with one figure.
func ran(t *testing.T, scenario string, runs ...float64) string {
	t.Helper()
	res := result{Name: scenario}
	for _, v := range runs {
		var m measurement
		m.add("commits", "/message", v)
		res.add(m)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	if err := (&report{Results: []result{res}}).write(file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAComparison(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, now []float64
		wants    []string // fields of the figure's line
	}{
		{"half of it, whichever run is taken", []float64{6, 6.5, 5.5}, []float64{3, 3.1, 2.9},
			[]string{"commits", "6.00", "3.00", "0.50", "/message"}},
		{"it may be chance", []float64{6, 6.5, 5.5}, []float64{5.4, 5.8, 5.3},
			[]string{"commits", "6.00", "5.40", "0.90", "~", "/message"}},
		{"there was nothing", []float64{0}, []float64{2}, []string{"commits", "0", "2.00", "–", "/message"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var output strings.Builder
			if err := compareFiles(&output, []string{ran(t, "singles", c.old...), ran(t, "singles", c.now...)}); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(output.String()), "\n")
			if got := strings.Fields(lines[len(lines)-1]); strings.Join(got, " ") != strings.Join(c.wants, " ") {
				t.Errorf("the figure's line is %q, not %q", got, c.wants)
			}
		})
	}
	var pairs strings.Builder
	if err := compareFiles(&pairs, []string{ran(t, "singles", 6), ran(t, "singles", 8), ran(t, "singles", 3),
		ran(t, "singles", 4)}); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(pairs.String()), " "), "commits 7.00 3.50 0.50 /message") {
		t.Errorf("two pairs: %v\n%s", err, pairs.String())
	}
	if err := compareFiles(&strings.Builder{}, []string{ran(t, "singles", 1), ran(t, "bulk", 1)}); err == nil {
		t.Error("reports without a common scenario were compared")
	}
	if err := compareFiles(&strings.Builder{}, nil); err == nil {
		t.Error("no reports were compared")
	}
}

package carriersim

import (
	"os"
	"strings"
	"testing"
)

// TestFatesTable: the README shows the table of fates as it is.
// `intumwa carrier-sim --fates` prints it.
func TestFatesTable(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begun := strings.Cut(string(text), "<!-- fates:")
	_, rest, closed := strings.Cut(rest, "-->\n")
	shown, _, ended := strings.Cut(rest, "<!-- /fates -->")
	if !begun || !closed || !ended {
		t.Fatal("README.md has no table of fates between <!-- fates: … --> and <!-- /fates -->")
	}
	if strings.TrimSpace(shown) != strings.TrimSpace(FatesTable()) {
		t.Error("README.md's table of fates is not carriersim.Fates(): paste what `intumwa carrier-sim --fates` prints")
	}
}

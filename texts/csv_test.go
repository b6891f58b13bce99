package texts_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"intumwa/texts"
)

// TestFromCell: an import gives back what an export wrote, and changes no other text.
func TestFromCell(t *testing.T) {
	for text, cell := range map[string]string{
		"": "", "Aline": "Aline", "-500": "'-500", "=x": "'=x", "a;-b": "a;'-b", "'x": "'x", "'-x": "''-x", "''=1": "'''=1",
		"+1": "'+1", "a,'-b": "a,''-b", `"-1`: `"'-1`, `"'"-1`: `"'"-1`, "\t=1": "'\t'=1", "'\t": "''\t", "a\n'=1": "a\n''=1",
		"N'-D": "N'-D", "\uff1d1": "'\uff1d1", "'": "'", "=": "'=", "\xff-": "\xff-",
	} {
		if got := texts.Cell(text); got != cell {
			t.Errorf("%q becomes %q, want %q", text, got, cell)
		}
		if got := texts.FromCell(cell); got != text {
			t.Errorf("%q becomes %q, want %q", cell, got, text)
		}
	}
	for _, foreign := range []string{"-500", "=1", "a;-b", "d'abord", "'x", "it's -5"} {
		if got := texts.FromCell(foreign); got != foreign {
			t.Errorf("%q becomes %q", foreign, got)
		}
	}
	piece := rapid.OneOf(rapid.SampledFrom([]string{"'", "''", "-", "=", "+", "@", "\uff0b", ",", ";", "\t", "\r\n", `"`, "a",
		" ", "5"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "text"), "")
		if got := texts.FromCell(texts.Cell(text)); got != text {
			t.Fatalf("%q comes back from %q as %q", text, texts.Cell(text), got)
		}
	})
}

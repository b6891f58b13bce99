package sending

import (
	"strings"
	"testing"

	"intumwa/accounts"
	"intumwa/dashboard/web"
)

// TestTextSize: a text is measured as billed, and a line break is one character.
func TestTextSize(t *testing.T) {
	for _, try := range []struct {
		text                  string
		smart                 bool
		segments, foreign     int
		simple, more          int
		parts, first, instead string // segments, divided by |
	}{
		{text: ""},
		{text: strings.Repeat("x", 160), segments: 1},
		{text: strings.Repeat("x", 161), segments: 2, parts: strings.Repeat("x", 153) + "|" + strings.Repeat("x", 8)},
		{text: strings.Repeat("x", 152) + strings.Repeat("€", 5), segments: 2, parts: strings.Repeat("x", 152) + "|" +
			strings.Repeat("€", 5)},
		{text: strings.Repeat("ж", 66) + "😀😀😀", segments: 2, foreign: 2, first: "U+0436", parts: strings.Repeat("ж", 66) +
			"|😀😀😀"},
		{text: "it’s " + strings.Repeat("x", 100), segments: 2, foreign: 1, simple: 1, first: "U+2019", instead: "'"},
		{text: "it’s " + strings.Repeat("x", 100), smart: true, segments: 1, parts: "it's " + strings.Repeat("x", 100)},
		{text: "\u200b", segments: 1, foreign: 1, first: "U+200B"},
	} {
		m := measureOf(&accounts.Company{SmartEncoding: try.smart}, try.text, "ISOKO", false, 10)
		if m.Segments != try.segments || len(m.Foreign.List) != try.foreign || m.Simple != try.simple ||
			m.Foreign.More != try.more || try.parts != "" && strings.Join(m.Parts, "|") != try.parts || m.Changed != try.smart ||
			m.After != 10-int64(try.segments) {
			t.Errorf("%q: %+v", try.text, m)
		}
		if try.foreign > 0 && (m.Foreign.List[0].Code != try.first || try.instead != "" &&
			m.Foreign.List[0].Instead != try.instead) {
			t.Errorf("%q: %+v", try.text, m.Foreign.List[0])
		}
	}
	var many strings.Builder // the longest form: all characters differ
	for r := rune(0x4e00); many.Len() < web.MaxForm/3; r++ {
		many.WriteRune(r)
	}
	if m := measureOf(&accounts.Company{}, many.String(), "ISOKO", false, 0); len(m.Foreign.List) != web.FirstsOnPage ||
		m.Foreign.More == 0 {
		t.Errorf("%d are listed, %d are not", len(m.Foreign.List), m.Foreign.More)
	}
}

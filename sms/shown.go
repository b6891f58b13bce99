package sms

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What others wrote (a handset's text, a carrier's ids, a customer's name) comes
// to operators' terminals and pages. A terminal obeys control characters, also
// those of Latin-1's upper half, and both reorder a line at the bidirectional
// ones: with either a text could forge what else is shown.

// Obeyed tells whether a terminal or a page may do something else with r than
// show it: control characters (C0, DEL, C1), line separators, and what changes
// the direction of text.
func Obeyed(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r == '\u061C', r == '\u200E', r == '\u200F', r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// Shown is text as it may stand on one line: what would be obeyed is written out
// (\n, \x1b, \u202e), as are octets that are no UTF-8.
func Shown(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return Obeyed(r) || r == utf8.RuneError }) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, width := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			_, _ = fmt.Fprintf(&b, `\x%02x`, text[i])
		case !Obeyed(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			_, _ = fmt.Fprintf(&b, `\x%02x`, r)
		default:
			_, _ = fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

package sms

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text from outside (a handset's text, a carrier's ids, a customer's name) is shown on operators' terminals and pages.
// A terminal executes control characters, including Latin-1's, and terminals and pages reorder a line at bidirectional
// marks: with either, a text could forge what else is shown.

// IsControl reports whether a terminal or a page may execute r instead of showing it: control characters (C0, DEL, C1),
// line separators, and marks that change the direction of text.
func IsControl(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r == '\u061C', r == '\u200E', r == '\u200F', r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// Printable returns text that is safe on one line: control characters (IsControl) and bytes that are not UTF-8 are
// escaped (\n, \x1b, \u202e).
func Printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return IsControl(r) || r == utf8.RuneError }) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, width := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			_, _ = fmt.Fprintf(&b, `\x%02x`, text[i])
		case !IsControl(r):
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

// IsPrintable reports whether a text has only visible characters and spaces. A joiner or non-joiner (U+200D, U+200C)
// may be between two of them: emoji and some scripts need them.
func IsPrintable(text string) bool {
	for i, r := range text {
		joins := (r == '\u200c' || r == '\u200d') && i > 0 && i+utf8.RuneLen(r) < len(text)
		if !joins && !unicode.IsGraphic(r) {
			return false
		}
	}
	return utf8.ValidString(text)
}

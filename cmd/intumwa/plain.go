package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What others wrote (a handset's text, a carrier's ids, a customer's name) comes
// to operators' terminals by tables, JSON and the log. A terminal obeys control
// characters, also those of Latin-1's upper half, and reorders a line at the
// bidirectional ones: with either a text could forge what else is shown.

// obeyed tells whether a terminal may do something else with r than show it:
// control characters (C0, DEL, C1), line separators, and what changes the
// direction of text.
func obeyed(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r == '\u061C', r == '\u200E', r == '\u200F', r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// shown is text as it may stand in a cell of a table: what a terminal would obey
// is written out (\n, \x1b, \u202e), as are octets that are no UTF-8.
func shown(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return obeyed(r) || r == utf8.RuneError }) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, width := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			_, _ = fmt.Fprintf(&b, `\x%02x`, text[i])
		case !obeyed(r):
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

// plainJSON passes JSON on and escapes in it what encoding/json leaves as it is
// and a terminal obeys; the values stay the same. Each Write is of whole values.
type plainJSON struct{ io.Writer }

func (p plainJSON) Write(text []byte) (int, error) {
	var b []byte // as text, once something in it had to change
	for i := 0; i < len(text); {
		r, width := rune(text[i]), 1
		if r >= 0x7F {
			r, width = utf8.DecodeRune(text[i:])
		}
		// Below 0x20 stand only the line ends and tabs between values: within
		// them encoding/json has escaped all.
		if r >= 0x7F && obeyed(r) {
			if b == nil {
				b = append(make([]byte, 0, len(text)+64), text[:i]...)
			}
			b = fmt.Appendf(b, `\u%04x`, r)
		} else if b != nil {
			b = append(b, text[i:i+width]...)
		}
		i += width
	}
	if b == nil {
		return p.Writer.Write(text)
	}
	if _, err := p.Writer.Write(b); err != nil {
		return 0, err
	}
	return len(text), nil
}

// lines is an error as it may stand on a terminal; its lines stay lines.
func lines(err error) string {
	parts := strings.Split(err.Error(), "\n")
	for i := range parts {
		parts[i] = shown(parts[i])
	}
	return strings.Join(parts, "\n")
}

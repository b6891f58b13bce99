package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"intumwa/sms"
)

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
		if r >= 0x7F && sms.IsControl(r) {
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
		parts[i] = sms.Printable(parts[i])
	}
	return strings.Join(parts, "\n")
}

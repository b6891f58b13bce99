package postgres

import (
	"strings"
	"unicode/utf8"
)

// Text returns s without what no text column takes: NUL, and bytes that are not
// UTF-8.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}

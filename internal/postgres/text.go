package postgres

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Text returns s without NUL and invalid UTF-8, which PostgreSQL refuses.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}

// OrNull returns nil, which is NULL, for the zero time.
func OrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

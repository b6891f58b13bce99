package configs

import (
	"fmt"
	"log/slog"
)

const hidden = "[hidden]"

// Secret is a text that fmt, slog and encoders redact: a password, a key, a URL with a password. string(s) is the
// value.
type Secret string

// Format writes a placeholder for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.redacted()) }

// LogValue returns a placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.redacted()) }

// MarshalText returns a placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.redacted()), nil }

func (s Secret) redacted() string {
	if s == "" {
		return ""
	}
	return hidden
}

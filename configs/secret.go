package configs

import (
	"fmt"
	"log/slog"
)

const hidden = "[hidden]"

// Secret is a text that neither fmt nor slog nor an encoder prints: a password, a key, a URL that may hold a password.
// string(s) is the value.
type Secret string

// Format prints nothing of the text, under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.redacted()) }

// LogValue is what slog shows.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.redacted()) }

// MarshalText is what encoders get.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.redacted()), nil }

func (s Secret) redacted() string {
	if s == "" {
		return ""
	}
	return hidden
}

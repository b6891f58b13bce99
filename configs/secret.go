package configs

import (
	"fmt"
	"log/slog"
	"net/url"
)

const hidden = "[hidden]"

// Secret is a value that never prints itself: not through fmt, slog or an encoder.
// string(s) is the value.
type Secret string

// Format hides the value under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.redacted()) }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.redacted()) }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.redacted()), nil }

func (s Secret) redacted() string {
	if s == "" {
		return ""
	}
	return hidden
}

// URL is a server's address that may carry a password; it prints itself without user, password and query.
// string(u) is the value.
type URL string

// Format prints the address without its secrets under every verb.
func (u URL) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, u.redacted()) }

// LogValue gives slog the address without its secrets.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.redacted()) }

// MarshalText gives encoders the address without its secrets.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.redacted()), nil }

func (u URL) redacted() string {
	if u == "" {
		return ""
	}
	parsed, err := url.Parse(string(u))
	if err != nil || parsed.Scheme == "" || parsed.Opaque != "" {
		return hidden // a keyword/value connection string, or nothing we can take apart
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}

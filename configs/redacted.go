package configs

import (
	"fmt"
	"log/slog"
)

// Redacted is the whole configuration for people's eyes, by key path: secrets are hidden, addresses stand without
// their user and password.
func (c *Config) Redacted() map[string]string {
	out := map[string]string{}
	walk(c, func(l leaf) { out[l.path] = fmt.Sprint(l.value.Interface()) })
	return out
}

// LogValue is what slog shows of a Config.
func (c *Config) LogValue() slog.Value {
	var attrs []slog.Attr
	walk(c, func(l leaf) { attrs = append(attrs, slog.Any(l.path, l.value.Interface())) })
	return slog.GroupValue(attrs...)
}

// Format hides the secrets under every verb.
func (c *Config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.Redacted()) }

package configs

import (
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
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
	if strayAt(parsed) {
		return hidden // a password with a / in it, for instance, of which the host and the path have a piece each
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}

// Address is a host:port. People put more into it than that, a URL with a password for instance: what is not a plain
// address never prints itself. string(a) is the value.
type Address string

var plainAddress = regexp.MustCompile(`^[A-Za-z0-9._-]*:[0-9]{1,5}$|^\[[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?\]:[0-9]{1,5}$`)

// Format prints a plain address under every verb, and hides anything else.
func (a Address) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, a.redacted()) }

// LogValue gives slog a plain address.
func (a Address) LogValue() slog.Value { return slog.StringValue(a.redacted()) }

// MarshalText gives encoders a plain address.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.redacted()), nil }

func (a Address) redacted() string {
	if a == "" || plainAddress.MatchString(string(a)) {
		return string(a)
	}
	return hidden
}

// Host is a server's name or address; what is none never prints itself. string(h) is the value.
type Host string

// plainHosts is a host's name or address, several with their ports, or the folder of a socket.
var plainHosts = regexp.MustCompile(`^(|/[A-Za-z0-9._/-]*|[A-Za-z0-9._:,\[\]-]+)$`)

// Format prints a host under every verb, and hides anything else.
func (h Host) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, h.redacted()) }

// LogValue gives slog a host.
func (h Host) LogValue() slog.Value { return slog.StringValue(h.redacted()) }

// MarshalText gives encoders a host.
func (h Host) MarshalText() ([]byte, error) { return []byte(h.redacted()), nil }

func (h Host) redacted() string {
	if plainHosts.MatchString(string(h)) {
		return string(h)
	}
	return hidden
}

// Path is a file's. People put the file itself into it, a private key for instance: what cannot be a path never prints
// itself. string(p) is the value.
type Path string

// Format prints a path under every verb, and hides anything else.
func (p Path) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, p.redacted()) }

// LogValue gives slog a path.
func (p Path) LogValue() slog.Value { return slog.StringValue(p.redacted()) }

// MarshalText gives encoders a path.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.redacted()), nil }

func (p Path) redacted() string {
	if len(p) <= 255 && !strings.ContainsAny(string(p), "\n\r") && !strings.Contains(string(p), "-----") {
		return string(p)
	}
	return hidden
}

// strayAt says whether a URL has an @ where none belongs: then its user and password were not written as a URL wants
// them, and pieces of them stand elsewhere in it.
func strayAt(u *url.URL) bool {
	return strings.Contains(u.Host+u.Path+u.RawQuery+u.Fragment, "@")
}

package configs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
)

const hidden = "[hidden]"

// guarded is a text that may hold a secret, by right or by mistake. Neither fmt nor slog nor an encoder ever prints more
// of it than its kind lets through. string(g) is the value.
type guarded[K kind] string

// kind says what of a text may be shown; it is never asked of an empty one.
type kind interface{ shown(text string) string }

// Format prints what may be shown, under every verb.
func (g guarded[K]) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, g.redacted()) }

// LogValue gives slog what may be shown.
func (g guarded[K]) LogValue() slog.Value { return slog.StringValue(g.redacted()) }

// MarshalText gives encoders what may be shown.
func (g guarded[K]) MarshalText() ([]byte, error) { return []byte(g.redacted()), nil }

func (g guarded[K]) redacted() string {
	if g == "" {
		return ""
	}
	var k K
	return k.shown(string(g))
}

type (
	// Secret is never shown.
	Secret = guarded[secret]
	// URL is a server's address that may carry a password; it is shown without user, password and query.
	URL = guarded[location]
	// Address is a host:port. People put more into it than that, a URL with a password for instance: only a plain address is
	// shown.
	Address = guarded[address]
	// Host is a server's name or address, several with their ports, or the folder of a socket; anything else is not shown.
	Host = guarded[host]
	// Path is a file's. People put the file itself into it, a private key for instance: only what can be a path is shown.
	Path = guarded[filePath]
	// SecretFile names the file of a secret, for the key of the same name without _file. It is read whenever the configuration
	// is, so a reload takes a changed one. People put the secret itself into it: only what begins as a path does is shown.
	SecretFile = guarded[secretFile]
)

type (
	secret     struct{}
	location   struct{}
	address    struct{}
	host       struct{}
	filePath   struct{}
	secretFile struct{}
)

func (secret) shown(string) string { return hidden }

func (location) shown(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme == "" || parsed.Opaque != "" {
		return hidden // a keyword/value connection string, or nothing we can take apart
	}
	if strayAt(parsed) {
		return hidden // a password with a / in it, for instance, of which the host and the path have a piece each
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}

// strayAt says whether a URL has an @ where none belongs: then its user and password were not written as a URL wants
// them, and pieces of them stand elsewhere in it.
func strayAt(u *url.URL) bool {
	return strings.Contains(u.Host+u.Path+u.RawQuery+u.Fragment, "@")
}

var (
	plainAddress = regexp.MustCompile(`^[A-Za-z0-9._-]*:[0-9]{1,5}$|^\[[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?\]:[0-9]{1,5}$`)
	plainHosts   = regexp.MustCompile(`^(|/[A-Za-z0-9._/-]*|[A-Za-z0-9._:,\[\]-]+)$`)
)

func (address) shown(text string) string { return ifShown(plainAddress.MatchString(text), text) }

func (host) shown(text string) string { return ifShown(plainHosts.MatchString(text), text) }

func (filePath) shown(text string) string {
	return ifShown(len(text) <= 255 && !strings.ContainsAny(text, "\n\r") && !strings.Contains(text, "-----"), text)
}

func (secretFile) shown(text string) string {
	return ifShown(strings.HasPrefix(text, "/"), filePath{}.shown(text))
}

func ifShown(plain bool, text string) string {
	if plain {
		return text
	}
	return hidden
}

var secretFileType = reflect.TypeFor[SecretFile]()

const (
	fileSuffix    = "_file"
	maxSecretFile = 4096 // octets
)

// readSecret is what stands in a file, without the end of its line. Its errors do not name the file.
func readSecret(name string) (Secret, error) {
	if !strings.HasPrefix(name, "/") {
		return "", errors.New("must be the whole path of a file, from / on")
	}
	// A pipe that nobody writes to would hold the start for ever.
	if info, err := os.Stat(name); err != nil {
		return "", fmt.Errorf("reading the file: %w", withoutPath(err))
	} else if !info.Mode().IsRegular() {
		return "", errors.New("is not a plain file")
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("reading the file: %w", withoutPath(err))
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("reading the file: %w", withoutPath(err))
	}
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case len(text) > maxSecretFile:
		return "", fmt.Errorf("the file must not have more than %d octets", maxSecretFile)
	case secret == "":
		return "", errors.New("the file is empty")
	case strings.ContainsAny(secret, "\r\n\x00"):
		return "", errors.New("the file must have one line")
	}
	return Secret(secret), nil
}

// secretFiles reads the files that secrets are in. What cannot be read is missing: a mistake for a process with a role
// that needs it.
func (r *reader) secretFiles(c *Config) {
	secrets, missing := map[string]leaf{}, map[string]bool{}
	for _, p := range r.missing {
		missing[p.Key] = true
	}
	walk(c, func(l leaf) {
		if l.field.Type == secretType {
			secrets[l.path] = l
		}
	})
	walk(c, func(l leaf) {
		if l.field.Type != secretFileType || l.value.String() == "" || missing[l.path] {
			return
		}
		path := strings.TrimSuffix(l.path, fileSuffix)
		into := secrets[path]
		if into.value.String() != "" || missing[path] {
			r.problem(l.path, r.lines[l.path], "cannot be given beside %s", keyOf(into.field))
			return
		}
		secret, err := readSecret(l.value.String())
		if err != nil {
			r.missing = append(r.missing, Problem{Key: l.path, Line: r.lines[l.path], Text: err.Error()})
			return
		}
		into.value.SetString(string(secret))
		r.foreign[path] = true
	})
}

package configs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
)

// SecretFile names the file of a secret, for the key of the same name without _file. It is read whenever the
// configuration is, so a reload takes a changed one. People put the secret itself into it: only what begins as a path does
// prints itself. string(f) is the value.
type SecretFile string

// maxSecretFile is the most octets that a secret's file may have.
const maxSecretFile = 4096

// Format prints a path under every verb, and hides anything else.
func (f SecretFile) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, f.redacted()) }

// LogValue gives slog a path.
func (f SecretFile) LogValue() slog.Value { return slog.StringValue(f.redacted()) }

// MarshalText gives encoders a path.
func (f SecretFile) MarshalText() ([]byte, error) { return []byte(f.redacted()), nil }

func (f SecretFile) redacted() string {
	if f == "" || strings.HasPrefix(string(f), "/") {
		return Path(f).redacted()
	}
	return hidden
}

// read is what stands in the file, without the end of its line. Its errors do not name the file.
func (f SecretFile) read() (Secret, error) {
	if !strings.HasPrefix(string(f), "/") {
		return "", errors.New("must be the whole path of a file, from / on")
	}
	// A pipe that nobody writes to would hold the start for ever.
	if info, err := os.Stat(string(f)); err != nil {
		return "", fmt.Errorf("reading the file: %w", withoutPath(err))
	} else if !info.Mode().IsRegular() {
		return "", errors.New("is not a plain file")
	}
	file, err := os.Open(string(f))
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

var secretFileType = reflect.TypeFor[SecretFile]()

const fileSuffix = "_file"

// secretFiles reads the files that secrets are in. What cannot be read is missing: a mistake for a process with a role
// that needs it.
func (d *decoder) secretFiles(c *Config) {
	secrets := map[string]leaf{}
	walk(c, func(l leaf) {
		if l.field.Type == secretType {
			secrets[l.path] = l
		}
	})
	walk(c, func(l leaf) {
		if l.field.Type != secretFileType || l.value.String() == "" || d.isMissing(l.path) {
			return
		}
		path := strings.TrimSuffix(l.path, fileSuffix)
		into := secrets[path]
		if into.value.String() != "" || d.isMissing(path) {
			d.problem(l.path, d.lines[l.path], "cannot be given beside %s", keyOf(into.field))
			return
		}
		secret, err := SecretFile(l.value.String()).read()
		if err != nil {
			d.missing = append(d.missing, Problem{Key: l.path, Line: d.lines[l.path], Text: err.Error()})
			return
		}
		into.value.SetString(string(secret))
		d.foreign[path] = true
	})
}

func (d *decoder) isMissing(path string) bool {
	for _, p := range d.missing {
		if p.Key == path {
			return true
		}
	}
	return false
}

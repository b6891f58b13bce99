package configs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// reference matches the references that expand replaces.
	reference     = regexp.MustCompile(`\$\$|\$\{([^}]*)(\}?)`)
	plainVariable = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`)
)

// expand replaces ${NAME} in a scalar by a variable, ${file:PATH} by a file's line, and $$ by a dollar. It escapes
// values in a URL, except hosts and whole URLs. A missing value is a mistake at once, except in a secret: not every
// process needs every secret, see [Config.Check].
func (r *reader) expand(path string, line int, text string, secret bool) (expanded string, ok bool) {
	at := 0
	for _, m := range reference.FindAllStringSubmatchIndex(text, -1) {
		expanded += text[at:m[0]]
		at = m[1]
		if m[2] < 0 {
			expanded += "$"
			continue
		}
		name := text[m[2]:m[3]]
		if name == "" || m[4] == m[5] {
			r.problem(path, line, "has a ${ that is not closed; write $$ for a dollar")
			return "", false
		}
		value, err := r.referred(name)
		switch {
		case err == nil && escapes(text, m[0]):
			value = strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
		case err == nil:
		case secret:
			r.missing = append(r.missing, Problem{Key: path, Line: line, Text: err.Error()})
			return "", false
		default:
			r.problem(path, line, "%s", err)
			return "", false
		}
		expanded += value
	}
	return expanded + text[at:], true
}

// referred returns the value of a ${}. Its errors quote only variable names: other text may be a part of a secret that
// contains ${.
func (r *reader) referred(name string) (string, error) {
	if file, ok := strings.CutPrefix(name, "file:"); ok {
		if !filepath.IsAbs(file) {
			file = filepath.Join(r.env["CREDENTIALS_DIRECTORY"], file)
		}
		return readSecret(file)
	}
	value, set := r.variable(name)
	switch {
	case set:
		return value, nil
	case plainVariable.MatchString(name):
		return "", fmt.Errorf("the environment variable %s is not set", name)
	}
	return "", errors.New("names an environment variable that is not set; write $$ for a dollar")
}

// escapes reports whether a value at this offset is escaped: in the user, password, path or parameters of a URL.
func escapes(text string, at int) bool {
	text = reference.ReplaceAllStringFunc(text, func(whole string) string { return strings.Repeat("x", len(whole)) })
	_, rest, ok := strings.Cut(text, "://")
	begin := len(text) - len(rest)
	if !ok || at < begin {
		return false
	}
	authority := rest[:strings.IndexAny(rest+"/", "/?#")]
	hosts := begin + strings.LastIndexByte(authority, '@') + 1
	return at < hosts || at >= begin+len(authority)
}

const maxSecretFile = 4096 // bytes

// readSecret returns a file's content without its line end. Its errors omit the file name: it may be the secret
// itself.
func readSecret(name string) (string, error) {
	if !filepath.IsAbs(name) {
		return "", errors.New("names a file without its whole path, and no CREDENTIALS_DIRECTORY is set")
	}
	// A pipe without a writer would block the start indefinitely.
	if info, err := os.Stat(name); err != nil { //nolint:gosec // the operator names the file
		return "", fmt.Errorf("reading the file: %w", withoutPath(err))
	} else if !info.Mode().IsRegular() {
		return "", errors.New("does not name a plain file")
	}
	file, err := os.Open(name) //nolint:gosec // the operator names the file
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
		return "", fmt.Errorf("the file must not have more than %d bytes", maxSecretFile)
	case secret == "":
		return "", errors.New("the file is empty")
	case strings.ContainsAny(secret, "\r\n\x00"):
		return "", errors.New("the file must have one line")
	}
	return secret, nil
}

// withoutPath removes the file name from an error: it may be the secret itself, written by mistake.
func withoutPath(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err
	}
	return err
}

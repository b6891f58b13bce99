package configs

import (
	"fmt"
	"regexp"
	"strings"
)

// Problem is one mistake, with where it stands.
type Problem struct {
	Key  string // key path such as carriers[0].links[1].tps, or an environment variable's name; empty = the whole file
	Line int    // line of the file, 0 when the value did not come from it
	Text string // what is wrong
}

// Error is String: a single problem may be all that is wrong.
func (p Problem) Error() string { return p.String() }

// String is the problem on one line.
func (p Problem) String() string {
	switch {
	case p.Key == "" && p.Line == 0:
		return p.Text
	case p.Key == "":
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	case p.Line == 0:
		return fmt.Sprintf("%s: %s", p.Key, p.Text)
	}
	return fmt.Sprintf("%s (line %d): %s", p.Key, p.Line, p.Text)
}

// Problems is an error that lists mistakes, one a line.
type Problems []Problem

// Error lists the problems.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) orNil() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// The value is quoted only where it helps and cannot be a secret that stands in the wrong place: it is written in the
// file, not taken from the environment, and short and plain.
var (
	plainValue    = regexp.MustCompile(`^[A-Za-z0-9 ._+/-]{0,32}$`)
	plainKey      = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)
	plainVariable = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`)
)

// not is the end of a problem's text that quotes the value at a key path, or nothing.
func not(foreign map[string]bool, path, value string) string {
	if !plainValue.MatchString(value) || fromOutside(foreign, path) {
		return ""
	}
	return fmt.Sprintf(", not %q", value)
}

// fromOutside says whether the value at a key path, or the list or map that it stands in, came from the environment.
func fromOutside(foreign map[string]bool, path string) bool {
	for path != "" {
		if foreign[path] {
			return true
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return false
}

// keyShown is a key of the file as it stands in a key path. A line without its colon, "password secret", makes a key of
// the secret.
func keyShown(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return hidden
}

package configs

import (
	"fmt"
	"regexp"
	"strings"
)

// Problem is one mistake, with its place.
type Problem struct {
	Key  string // key path such as carriers[0].links[1].tps, or an environment variable's name; empty = the whole file
	Line int    // line of the file, 0 when the value did not come from it
	Text string // what is wrong; it never quotes a value
}

// Error is String: a single problem can be the whole error.
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

var plainKey = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)

// keyShown is a key as shown in paths. A line without its colon, "password secret",
// makes a key of the secret.
func keyShown(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return hidden
}

package configs

import (
	"fmt"
	"regexp"
	"strings"
)

// A mistake is told with its key path and line. The value is quoted only where it helps and cannot be a secret that
// stands in the wrong place: it is written in the file, not taken from the environment, and short and plain.
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

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// asProgram is the variable that makes the test binary the program: for what
// only a process of its own can show.
const asProgram = "INTUMWA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	for _, assignment := range os.Environ() { // the developer's own installation is not under test
		name, _, _ := strings.Cut(assignment, "=")
		if strings.HasPrefix(name, "INTUMWA_") && !strings.HasPrefix(name, "INTUMWA_TEST_") {
			_ = os.Unsetenv(name)
		}
	}
	testenv.Main(m)
}

// shell runs command lines on one configuration file.
type shell struct {
	t      *testing.T
	config string
}

func newShell(t *testing.T, config string) *shell {
	t.Helper()
	path := filepath.Join(t.TempDir(), "intumwa.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &shell{t: t, config: path}
}

func newAdmin(t *testing.T) *shell {
	t.Helper()
	return newShell(t, fmt.Sprintf("database: {url: %q}\nwebhooks: {allow_private: true}\n", testenv.Database(t)))
}

func (s *shell) run(stdin string, args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	code = run(s.t.Context(), append(args, "--config", s.config), strings.NewReader(stdin), &out, &errs)
	return code, out.String(), ownVariables.ReplaceAllString(errs.String(), "")
}

// ownVariables are the warnings about the variables of the tests themselves.
var ownVariables = regexp.MustCompile(`(?m)^intumwa: warning: INTUMWA_TEST_.*\n`)

// admin runs an admin command with --json and wants exactly these keys in its object.
func (s *shell) admin(stdin, keys string, args ...string) map[string]any {
	s.t.Helper()
	code, stdout, stderr := s.run(stdin, append(append([]string{"admin"}, args...), "--json")...)
	if code != exitOK || stderr != "" {
		s.t.Fatalf("%v: exit code %d, stderr %q", args, code, stderr)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(stdout), &object); err != nil || strings.Count(stdout, "\n") != 1 {
		s.t.Fatalf("%v: not one JSON object on a line: %q (%v)", args, stdout, err)
	}
	want := strings.Fields(keys)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, want) {
		s.t.Errorf("%v: keys %v, want %v", args, got, want)
	}
	return object
}

// refused wants a failure whose reason is on stderr and nothing on stdout.
func (s *shell) refused(reason, stdin string, args ...string) {
	s.t.Helper()
	code, stdout, stderr := s.run(stdin, args...)
	if code == exitOK || stdout != "" || !strings.Contains(stderr, reason) {
		s.t.Errorf("%v: exit code %d, stdout %q, stderr %q, want the reason %q", args, code, stdout, stderr, reason)
	}
}

// number is a JSON number as an argument.
func number(v any) string { return fmt.Sprint(v) }

package testenv

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

//go:embed tools.txt
var toolList string

// tool is a line of tools.txt.
type tool struct {
	name, source, unchecked string
}

// tools reads tools.txt.
func tools() (list []tool) {
	for line := range strings.Lines(toolList) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		list = append(list, tool{fields[0], fields[1], strings.Join(fields[2:], " ")})
	}
	return list
}

// Tool is where a program of tools.txt is. On a machine without it the test is
// skipped, or fails when CI=true, so that a green run has checked everything.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := FindTool(name)
	if err != nil {
		Lacks(t, err.Error())
	}
	return path
}

// Long leaves a test to make test-all. A shorter test of its promise is in make test.
func Long(t testing.TB) {
	t.Helper()
	if !Thorough() {
		t.Skip("make test-all runs it")
	}
}

// Thorough reports whether make test-all runs, which leaves nothing out.
func Thorough() bool { return os.Getenv("INTUMWA_TEST_LONG") != "" }

// Lacks ends a test that needs what this machine has not: it is skipped, or
// fails when CI=true. Tests skip themselves in no other way.
func Lacks(t testing.TB, what string) {
	t.Helper()
	if Strict() {
		t.Fatalf("%s; with CI=true nothing is left out", what)
	}
	t.Skip(what)
}

// Strict says that nothing may be left out, whatever the machine lacks: CI=true.
func Strict() bool { return os.Getenv("CI") == "true" }

// FindTool is Tool where there is no test to skip. The error names the program
// and the package that brings it.
func FindTool(name string) (path string, err error) {
	for _, tool := range tools() {
		if tool.name == name {
			if path, err = tool.find(); err != nil {
				return "", fmt.Errorf("%s is not here (%s): %s cannot be checked: %w", name, tool.origin(), tool.unchecked, err)
			}
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in internal/testenv/tools.txt", name)
}

func (t tool) find() (string, error) {
	if _, version, ok := strings.Cut(t.source, "@"); ok { // built by scripts/tools.sh, at this version and no other
		_, here, _, _ := runtime.Caller(0)
		return exec.LookPath(filepath.Join(filepath.Dir(here), "..", "..", ".bin", t.name+"-"+version))
	}
	return exec.LookPath(t.name)
}

func (t tool) origin() string {
	if module, ok := strings.CutPrefix(t.source, "go:"); ok {
		return "Go module " + module + ", built by scripts/tools.sh"
	}
	return "Debian package " + t.source
}

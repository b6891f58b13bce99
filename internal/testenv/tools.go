package testenv

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// Tool is the path of a program of tools.txt. Without it the test is skipped, or fails
// with CI=true, so that a green run has checked everything.
func Tool(t testing.TB, name string) string {
	t.Helper()
	list := tools()
	i := slices.IndexFunc(list, func(l tool) bool { return l.name == name })
	if i < 0 {
		t.Fatalf("%s is not in internal/testenv/tools.txt", name)
	}
	path, err := list[i].find()
	if err != nil {
		Lacks(t, fmt.Sprintf("%s is not here (%s): %s cannot be checked: %v", name, list[i].origin(), list[i].unchecked, err))
	}
	return path
}

// Long restricts a test to make test-all. make test has a shorter test of the same
// promise.
func Long(t testing.TB) {
	t.Helper()
	if !Thorough() {
		t.Skip("make test-all runs it")
	}
}

// Thorough reports whether make test-all runs.
func Thorough() bool { return os.Getenv("INTUMWA_TEST_LONG") != "" }

// Lacks ends a test whose requirement this machine lacks: it is skipped, or fails with
// CI=true. No test skips in another way.
func Lacks(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s; with CI=true nothing is left out", what)
	}
	t.Skip(what)
}

func (t tool) find() (string, error) {
	if _, version, ok := strings.Cut(t.source, "@"); ok { // built by scripts/tools.sh at exactly this version
		return exec.LookPath(filepath.Join(root(), ".bin", t.name+"-"+version))
	}
	if strings.HasPrefix(t.name, "/") { // a library
		_, err := os.Stat(t.name)
		return t.name, err
	}
	return exec.LookPath(t.name)
}

// root is the module's folder above this test's. The binary does not know it: it was built with -trimpath.
func root() string {
	folder, err := os.Getwd()
	for ; err == nil && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err == nil &&
			strings.HasPrefix(string(text), "module intumwa\n") {
			return folder
		}
	}
	return ""
}

func (t tool) origin() string {
	if module, ok := strings.CutPrefix(t.source, "go:"); ok {
		return "Go module " + module + ", built by scripts/tools.sh"
	}
	return "Debian package " + t.source
}

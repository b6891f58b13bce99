package testenv

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hiding names a tool that TestWithATool needs, for TestMissingToolFailsInCI.
const hiding = "INTUMWA_TESTENV_HIDE"

func TestWithATool(t *testing.T) {
	if name := os.Getenv(hiding); name != "" {
		Tool(t, name)
	}
}

// A missing program skips the test that needs it, and with CI=true fails it by name.
func TestMissingToolFailsInCI(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const name, source = "promtool", "Debian package prometheus"
	for _, ci := range []string{"", "true"} {
		cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", "^TestWithATool$")
		cmd.Env = []string{"PATH=" + t.TempDir(), "CI=" + ci, hiding + "=" + name}
		out, err := cmd.CombinedOutput()
		output := string(out)
		if !strings.Contains(output, name+" is not here") || !strings.Contains(output, source) {
			t.Errorf("with CI=%q it is not named:\n%s", ci, output)
		}
		if failed := err != nil; failed != (ci == "true") || !failed && !strings.Contains(output, "--- SKIP") {
			t.Errorf("with CI=%q: %v\n%s", ci, err, output)
		}
	}
}

// The set-up scripts name what they cannot get, and with CI=true fail.
func TestMissingToolEndsTheRunInCI(t *testing.T) {
	const hidden = "promtool"
	path := pathWithout(t, hidden, "apt-get")
	for _, ci := range []string{"", "true"} {
		cmd := exec.CommandContext(t.Context(), Tool(t, "bash"), "../../scripts/tools.sh")
		cmd.Env = append(os.Environ(), "PATH="+path, "CI="+ci)
		out, err := cmd.CombinedOutput()
		output := string(out)
		if !strings.Contains(output, "Please install promtool (on Debian or Ubuntu: sudo apt-get install prometheus)") ||
			!strings.Contains(output, hidden+": alerting rules") {
			t.Errorf("with CI=%q it prints\n%s", ci, output)
		}
		if strings.Contains(output, "Please install bash") {
			t.Errorf("what is here is taken for missing:\n%s", output)
		}
		if failed := err != nil; failed != (ci == "true") {
			t.Errorf("with CI=%q: %v\n%s", ci, err, output)
		}
	}
}

// pathWithout is a folder with links to the programs in PATH, except some.
func pathWithout(t *testing.T, hidden ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		entries, _ := os.ReadDir(folder) // PATH may name missing folders
		for _, entry := range entries {
			err := os.Symlink(filepath.Join(folder, entry.Name()), filepath.Join(dir, entry.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
	}
	for _, name := range hidden {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return dir
}

// No test skips or looks for programs itself: with CI=true it would be omitted silently.
func TestNoTestSkipsItself(t *testing.T) {
	alone := []string{"\tt.Skip", " t.Skip", "\ttb.Skip", "exec.LookPath(", "testing.Short("}
	files, tree := 0, os.DirFS("../..")
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != "." || entry.Name() == "testenv"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		text, err := fs.ReadFile(tree, path)
		for _, call := range alone {
			if strings.Contains(string(text), call) {
				t.Errorf("%s: %s: use testenv.Tool or testenv.Lacks", path, call)
			}
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
}

// The shell scripts pass shellcheck.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("../../scripts/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	if out, err := exec.CommandContext(t.Context(), Tool(t, "shellcheck"),
		append(scripts, "../../.ci/run", "../../deployments/backup/intumwa-backup", "../../deployments/testdata/install.sh",
			"../../deployments/package/postinstall", "../../deployments/package/preremove",
			"../../deployments/package/postremove")...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

package testenv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hiding makes this test binary ask for tools in TestWithATool, for
// TestMissingToolFailsInCI.
const hiding = "INTUMWA_TESTENV_ASK"

func TestWithATool(t *testing.T) {
	for name := range strings.FieldsSeq(os.Getenv(hiding)) {
		Tool(t, name)
	}
}

// A program that is not here skips the test that needs it, and with CI=true
// fails it by name.
func TestMissingToolFailsInCI(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools() {
		if strings.HasPrefix(tool.source, "go:") { // not looked for in PATH
			continue
		}
		for _, ci := range []string{"", "true"} {
			cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", "^TestWithATool$")
			cmd.Env = []string{"GORACE=atexit_sleep_ms=0", "PATH=" + t.TempDir(), "CI=" + ci, hiding + "=" + tool.name}
			out, err := cmd.CombinedOutput()
			said := string(out)
			if !strings.Contains(said, tool.name+" is not here") || !strings.Contains(said, "package "+tool.source) {
				t.Errorf("%s with CI=%q is not named:\n%s", tool.name, ci, said)
			}
			if failed := err != nil; failed != (ci == "true") || !failed && !strings.Contains(said, "--- SKIP") {
				t.Errorf("%s with CI=%q: %v\n%s", tool.name, ci, err, said)
			}
		}
	}
}

// The scripts that prepare a run say by name what they cannot have, and with
// CI=true end it.
func TestMissingToolEndsTheRunInCI(t *testing.T) {
	const hidden = "promtool"
	path := pathWithout(t, hidden, "apt-get")
	for _, ci := range []string{"", "true"} {
		cmd := exec.CommandContext(t.Context(), Tool(t, "bash"), "../../scripts/tools.sh")
		cmd.Env = append(os.Environ(), "PATH="+path, "CI="+ci)
		out, err := cmd.CombinedOutput()
		said := string(out)
		if !strings.Contains(said, "Please install promtool (on Debian or Ubuntu: sudo apt-get install prometheus)") ||
			!strings.Contains(said, hidden+": alerting rules") {
			t.Errorf("with CI=%q it says\n%s", ci, said)
		}
		if strings.Contains(said, "Please install bash") {
			t.Errorf("what is here is taken for missing:\n%s", said)
		}
		if failed := err != nil; failed != (ci == "true") {
			t.Errorf("with CI=%q: %v\n%s", ci, err, said)
		}
	}
}

// pathWithout is a folder with links to every program in PATH but some.
func pathWithout(t *testing.T, hidden ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		entries, _ := os.ReadDir(folder) // PATH may name folders that are not there
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

// No test skips itself or looks for a program on its own: with CI=true it would
// be left out in silence.
func TestNothingElseIsLeftOut(t *testing.T) {
	alone := regexp.MustCompile(`\b(t|tb|b|f|w|s)\.Skip(f|Now)?\(|exec\.LookPath\(|testing\.Short\(`)
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
		for _, found := range alone.FindAllString(string(text), -1) {
			t.Errorf("%s: %s: use testenv.Tool or testenv.Lacks", path, found)
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
	if out, err := exec.CommandContext(t.Context(), Tool(t, "shellcheck"), append(scripts, "../../.ci/run", "../../deployments/backup/intumwa-backup")...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A weakness that the code has fails the check for vulnerabilities; a database
// that is away is said and fails nothing.
func TestVulnerabilities(t *testing.T) {
	Tool(t, "govulncheck")
	dir := t.TempDir()
	for file, text := range map[string]string{
		"index/db.json":      `{"modified": "2026-01-01T00:00:00Z"}`,
		"index/modules.json": `[{"path": "github.com/redis/go-redis/v9", "vulns": [{"id": "GO-2026-9999", "modified": "2026-01-01T00:00:00Z"}]}]`,
		"index/vulns.json":   `[{"id": "GO-2026-9999", "modified": "2026-01-01T00:00:00Z"}]`,
		"ID/GO-2026-9999.json": `{"schema_version": "1.3.1", "id": "GO-2026-9999", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
			"summary": "made up", "details": "made up", "affected": [{"package": {"name": "github.com/redis/go-redis/v9", "ecosystem": "Go"},
			"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}], "ecosystem_specific": {"imports": [{"path": "github.com/redis/go-redis/v9"}]}}],
			"database_specific": {"url": "https://pkg.go.dev/vuln/GO-2026-9999", "review_status": "REVIEWED"}}`,
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for database, want := range map[string]string{
		"file://" + dir:      "GO-2026-9999",
		"http://127.0.0.1:1": "vulnerabilities: not checked: the database cannot be reached from here\n",
	} {
		cmd := exec.CommandContext(t.Context(), Tool(t, "bash"), "../../scripts/vulnerabilities.sh", "./internal/throttle")
		cmd.Env = append(os.Environ(), "VULNDB="+database, "VULNTIME=600") // a busy machine takes a minute to read the packages
		out, err := cmd.CombinedOutput()
		found := strings.HasPrefix(database, "file:")
		if found != (err != nil) || !strings.Contains(string(out), want) || !found && string(out) != want {
			t.Errorf("%s: %v\n%s", database, err, out)
		}
	}
}

// TestFuzzScript: what a fuzzer finds fails the script at once, and so does what does not
// compile; an end of its time that the go command takes for a failure is tried again.
func TestFuzzScript(t *testing.T) {
	const late = "--- FAIL: FuzzReceipt (3.01s)\n    context deadline exceeded\nFAIL\nexit status 1\n"
	for name, test := range map[string]struct {
		says, code string
		always     bool // else the first time
		exit, runs int
	}{
		"late once":        {late, "1", false, 0, 2},
		"late every time":  {late, "1", true, 1, 3},
		"found something":  {"--- FAIL: FuzzReceipt (0.01s)\n    --- FAIL: FuzzReceipt (0.00s)\n        receipt_test.go:3: wrong\n    Failing input written to testdata/fuzz/FuzzReceipt/1\nFAIL\n", "1", true, 1, 1},
		"found a deadline": {"--- FAIL: FuzzReceipt (0.01s)\n    context deadline exceeded\nFAIL\n    Failing input written to testdata/fuzz/FuzzReceipt/1\n", "1", true, 1, 1},
		"another's end":    {strings.ReplaceAll(late, "FuzzReceipt", "FuzzOther"), "1", true, 1, 1},
		"does not compile": {"FAIL\tintumwa/smpp [build failed]\n", "2", true, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			runs := filepath.Join(dir, "runs")
			script := fmt.Sprintf("#!/bin/sh\necho run >>'%s'\n[ %t = true ] || [ $(wc -l <'%s') -eq 1 ] || exit 0\nprintf '%%s' '%s'\nexit %s\n",
				runs, test.always, runs, test.says, test.code)
			if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), Tool(t, "bash"), "../../scripts/fuzz.sh", "^FuzzReceipt$")
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, _ := cmd.CombinedOutput()
			said, err := os.ReadFile(runs)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if exit, n := cmd.ProcessState.ExitCode(), strings.Count(string(said), "run"); exit != test.exit || n != test.runs {
				t.Errorf("exit %d after %d runs, want %d after %d\n%s", exit, n, test.exit, test.runs, out)
			}
		})
	}
}

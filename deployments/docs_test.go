package deployments

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestDocs: every link in the manual leads to a page that is there.
func TestDocs(t *testing.T) {
	pages := 0
	docs := os.DirFS("../docs")
	err := fs.WalkDir(docs, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		pages++
		page, err := fs.ReadFile(docs, path)
		if err != nil {
			return err
		}
		for _, found := range link.FindAllStringSubmatch(string(page), -1) {
			if _, err := os.Stat(filepath.Join("../docs", filepath.Dir(path), found[1])); err != nil {
				t.Errorf("%s leads to %s: %v", path, found[1], err)
			}
		}
		return nil
	})
	if err != nil || pages < 30 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

// provedBy is a test as docs/security.md names it: `TestX` (`room/x_test.go`).
var provedBy = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)` \\(`([^`]+)`\\)")

// TestSecurityPage: every promise names the tests that prove it, they are where
// it says, and no attack that is played is left out.
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, promises, found := strings.Cut(string(page), "## What is guaranteed")
	promises, _, ends := strings.Cut(promises, "\n## ")
	if !found || !ends {
		t.Fatal("the page has no section of guarantees")
	}
	rows := 0
	for line := range strings.Lines(promises) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise |") {
			continue
		}
		rows++
		_, tests, _ := strings.Cut(strings.TrimSpace(line), " | ")
		named := provedBy.FindAllStringSubmatch(tests, -1)
		if rest := provedBy.ReplaceAllString(tests, ""); len(named) == 0 || strings.Trim(rest, ", |") != "" {
			t.Errorf("not a list of tests: %s", tests)
		}
		for _, test := range named {
			text, err := os.ReadFile(filepath.Join("..", test[2]))
			if err != nil || !strings.Contains(string(text), "\nfunc "+test[1]+"(") {
				t.Errorf("%s is not in %s: %v", test[1], test[2], err)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d promises", rows)
	}
	tree, attack := os.DirFS(".."), regexp.MustCompile(`(?m)^func (TestAttack\w*)\(`)
	err = fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		for _, name := range attack.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(promises, "`"+name[1]+"` (`"+path+"`)") {
				t.Errorf("%s of %s has no row on the page", name[1], path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

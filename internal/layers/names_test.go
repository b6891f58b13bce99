package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testNames  = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)[`/]")
	testFiles  = regexp.MustCompile("`([a-z0-9_./-]+/[a-z0-9_.-]+\\.(?:go|sh|sql|html))`")
	goTestFunc = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]*)\(`)
)

// TestDocumentsNameWhatExists checks that the tests and source files that the documents name exist.
func TestDocumentsNameWhatExists(t *testing.T) {
	root, _, _ := ourPlan(t)
	tests, pages := map[string]bool{}, []string{}
	tree := os.DirFS(root)
	if err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != ".":
			return fs.SkipDir
		case strings.HasSuffix(path, ".md") && entry.Name() != "CHANGELOG.md": // which names what is gone
			pages = append(pages, path)
		case strings.HasSuffix(path, "_test.go"):
			text, err := fs.ReadFile(tree, path)
			for _, found := range goTestFunc.FindAllSubmatch(text, -1) {
				tests[string(found[1])] = true
			}
			return err
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := fs.ReadFile(tree, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testNames.FindAllSubmatch(text, -1) {
			if !tests[string(found[1])] {
				t.Errorf("%s names %s, which does not exist", page, found[1])
			}
		}
		for _, found := range testFiles.FindAllSubmatch(text, -1) {
			if file := string(found[1]); !filepath.IsAbs(file) && missing(filepath.Join(root, file)) &&
				missing(filepath.Join(root, filepath.Dir(page), file)) {
				t.Errorf("%s names %s, which does not exist", page, file)
			}
		}
	}
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return err != nil
}

// TestLayoutNamesFolders checks that each package in the list of docs/layout.md is a folder.
func TestLayoutNamesFolders(t *testing.T) {
	root, _, _ := ourPlan(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/layout.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "## Packages")
	list, _, _ = strings.Cut(list, "\n## ")
	found := 0
	for _, item := range regexp.MustCompile("(?m)^ *- (`[^:]+`):").FindAllStringSubmatch(list, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(item[1], -1) {
			if found++; missing(filepath.Join(root, name[1])) {
				t.Errorf("docs/layout.md lists %s, which does not exist", name[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("%d packages are listed", found)
	}
}

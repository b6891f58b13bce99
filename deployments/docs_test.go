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

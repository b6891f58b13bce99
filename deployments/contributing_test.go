package deployments

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	breakpoint = regexp.MustCompile(`(?m)^break intumwa/([\w/]+)\.(?:\((\*\w+)\)\.)?(\w+)$`)
	testedWith = regexp.MustCompile(`(?m)^ +(?:go|dlv) test (?:-race )?\./(\S+) .*run '\^?(Test\w+)`)
	fileNamed  = regexp.MustCompile("`([a-z]+(?:/[a-z_]+)*/[a-z_]+\\.(?:go|yaml|json|sh|md|dlv))`")
)

// TestContributing: the breakpoints, commands and files in CONTRIBUTING.md exist.
func TestContributing(t *testing.T) {
	page, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	stops, err := os.ReadFile("../docs/one-message.dlv")
	if err != nil {
		t.Fatal(err)
	}
	all := breakpoint.FindAllStringSubmatch(string(stops), -1)
	for _, stop := range all {
		receiver := ""
		if stop[2] != "" {
			receiver = `\(\w* ?` + regexp.QuoteMeta(stop[2]) + `\) `
		}
		declares(t, stop[1], receiver+stop[3])
	}
	if want := strings.Count(string(stops), "\nbreak "); len(all) != want || want < 5 {
		t.Errorf("%d of %d stops are understood", len(all), want)
	}
	runs := testedWith.FindAllStringSubmatch(string(page), -1)
	for _, run := range runs {
		declares(t, run[1], run[2])
	}
	if len(runs) < 4 {
		t.Errorf("%d tests are run", len(runs))
	}
	for _, file := range append(fileNamed.FindAllStringSubmatch(string(page), -1),
		link.FindAllStringSubmatch(string(page), -1)...) {
		if _, err := os.Stat(filepath.Join("..", file[1])); err != nil {
			t.Errorf("the page names %v", err)
		}
	}
}

// declares fails the test if a package lacks a function.
func declares(t *testing.T, pkg, function string) {
	t.Helper()
	declared := regexp.MustCompile("\nfunc " + function + `\(`) // faster than with ^
	for _, path := range files(t, filepath.Join("..", pkg, "*.go")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(text) {
			return
		}
	}
	t.Errorf("there is no %s in %s", function, pkg)
}

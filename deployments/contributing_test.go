package deployments

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	breakpoint = regexp.MustCompile(`(?m)^break intumwa/([\w/]+)\.(?:\(\*(\w+)\)\.)?(\w+)$`)
	testedWith = regexp.MustCompile(`(?m)^ +(?:go|dlv) test (?:-race )?\./(\S+) .*run '\^?(Test\w+)`)
	fileNamed  = regexp.MustCompile("`([a-z]+(?:/[a-z_]+)*/[a-z_]+\\.(?:go|yaml|sh|md|dlv))`")
)

// TestContributing: where the debugger stops, what is run and the files that are named are there.
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
		if !declares(t, stop[1], stop[2], stop[3]) {
			t.Errorf("%s stops nowhere", stop[0])
		}
	}
	if want := strings.Count(string(stops), "\nbreak "); len(all) != want || want < 5 {
		t.Errorf("%d of %d stops are understood", len(all), want)
	}
	runs := testedWith.FindAllStringSubmatch(string(page), -1)
	for _, run := range runs {
		if !declares(t, run[1], "", run[2]) {
			t.Errorf("there is no %s in %s", run[2], run[1])
		}
	}
	if len(runs) < 4 {
		t.Errorf("%d tests are run", len(runs))
	}
	for _, file := range fileNamed.FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join("..", file[1])); err != nil {
			t.Errorf("the page names %v", err)
		}
	}
	for _, found := range link.FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join("..", found[1])); err != nil {
			t.Errorf("the page leads to %v", err)
		}
	}
}

// declares tells whether a room has a function, or the type a method, of that name.
func declares(t *testing.T, room, of, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", room, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || f.Name.Name != name {
				continue
			}
			receiver := ""
			if f.Recv != nil {
				if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
					if named, ok := star.X.(*ast.Ident); ok {
						receiver = named.Name
					}
				}
			}
			if receiver == of {
				return true
			}
		}
	}
	return false
}

package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Check reads the imports of every Go file below root, with any build tags,
// and returns a sentence for each that the rules forbid, and for each row of the
// rules that is not used.
func Check(root fs.FS, module string, rules *Rules) ([]string, error) {
	c := &checker{module: module, rules: rules, pkgs: map[string]bool{}, libraries: map[string]bool{}}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && skipped(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return c.file(name, source)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the module: %w", err)
	}
	c.unused()
	return c.found, nil
}

// skipped reports folders that the go command ignores too.
func skipped(root fs.FS, folder string) bool {
	base := path.Base(folder)
	if base[0] == '.' || base[0] == '_' || base == "testdata" || base == "vendor" {
		return true
	}
	_, err := fs.Stat(root, path.Join(folder, "go.mod"))
	return err == nil
}

type checker struct {
	module    string
	rules     *Rules
	pkgs      map[string]bool // with Go files
	libraries map[string]bool // imported ones
	found     []string
}

func (c *checker) report(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *checker) file(name string, source []byte) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return fmt.Errorf("parsing the imports: %w", err)
	}
	pkg, ok := c.rules.pkg(path.Dir(name))
	if !ok {
		c.report("%s is in no package: give its folder a layer in the layers table", name)
		return nil
	}
	c.pkgs[pkg] = true
	test := strings.HasSuffix(name, "_test.go")
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("reading an import of %s: %w", name, err)
		}
		switch {
		case imported == c.module || strings.HasPrefix(imported, c.module+"/"):
			c.layer(name, pkg, test, strings.TrimPrefix(strings.TrimPrefix(imported, c.module), "/"))
		case outside(imported):
			c.library(name, pkg, test, imported)
		}
	}
	return nil
}

// outside distinguishes a library from the standard library, whose first path element
// has no dot.
func outside(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

func (c *checker) layer(name, pkg string, test bool, folder string) {
	target, ok := c.rules.pkg(folder)
	if !ok {
		c.report("%s imports %s, which is in no package: give it a layer in the layers table", name, folder)
		return
	}
	from, to := c.rules.Layers[pkg], c.rules.Layers[target]
	switch {
	case target == pkg, test && c.rules.Tests[target]:
	case c.rules.Tests[target] && !c.rules.Tests[pkg]:
		c.report("%s imports %s: that package is for tests and development only", name, target)
	case to < from:
	case to == from:
		c.report("%s imports %s: both are in layer %d, and packages of one layer never import each other", name, target, from)
	default:
		c.report("%s (layer %d) imports %s (layer %d): imports go down only", name, from, target, to)
	}
}

func (c *checker) library(name, pkg string, test bool, imported string) {
	library, allowed, ok := c.rules.importers(imported)
	if !ok {
		c.report("%s imports %s, which has no row in the libraries table", name, imported)
		return
	}
	c.libraries[library] = true
	switch {
	case allowed.Product[pkg], allowed.Product[Anywhere]:
	case test && (allowed.Test[pkg] || allowed.Test[Anywhere]):
	default:
		c.report("%s imports %s: %s may not, only %s", name, imported, pkg, names(allowed, test))
	}
}

func names(of Importers, test bool) string {
	list := slices.Collect(maps.Keys(of.Product))
	if test {
		list = append(list, slices.Collect(maps.Keys(of.Test))...)
	}
	if len(list) == 0 {
		return "in test code"
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// unused reports rows of packages and libraries that are gone.
func (c *checker) unused() {
	for _, pkg := range slices.Sorted(maps.Keys(c.rules.Layers)) {
		if !c.pkgs[pkg] {
			c.report("the layers table has package %s, but it has no Go files", pkg)
		}
	}
	for _, library := range slices.Sorted(maps.Keys(c.rules.Libraries)) {
		if !c.libraries[library] {
			c.report("the libraries table has %s, but nothing imports it", library)
		}
	}
}

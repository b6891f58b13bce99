// Package layers checks every import against two tables of docs/layout.md: imports go down only, packages of one layer
// never import each other, and only the packages of its row import an outside library.
package layers

import (
	"fmt"
	"strconv"
	"strings"
)

// Anywhere means every package.
const Anywhere = "anywhere"

// Rules has both tables. A package here is a folder and those below it that have no row of their own.
type Rules struct {
	Layers    map[string]int       // package (folder below the module's root) → layer
	Tests     map[string]bool      // packages that any test may import from any layer, and no product code
	Libraries map[string]Importers // import path of a library, or a prefix of it → packages that may import it
}

// Importers are the packages that may import a library: in product code, and in
// test code besides.
type Importers struct {
	Product, Test map[string]bool
}

// ParseRules reads the first table under "## Layers" (layer, packages, packages for
// tests) and the first under "## Libraries" (library, product code, test code
// also). Packages and libraries are in backquotes; other words in a cell are for
// the reader.
func ParseRules(markdown string) (*Rules, error) {
	rules := &Rules{Layers: map[string]int{}, Tests: map[string]bool{}, Libraries: map[string]Importers{}}
	rows, err := table(markdown, "## Layers", 3)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		layer, err := strconv.Atoi(row[0])
		if err != nil {
			return nil, fmt.Errorf("the layers table: layer %q is not a number", row[0])
		}
		tests := quoted(row[2])
		for _, pkg := range append(quoted(row[1]), tests...) {
			if _, twice := rules.Layers[pkg]; twice {
				return nil, fmt.Errorf("the layers table: package %s is there twice", pkg)
			}
			rules.Layers[pkg] = layer
		}
		for _, pkg := range tests {
			rules.Tests[pkg] = true
		}
	}
	rows, err = table(markdown, "## Libraries", 3)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		for _, library := range quoted(row[0]) {
			allowed := Importers{Product: set(row[1]), Test: set(row[2])}
			for _, pkg := range append(quoted(row[1]), quoted(row[2])...) {
				if _, known := rules.Layers[pkg]; !known {
					return nil, fmt.Errorf("the libraries table: %s names %s, which is in no layer", library, pkg)
				}
			}
			rules.Libraries[library] = allowed
		}
	}
	return rules, nil
}

// table returns the cells below the header of the first table in a section.
func table(markdown, heading string, columns int) ([][]string, error) {
	_, section, found := strings.Cut("\n"+markdown, "\n"+heading+"\n")
	if !found {
		return nil, fmt.Errorf("there is no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != columns {
			return nil, fmt.Errorf("%s: a row with %d cells instead of %d: %s", heading, len(cells), columns, line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		return nil, fmt.Errorf("section %q has no table with a header and a row", heading)
	}
	return rows[2:], nil // past the header and its rule
}

// quoted returns the words of a cell that are in backquotes.
func quoted(cell string) []string {
	var words []string
	for i, part := range strings.Split(cell, "`") {
		if i%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}

func set(cell string) map[string]bool {
	pkgs := map[string]bool{}
	for _, pkg := range quoted(cell) {
		pkgs[pkg] = true
	}
	if cell == Anywhere {
		pkgs[Anywhere] = true
	}
	return pkgs
}

// pkg returns the package of a folder: itself, or the nearest one above it.
func (r *Rules) pkg(folder string) (string, bool) {
	for {
		if _, ok := r.Layers[folder]; ok {
			return folder, true
		}
		cut := strings.LastIndexByte(folder, '/')
		if cut < 0 {
			return "", false
		}
		folder = folder[:cut]
	}
}

// importers returns the row for an import path, the longest that fits, and its library.
func (r *Rules) importers(path string) (string, Importers, bool) {
	library := path
	for {
		if allowed, ok := r.Libraries[library]; ok {
			return library, allowed, true
		}
		cut := strings.LastIndexByte(library, '/')
		if cut < 0 {
			return "", Importers{}, false
		}
		library = library[:cut]
	}
}

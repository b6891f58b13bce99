package floors

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

// Check reads the imports of every Go file below root, whatever its build tags
// say, and returns a sentence for each that the rules forbid, and for each row
// of the rules that nothing in the house answers to.
func Check(root fs.FS, module string, rules *Rules) ([]string, error) {
	c := &checker{module: module, rules: rules, rooms: map[string]bool{}, libraries: map[string]bool{}}
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
		return nil, fmt.Errorf("reading the house: %w", err)
	}
	c.unused()
	return c.found, nil
}

// skipped are the folders that the go command does not look into either.
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
	rooms     map[string]bool // that have Go files
	libraries map[string]bool // that are imported
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
	room, ok := c.rules.room(path.Dir(name))
	if !ok {
		c.report("%s is in no room: give its folder a floor in the floors table", name)
		return nil
	}
	c.rooms[room] = true
	test := strings.HasSuffix(name, "_test.go")
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("reading an import of %s: %w", name, err)
		}
		switch {
		case imported == c.module || strings.HasPrefix(imported, c.module+"/"):
			c.floor(name, room, test, strings.TrimPrefix(strings.TrimPrefix(imported, c.module), "/"))
		case outside(imported):
			c.door(name, room, test, imported)
		}
	}
	return nil
}

// outside tells a library from the standard library, whose first path element
// has no dot.
func outside(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

func (c *checker) floor(name, room string, test bool, folder string) {
	target, ok := c.rules.room(folder)
	if !ok {
		c.report("%s imports %s, which is in no room: give it a floor in the floors table", name, folder)
		return
	}
	from, to := c.rules.Floors[room], c.rules.Floors[target]
	switch {
	case target == room, test && c.rules.Tests[target]:
	case c.rules.Tests[target] && !c.rules.Tests[room]:
		c.report("%s imports %s: that room is for tests and development only", name, target)
	case to < from:
	case to == from:
		c.report("%s imports %s: both are on floor %d, and rooms on one floor never import each other", name, target, from)
	default:
		c.report("%s (floor %d) imports %s (floor %d): imports go down only", name, from, target, to)
	}
}

func (c *checker) door(name, room string, test bool, imported string) {
	library, door, ok := c.rules.door(imported)
	if !ok {
		c.report("%s imports %s, which has no door: give it a row in the doors table", name, imported)
		return
	}
	c.libraries[library] = true
	switch {
	case door.Product[room], door.Product[Anywhere]:
	case test && (door.Test[room] || door.Test[Anywhere]):
	default:
		c.report("%s imports %s: %s may not, its door is %s", name, imported, room, doorNames(door, test))
	}
}

func doorNames(door Door, test bool) string {
	names := slices.Collect(maps.Keys(door.Product))
	if test {
		names = append(names, slices.Collect(maps.Keys(door.Test))...)
	}
	if len(names) == 0 {
		return "in test code only"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// unused keeps the tables true: what is gone from the house leaves them too.
func (c *checker) unused() {
	for _, room := range slices.Sorted(maps.Keys(c.rules.Floors)) {
		if !c.rooms[room] {
			c.report("the floors table has room %s, but it has no Go files", room)
		}
	}
	for _, library := range slices.Sorted(maps.Keys(c.rules.Doors)) {
		if !c.libraries[library] {
			c.report("the doors table has %s, but nothing imports it", library)
		}
	}
}

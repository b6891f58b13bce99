package floors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tables has the owner of each table of the database: only its SQL names the table.
type Tables struct {
	Owner map[string]string          // table → package
	Reads map[string]map[string]bool // package → tables of others that it may name
}

// ParseTables reads the first table under "## Tables" (package, tables, tables of
// others that it names too). Names are in backquotes.
func ParseTables(markdown string) (*Tables, error) {
	tables := &Tables{Owner: map[string]string{}, Reads: map[string]map[string]bool{}}
	rows, err := table(markdown, "## Tables", 3)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		for _, pkg := range quoted(row[0]) {
			for _, name := range quoted(row[1]) {
				if other, twice := tables.Owner[name]; twice {
					return nil, fmt.Errorf("the tables table: %s belongs to %s and to %s", name, other, pkg)
				}
				tables.Owner[name] = pkg
			}
			tables.Reads[pkg] = set(row[2])
		}
	}
	return tables, nil
}

var (
	created  = regexp.MustCompile(`(?im)^\s*CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	dropped  = regexp.MustCompile(`(?im)^\s*DROP TABLE (?:IF EXISTS )?(\w+)`)
	renamed  = regexp.MustCompile(`(?im)^\s*ALTER TABLE (\w+)\s+RENAME TO (\w+)`)
	mention  = regexp.MustCompile(`(?i)\b(?:FROM|INTO|UPDATE|JOIN|USING|TABLE)\s+(?:ONLY\s+|LATERAL\s+)?(\w+)`)
	withName = regexp.MustCompile(`(?i)\b(\w+)\s+AS\s+(?:NOT\s+)?(?:MATERIALIZED\s+)?\(`)
)

// CheckTables reads the strings of every Go file of product code below root and
// returns a sentence for each table that one names outside its package, and for
// each difference between the tables that migrations make and the plan's.
func CheckTables(root fs.FS, migrations string, rules *Rules, tables *Tables) ([]string, error) {
	c := &tableChecker{rules: rules, tables: tables, used: map[string]bool{}}
	if err := c.migrations(root, migrations); err != nil {
		return nil, err
	}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && skipped(root, name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return c.file(name, source)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the SQL: %w", err)
	}
	for _, pkg := range slices.Sorted(maps.Keys(tables.Reads)) {
		for _, name := range slices.Sorted(maps.Keys(tables.Reads[pkg])) {
			if !c.used[pkg+" "+name] {
				c.report("the tables table lets %s name %s, but it does not", pkg, name)
			}
		}
	}
	return c.found, nil
}

type tableChecker struct {
	rules  *Rules
	tables *Tables
	used   map[string]bool // "package table"
	found  []string
}

func (c *tableChecker) report(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// migrations compares the tables that there are in the end with the plan's.
func (c *tableChecker) migrations(root fs.FS, folder string) error {
	files, err := fs.ReadDir(root, folder)
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	there := map[string]bool{}
	for _, file := range files { // in the order of their numbers
		text, err := fs.ReadFile(root, path.Join(folder, file.Name()))
		if err != nil {
			return fmt.Errorf("reading the migrations: %w", err)
		}
		for _, m := range dropped.FindAllSubmatch(text, -1) {
			delete(there, string(m[1]))
		}
		for _, m := range created.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		for _, m := range renamed.FindAllSubmatch(text, -1) {
			delete(there, string(m[1]))
			there[string(m[2])] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if c.tables.Owner[name] == "" {
			c.report("a migration makes %s, which the tables table gives to no package", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.tables.Owner)) {
		if !there[name] {
			c.report("the tables table has %s, which no migration makes", name)
		}
	}
	return nil
}

// pkg returns whose SQL a folder has: its own or that of the nearest folder above it, with a row in the tables table or
// a layer.
func (c *tableChecker) pkg(folder string) string {
	for ; folder != "."; folder = path.Dir(folder) {
		_, row := c.tables.Reads[folder]
		if _, layer := c.rules.Layers[folder]; row || layer {
			break
		}
	}
	return folder
}

func (c *tableChecker) file(name string, source []byte) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing: %w", err)
	}
	pkg := c.pkg(path.Dir(name)) // Check reports one without a package
	ast.Inspect(parsed, func(n ast.Node) bool {
		text, is := n.(*ast.BasicLit)
		if !is || text.Kind != token.STRING {
			return true
		}
		sql, err := strconv.Unquote(text.Value)
		if err != nil {
			return true
		}
		own := map[string]bool{} // names that the statement itself gives
		for _, m := range withName.FindAllStringSubmatch(sql, -1) {
			own[m[1]] = true
		}
		for _, m := range mention.FindAllStringSubmatch(sql, -1) {
			c.named(name, pkg, m[1], own)
		}
		return true
	})
	return nil
}

func (c *tableChecker) named(file, pkg, table string, own map[string]bool) {
	owner := c.tables.Owner[table]
	if owner == "" || owner == pkg || own[table] || !lower(table) {
		return
	}
	c.used[pkg+" "+table] = true
	if sentence := fmt.Sprintf("%s names %s, which is %s's", file, table, owner); !c.tables.Reads[pkg][table] && !slices.Contains(c.found, sentence) {
		c.found = append(c.found, sentence)
	}
}

// lower distinguishes a table from a word of a sentence for people.
func lower(s string) bool { return s == strings.ToLower(s) }

package layers

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

// Tables has the owner of each table of the database: only its SQL names the table. A package here is a folder with a
// row, or one of the layers table.
type Tables struct {
	Owner  map[string]string          // table → package
	Reads  map[string]map[string]bool // package → tables of others that it may name
	Writes map[string]map[string]bool // package → what it may do with these besides reading
}

// ParseTables reads the first table under "## Tables" (package, tables, rights on
// tables of others). Rights are in backquotes: a table's name is the right to read it,
// `table.column` to update that column, `INSERT table`, `UPDATE table` and
// `DELETE table` the rights of SQL.
func ParseTables(markdown string) (*Tables, error) {
	tables := &Tables{Owner: map[string]string{}, Reads: map[string]map[string]bool{},
		Writes: map[string]map[string]bool{}}
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
			tables.Reads[pkg], tables.Writes[pkg] = map[string]bool{}, map[string]bool{}
			for _, right := range quoted(row[2]) {
				name := right[strings.IndexByte(right, ' ')+1:]
				if name, _, _ = strings.Cut(name, "."); name != right {
					tables.Writes[pkg][right] = true
				}
				tables.Reads[pkg][name] = true
			}
		}
	}
	return tables, nil
}

var (
	created  = regexp.MustCompile(`(?im)^\s*CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	dropped  = regexp.MustCompile(`(?im)^\s*DROP TABLE (?:IF EXISTS )?(\w+)`)
	renamed  = regexp.MustCompile(`(?im)^\s*ALTER TABLE (\w+)\s+RENAME TO (\w+)`)
	mention  = regexp.MustCompile(`(?i)\b(?:FROM|INTO|UPDATE|JOIN|USING|TABLE)\s+(?:ONLY\s+|LATERAL\s+)?(\w+)`)
	written  = regexp.MustCompile(`(?i)\b(INSERT\s+INTO|DELETE\s+FROM|TRUNCATE)\s+(?:ONLY\s+|TABLE\s+)?(\w+)`)
	updated  = regexp.MustCompile(`(?i)\bUPDATE\s+(?:ONLY\s+)?(\w+)(?:\s+(?:AS\s+)?\w+)?\s+SET\s`)
	piece    = regexp.MustCompile(`'(?:[^']|'')*'|[(),=]|[\w.?]+`)
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
		for _, right := range slices.Sorted(maps.Keys(tables.Writes[pkg])) {
			if !c.used[pkg+" "+right] {
				c.report("the tables table gives %s the right %s, which it does not use", pkg, right)
			}
		}
	}
	return c.found, nil
}

type tableChecker struct {
	rules  *Rules
	tables *Tables
	used   map[string]bool // "package table" or "package right"
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
	pkg := c.pkg(path.Dir(name))
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				c.sql(name, pkg, joined(n, func(other ast.Expr) { ast.Inspect(other, visit) }))
				return false
			}
		case *ast.BasicLit:
			c.sql(name, pkg, joined(n, nil))
		}
		return true
	}
	ast.Inspect(parsed, visit)
	return nil
}

// joined returns the text of string literals that are added, with ? for what is added
// between them, which it passes to visit.
func joined(e ast.Expr, visit func(ast.Expr)) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return joined(e.X, visit) + joined(e.Y, visit)
		}
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // the parser has checked it
			return text
		}
		return ""
	}
	visit(e)
	return "?"
}

func (c *tableChecker) sql(file, pkg, sql string) {
	own := map[string]bool{} // names that the statement itself gives
	for _, m := range withName.FindAllStringSubmatch(sql, -1) {
		own[m[1]] = true
	}
	for _, m := range mention.FindAllStringSubmatch(sql, -1) {
		c.named(file, pkg, m[1], own)
	}
	for _, m := range written.FindAllStringSubmatch(sql, -1) {
		verb := strings.ToUpper(strings.Fields(m[1])[0])
		if verb == "TRUNCATE" {
			verb = "DELETE"
		}
		c.writes(file, pkg, m[2], own, verb+" "+m[2])
	}
	for _, m := range updated.FindAllStringSubmatchIndex(sql, -1) {
		table := sql[m[2]:m[3]]
		for _, column := range columns(sql[m[1]:]) {
			c.writes(file, pkg, table, own, table+"."+column, "UPDATE "+table)
		}
	}
}

// columns returns the columns that the list after SET assigns.
func columns(list string) (names []string) {
	depth, assigns, last := 0, true, ""
	for _, t := range piece.FindAllString(list, -1) {
		word := strings.ToUpper(t)
		switch {
		case t == "(":
			depth++
		case t == ")":
			depth--
		case depth == 0 && t == ",":
			assigns = true
		case depth == 0 && t == "=":
			assigns = false
		case depth == 0 && (word == "WHERE" || word == "RETURNING" || word == "FROM" && last != "DISTINCT"):
			return names
		case assigns && t != ",":
			names = append(names, t)
		}
		if depth < 0 {
			return names
		}
		last = word
	}
	return names
}

// writes reports a write to another package's table, unless it has one of the rights.
func (c *tableChecker) writes(file, pkg, table string, own map[string]bool, rights ...string) {
	owner := c.tables.Owner[table]
	if owner == "" || owner == pkg || own[table] || !lower(table) || !c.tables.Reads[pkg][table] {
		// named reports the last
		return
	}
	for _, right := range rights {
		if c.tables.Writes[pkg][right] {
			c.used[pkg+" "+right] = true
			return
		}
	}
	if sentence := fmt.Sprintf("%s needs the right %s, which %s does not have", file, rights[0], pkg); !slices.Contains(
		c.found, sentence) {
		c.found = append(c.found, sentence)
	}
}

func (c *tableChecker) named(file, pkg, table string, own map[string]bool) {
	owner := c.tables.Owner[table]
	if owner == "" || owner == pkg || own[table] || !lower(table) {
		return
	}
	c.used[pkg+" "+table] = true
	if sentence := fmt.Sprintf("%s names %s, which is %s's", file, table, owner); !c.tables.Reads[pkg][table] &&
		!slices.Contains(c.found, sentence) {
		c.found = append(c.found, sentence)
	}
}

// lower distinguishes a table from a word of a sentence for people.
func lower(s string) bool { return s == strings.ToLower(s) }

package layers

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const migrations = "internal/postgres/migrations"

func TestEveryTableHasOneOwner(t *testing.T) {
	root, page, rules := ourPlan(t)
	tables, err := ParseTables(page)
	if err != nil {
		t.Fatalf("docs/layout.md: %v", err)
	}
	found, err := CheckTables(os.DirFS(root), migrations, rules, tables)
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range found {
		t.Error(sentence)
	}
}

// TestStatusHasOneWriter: no folder but messages has a right to write the status of a message, and look-ups have no
// right to write.
func TestStatusHasOneWriter(t *testing.T) {
	_, page, _ := ourPlan(t)
	tables, err := ParseTables(page)
	if err != nil {
		t.Fatal(err)
	}
	for pkg, rights := range tables.Writes {
		for _, right := range []string{"messages.status", "INSERT messages", "UPDATE messages"} {
			if rights[right] {
				t.Errorf("%s has the right %s", pkg, right)
			}
		}
	}
	const lookup = "messages/lookup"
	if !tables.Reads[lookup]["messages"] || len(tables.Writes[lookup]) > 0 {
		t.Errorf("%s may read %v and write %v", lookup, tables.Reads[lookup], tables.Writes[lookup])
	}
	for table, owner := range tables.Owner {
		if owner == lookup {
			t.Errorf("%s owns %s", lookup, table)
		}
	}
}

// TestSchemaPage: docs/schema.md has each table in one area, and no other.
func TestSchemaPage(t *testing.T) {
	root, page, _ := ourPlan(t)
	tables, err := ParseTables(page)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join(root, "docs/schema.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, areas, _ := strings.Cut(string(schema), "## Tables by area")
	areas, _, _ = strings.Cut(areas, "\n## ")
	there, listed := slices.Sorted(maps.Keys(tables.Owner)), slices.Sorted(slices.Values(quoted(areas)))
	if !slices.Equal(there, listed) {
		t.Errorf("the tables are %v, docs/schema.md has %v", there, listed)
	}
}

func TestCheckTables(t *testing.T) {
	rules := &Rules{Layers: map[string]int{"left": 1, "right": 1}}
	tables := &Tables{
		Owner: map[string]string{"cups": "left", "plates": "right"},
		Reads: map[string]map[string]bool{"left": {"plates": true}, "right": {}, "right/own": {},
			"right/room": {"cups": true}},
		Writes: map[string]map[string]bool{"right/room": {"cups.id": true, "DELETE cups": true}},
	}
	house := map[string]string{
		"m/1.sql":         "CREATE TABLE cups (id int);\nCREATE TABLE old (id int);",
		"m/2.sql":         "DROP TABLE old;\ncreate table if not exists dishes (id int);",
		"m/2b.sql":        "ALTER TABLE dishes RENAME TO plates;",
		"left/l.go":       "package left\nconst q = `SELECT * FROM cups JOIN plates USING (id)`",
		"right/r.go":      "package right\nconst q = \"DELETE FROM plates\"",
		"right/deep/d.go": "package deep\nconst q = `WITH cups AS (SELECT 1) SELECT * FROM cups`",
		"right/r_test.go": "package right\nconst q = `SELECT FROM cups`",
		"right/room/r.go": "package room\nconst q = `WITH x AS (DELETE FROM cups) UPDATE ONLY cups c SET id = (SELECT 1, " +
			"2) FROM x WHERE full = 1`",
		"right/testdata/x":  "SELECT FROM cups",
		"right/words/w.go":  "package words\nconst q = `What comes from Cups is clean.`",
		"right/other/o.txt": "SELECT FROM cups",
	}
	for _, c := range []struct{ name, file, text, want string }{
		{"good", "", "", ""},
		{"another's table", "right/x.go", "package right\nconst q = `UPDATE cups SET id = 1; INSERT INTO cups`",
			"right/x.go names cups, which is left's"},
		{"in a fragment", "right/x.go", "package right\nvar q = `SELECT ` + x + ` FROM only cups`",
			"right/x.go names cups, which is left's"},
		{"a row below a package", "right/own/x.go", "package own\nconst q = `UPDATE plates SET id = 1`",
			"right/own/x.go names plates, which is right's"},
		{"another column", "right/room/x.go", "package room\nvar q = `UPDATE cups SET id = ` + x + `, full = CASE WHEN id " +
			"IS DISTINCT FROM 2 THEN 1 END`",
			"right/room/x.go needs the right cups.full, which right/room does not have"},
		{"several columns", "right/room/x.go", "package room\nconst q = `UPDATE cups AS c SET (id, full) = (1, 2)`",
			"right/room/x.go needs the right cups.full, which right/room does not have"},
		{"another right", "right/room/x.go", "package room\nconst q = `insert into cups values (1)`",
			"right/room/x.go needs the right INSERT cups, which right/room does not have"},
		{"an unused right", "right/room/r.go", "package room\nconst q = `DELETE FROM cups`",
			"the tables table gives right/room the right cups.id, which it does not use"},
		{"a table without an owner", "m/3.sql", "CREATE TABLE forks (id int)",
			"a migration makes forks, which the tables table gives to no package"},
		{"a table that is gone", "m/3.sql", "DROP TABLE cups;", "the tables table has cups, which no migration makes"},
		{"an unused permission", "left/l.go", "package left", "the tables table lets left name plates, but it does not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range house {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if c.file != "" {
				root[c.file] = &fstest.MapFile{Data: []byte(c.text)}
			}
			found, err := CheckTables(root, "m", rules, tables)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if !slices.Equal(found, want) {
				t.Errorf("found %q, want %q", found, want)
			}
		})
	}
	for _, page := range []string{"", "## Tables\n\n| pkg | tables | too |\n|---|---|---|\n| `a` | `t` | |\n| `b` " +
		"| `t` | |\n"} {
		if _, err := ParseTables(page); err == nil {
			t.Errorf("%q is taken", page)
		}
	}
}

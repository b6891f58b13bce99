package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// ourPlan returns the module's root, and docs/layout.md with its rules.
func ourPlan(t *testing.T) (root, page string, rules *Rules) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "layout.md"))
	if err != nil {
		t.Fatal(err)
	}
	if rules, err = ParseRules(string(text)); err != nil {
		t.Fatalf("docs/layout.md: %v", err)
	}
	return root, string(text), rules
}

func TestImports(t *testing.T) {
	root, _, rules := ourPlan(t)
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(gomod), "\n")
	found, err := Check(os.DirFS(root), strings.TrimSpace(strings.TrimPrefix(first, "module")), rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, sentence := range found {
		t.Error(sentence)
	}
}

// TestOneRecorder: only the package operations writes to the audit log, so an act has one entry, whoever performs it.
func TestOneRecorder(t *testing.T) {
	root, _, _ := ourPlan(t)
	found := users(t, os.DirFS(root), "intumwa/internal/audit", "Record")
	if want := []string{"operations/operations.go"}; !slices.Equal(found, want) {
		t.Errorf("audit.Record is called in %v, want only %v: give the act a method in operations", found, want)
	}
	house := fstest.MapFS{
		"a/a.go":      {Data: []byte("package a\nimport log \"intumwa/internal/audit\"\nvar record = log.Record\n")},
		"a/list.go":   {Data: []byte("package a\nimport \"intumwa/internal/audit\"\nvar list = audit.List\n")},
		"a/b/b.go":    {Data: []byte("package b\nimport . \"intumwa/internal/audit\"\nvar record = Record\n")},
		"a/a_test.go": {Data: []byte("package a\nimport \"intumwa/internal/audit\"\nvar record = audit.Record\n")},
	}
	if found := users(t, house, "intumwa/internal/audit", "Record"); !slices.Equal(found, []string{"a/a.go", "a/b/b.go"}) {
		t.Errorf("the check finds %v", found)
	}
}

// TestDoors: these files handle a send of unknown outcome. What they tell afterwards comes from a commit that a
// failover cannot take back.
func TestDoors(t *testing.T) {
	root, _, _ := ourPlan(t)
	found := users(t, os.DirFS(root), "intumwa/intake", "ErrOutcomeUnknown")
	if want := []string{"api/response.go", "campaigns/parts.go", "dashboard/sending/send.go",
		"smppserver/submit.go"}; !slices.Equal(found, want) {
		t.Errorf("intake.ErrOutcomeUnknown is handled in %v, not %v: add the door to the list in ARCHITECTURE.md, "+
			"\"Failover and visible rows\"", found, want)
	}
}

// users returns the files of product code that use a name of a package, or import the package without a name.
func users(t *testing.T, root fs.FS, of, name string) (names []string) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && skipped(root, file):
			return fs.SkipDir
		case path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, 0)
		if err != nil {
			return err
		}
		as := ""
		for _, spec := range parsed.Imports {
			if spec.Path.Value == strconv.Quote(of) {
				if as = path.Base(of); spec.Name != nil {
					as = spec.Name.Name
				}
			}
		}
		used := as == "."
		ast.Inspect(parsed, func(node ast.Node) bool {
			if selected, is := node.(*ast.SelectorExpr); is && as != "" && selected.Sel.Name == name {
				room, is := selected.X.(*ast.Ident)
				used = used || is && room.Name == as
			}
			return true
		})
		if used {
			names = append(names, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

const plan = `# A plan

## Layers
Some words.

| layer | packages | for tests |
|---|---|---|
| 2 | ` + "`top`" + ` | |
| 1 | ` + "`left` `right`" + ` | ` + "`internal/env`" + ` |
| 0 | ` + "`base`" + ` | ` + "`base/sim`" + ` |

More words.

## Libraries

| library | product code | test code also |
|---|---|---|
| ` + "`example.com/web`" + ` | ` + "`top`" + ` | |
| ` + "`example.com/sql`" + ` | ` + "`left`, and `right`" + ` | anywhere |
| ` + "`example.com/count`" + ` | anywhere | anywhere |
| ` + "`example.com/oracle`" + ` | | ` + "`base`" + ` |

## Errors
`

// house is a module without violations, in which every row is used.
func house(changes ...string) fstest.MapFS {
	files := map[string]string{
		"top/top.go":             "house/left house/right/deep example.com/web/render fmt",
		"left/left.go":           "house/base example.com/sql",
		"left/left_test.go":      "house/internal/env house/base/sim testing",
		"right/deep/d.go":        "house/right example.com/count",
		"right/right.go":         "net/http",
		"internal/env/env.go":    "house/base",
		"base/base.go":           "",
		"base/base_test.go":      "example.com/oracle example.com/sql/driver house/internal/env",
		"base/sim/sim.go":        "",
		"base/testdata/x.go":     "house/top",
		".hidden/x.go":           "house/nowhere",
		"_old/x.go":              "house/nowhere",
		"other/go.mod":           "",
		"other/x.go":             "house/nowhere",
		"base/notes.txt":         "house/top",
		"base/tagged_plan9.go":   "errors",
		"base/sim/sim_test.go":   "house/base/sim",
		"internal/env/e_test.go": "house/internal/env",
	}
	for change := range slices.Chunk(changes, 2) {
		files[change[0]] = change[1]
	}
	fsys := fstest.MapFS{}
	for name, imports := range files {
		text := "package p\n"
		for _, path := range strings.Fields(imports) {
			text += "import _ \"" + path + "\"\n"
		}
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestCheck(t *testing.T) {
	rules, err := ParseRules(plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, file, imports string
		want                string // empty: nothing to report
	}{
		{"good", "base/base.go", "", ""},
		{"up", "base/base.go", "house/left", "base/base.go (layer 0) imports left (layer 1): imports go down only"},
		{"up in a test", "base/b_test.go", "house/left",
			"base/b_test.go (layer 0) imports left (layer 1): imports go down only"},
		{"sideways", "right/right.go", "house/left",
			"right/right.go imports left: both are in layer 1, and packages of one " +
				"layer never import each other"},
		{"sideways below", "base/sim/sim.go", "house/base",
			"base/sim/sim.go imports base: both are in layer 0, and packages of one layer never import each other"},
		{"a simulator in product code", "top/sim.go", "house/base/sim",
			"top/sim.go imports base/sim: that package is for tests and development only"},
		{"a simulator in a tool", "internal/env/sim.go", "house/base/sim", ""},
		{"no package", "attic/a.go", "fmt", "attic/a.go is in no package: give its folder a layer in the layers table"},
		{"into no package", "top/t.go", "house/attic", "top/t.go imports attic, which is in no package: give it a layer in " +
			"the layers table"},
		{"wrong importer", "left/web.go", "example.com/web", "left/web.go imports example.com/web: left may not, only top"},
		{"wrong importer in a test", "left/web_test.go", "example.com/web",
			"left/web_test.go imports example.com/web: left may not, only top"},
		{"test library in product code", "base/o.go", "example.com/oracle",
			"base/o.go imports example.com/oracle: base may not, only in test code"},
		{"no row", "top/t.go", "example.org/x/y",
			"top/t.go imports example.org/x/y, which has no row in the libraries table"},
		{"a longer name is another library", "top/t.go", "example.com/website",
			"top/t.go imports example.com/website, which has no row in the libraries table"},
		{"a row for nothing", "right/deep/d.go", "", "the libraries table has example.com/count, but nothing imports it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Check(house(c.file, c.imports), "house", rules)
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
}

func TestCheckMissesNoEmptyPackage(t *testing.T) {
	rules, err := ParseRules(plan)
	if err != nil {
		t.Fatal(err)
	}
	empty := house()
	delete(empty, "base/sim/sim.go")
	delete(empty, "base/sim/sim_test.go")
	found, err := Check(empty, "house", rules)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"the layers table has package base/sim, but it has no Go files"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

func TestParseRulesErrors(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no section", "## Layers", "## Flats", `no section "## Layers"`},
		{"no table", "| ", "", `has no table`},
		{"no number", "| 2 |", "| two |", `layer "two" is not a number`},
		{"twice", "`right`", "`left`", "package left is there twice"},
		{"cells", "| 2 | `top` | |", "| 2 | `top` |", "2 cells instead of 3"},
		{"unknown package", "| `example.com/web` | `top`", "| `example.com/web` | `attic`",
			"example.com/web names attic, which is in no layer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseRules(strings.ReplaceAll(plan, c.old, c.new))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ParseRules = %v, want something with %q", err, c.want)
			}
		})
	}
}

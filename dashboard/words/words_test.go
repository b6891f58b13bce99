package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	keyLike     = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)+$`)
	action      = regexp.MustCompile(`\{\{.*?\}\}`)
	inQuotes    = regexp.MustCompile(`"([^"]*)"`)
	placeholder = regexp.MustCompile(`\{\d\}`)
	actName     = regexp.MustCompile(`^act([A-Z].*)?$`)
)

// used are the texts' keys that stand in the dashboard's templates and code, with where.
func used(t *testing.T) map[string]string {
	t.Helper()
	keys := map[string]string{}
	note := func(text, where string) {
		if keyLike.MatchString(text) && !strings.HasSuffix(text, ".css") && !strings.HasSuffix(text, ".js") && !strings.HasSuffix(text, ".svg") {
			keys[text] = where
		}
	}
	templates, _ := filepath.Glob("../*/*.html")
	for _, file := range templates {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range action.FindAllString(string(text), -1) {
			if strings.HasPrefix(a, "{{- /*") {
				continue
			}
			for _, q := range inQuotes.FindAllStringSubmatch(a, -1) {
				note(q[1], file)
			}
		}
	}
	sources, _ := filepath.Glob("../*.go")
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.KeyValueExpr: // what an act is called in the record: see acts
				if name, ok := n.Key.(*ast.Ident); ok && name.Name == "Act" {
					return false
				}
			case *ast.ValueSpec:
				if strings.HasPrefix(n.Names[0].Name, "act") {
					return false
				}
			}
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, _ := strconv.Unquote(literal.Value)
				note(text, file)
			}
			return true
		})
	}
	for act, where := range acts(t) {
		keys["act."+act] = where
	}
	if len(templates) == 0 || len(keys) < 100 {
		t.Fatalf("found only %d keys in %d templates", len(keys), len(templates))
	}
	return keys
}

// acts are the acts that pages and commands record, with where: what is given as an entry's Act, or kept in a constant or a
// variable whose name begins with act.
func acts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	pages, _ := filepath.Glob("../*.go")
	commands, _ := filepath.Glob("../../cmd/intumwa/*.go")
	for _, file := range slices.Concat(pages, commands) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		note := func(name string, value ast.Expr) {
			if literal, ok := value.(*ast.BasicLit); ok && actName.MatchString(name) {
				text, _ := strconv.Unquote(literal.Value)
				found[text] = file
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if kind, ok := n.Type.(*ast.SelectorExpr); !ok || kind.Sel.Name != "Entry" {
					return true
				}
				for _, element := range n.Elts {
					field, ok := element.(*ast.KeyValueExpr)
					if key, named := field.Key.(*ast.Ident); !ok || !named || key.Name != "Act" {
						continue
					}
					note("act", field.Value)
					name, named := field.Value.(*ast.Ident)
					if _, literal := field.Value.(*ast.BasicLit); !literal && !(named && actName.MatchString(name.Name)) {
						t.Errorf("%s records an act that this test cannot read: name it act", file)
					}
				}
			case *ast.ValueSpec:
				for i, value := range n.Values {
					note(n.Names[i].Name, value)
				}
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if name, ok := left.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
						note(name.Name, n.Rhs[i])
					}
				}
			}
			return true
		})
	}
	if len(found) < 10 || found["link.pause"] == "" || found["webhook.rotation_end"] == "" {
		t.Fatalf("found only the acts %v", found)
	}
	return found
}

// TestTexts: English and French have every key that is used, also one for every act that is recorded, and no other; the same
// blanks are filled in everywhere.
func TestTexts(t *testing.T) {
	w, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]bool{}
	keys := used(t)
	for _, l := range w.Languages {
		for key, where := range keys {
			_, one := l.texts[key+".one"]
			_, other := l.texts[key+".other"]
			if one && other {
				counted[key+".one"], counted[key+".other"] = true, true
				continue
			}
			if !l.Has(key) {
				t.Errorf("%s: the text %s, used in %s, is missing", l.Tag, key, where)
			}
		}
		for _, key := range l.Keys() {
			if _, ok := keys[key]; !ok && !counted[key] {
				t.Errorf("%s: the text %s is not used", l.Tag, key)
			}
		}
	}
	for _, l := range w.Languages[1:] {
		for _, key := range l.Keys() {
			french, ok := w.Languages[0].texts[key]
			if !ok {
				t.Errorf("%s: there is no text %s in French", l.Tag, key)
				continue
			}
			if a, b := placeholder.FindAllString(french, -1), placeholder.FindAllString(l.texts[key], -1); !slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))) {
				t.Errorf("%s: %s fills in %v, in French %v", l.Tag, key, b, a)
			}
		}
	}
}

func TestMatch(t *testing.T) {
	w, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"": "fr", "en": "en", "en-GB,fr;q=0.5": "en", "fr-FR,en;q=0.9": "fr", "rn-BI": "fr", "de": "fr", "de,en;q=0.1": "en",
		"%%%": "fr", strings.Repeat("en,", 1000): "fr",
	} {
		if got := w.Match(header).Tag; got != want {
			t.Errorf("%.40q: %s, want %s", header, got, want)
		}
	}
}

func TestFormats(t *testing.T) {
	w, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 31, 22, 5, 0, 0, time.UTC) // the first of April in Bujumbura
	for i, want := range [][]string{
		{"1\u202f234\u202f567", "−12", "1 avr. 2026, 00:05"},
		{"1,234,567", "−12", "1 Apr 2026, 00:05"},
	} {
		l := w.Languages[i]
		if got := []string{l.Number(1234567), l.Number(-12), l.Time(at)}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", l.Tag, got, want)
		}
	}
	if got := w.Languages[1].N("account.twostep.codes", 0); !strings.HasPrefix(got, "0 recovery codes") {
		t.Error(got)
	}
	if got := w.Languages[0].N("account.twostep.codes", 0); !strings.HasPrefix(got, "Il reste 0 code ") {
		t.Error(got)
	}
}

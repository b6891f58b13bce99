package layers

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateEvents = flag.Bool("update-events", false, "write the list of docs/events.md anew")

// logEvent is a log line at level info or above. Its key is stable; its text may change.
type logEvent struct {
	key, text string
	levels    []string
}

var (
	eventKey = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	// sought matches the log keys that a runbook or an alert searches for.
	sought = regexp.MustCompile("(?:\\blog -\\d+[a-z]+ '?|log for |log: |log line " +
		"`?)([a-z]+_[a-z_]*(?:\\|[a-z]+_[a-z_]*)*)")
)

// TestEvents: every log line at level info or above has an event key, each key has one text, docs/events.md lists
// exactly these events by the pages that search for them, pages search for no others, and each event at level error has
// a page.
func TestEvents(t *testing.T) {
	all := events(t)
	pages := map[string][]string{} // the events that a page searches for
	explained := map[string]bool{}
	runbooks, _ := filepath.Glob("../../docs/runbooks/*.md")
	manual, _ := filepath.Glob("../../docs/*.md")
	rules, _ := filepath.Glob("../../deployments/prometheus/rules/*.yaml")
	if len(runbooks) == 0 || len(rules) == 0 {
		t.Fatalf("%d runbooks, %d files of rules", len(runbooks), len(rules))
	}
	for _, file := range slices.Concat(runbooks, manual, rules) {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, found := range sought.FindAllStringSubmatch(string(page), -1) {
			words = append(words, strings.Split(found[1], "|")...)
		}
		for _, word := range words {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(all)),
				func(key string) bool { return strings.HasPrefix(key, word) }) {
				t.Errorf("%s looks for %s in the log: no event has that name", file, word)
			}
		}
		if filepath.Ext(file) != ".md" {
			continue
		}
		for key := range all {
			looksFor := func(word string) bool { return strings.HasPrefix(key, word) }
			named := strings.Contains(key, "_") && strings.Contains(string(page), "`"+key+"`") && slices.Contains(runbooks, file)
			if named || slices.ContainsFunc(words, looksFor) {
				link := strings.TrimPrefix(file, "../../docs/")
				pages[link], explained[key] = append(pages[link], key), true
			}
		}
	}
	var list strings.Builder
	list.WriteString("\n## With a page\n\n")
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		slices.Sort(pages[page])
		fmt.Fprintf(&list, "- [%s](%s): `%s`\n", strings.TrimSuffix(path.Base(page), ".md"), page,
			strings.Join(pages[page], "`, `"))
	}
	for _, level := range []string{"error", "warn", "info"} {
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(all)) {
			switch {
			case worst(all[key].levels) != level, explained[key]:
			case level == "error":
				t.Errorf("no page has the event %s, which is an error: an operator has to act", key)
			default:
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			fmt.Fprintf(&list, "\n## Without a page: %s\n\n`%s`\n", level, strings.Join(keys, "`, `"))
		}
	}
	const name, begin, end = "../../docs/events.md", "<!-- events -->\n", "\n<!-- end of events -->\n"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	old, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatal("docs/events.md has no place for the list")
	case *updateEvents:
		if err := os.WriteFile(name, []byte(before+begin+list.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != list.String():
		t.Error("docs/events.md does not list the events of the source: go test ./internal/layers -run TestEvents " +
			"-update-events")
	}
}

// worst is the highest of an event's levels.
func worst(levels []string) string {
	if slices.Contains(levels, "error") {
		return "error"
	}
	return slices.Max(levels) // warn is above info, in the alphabet too
}

// events reads the events from the product's source.
func events(t *testing.T) map[string]*logEvent {
	t.Helper()
	all := map[string]*logEvent{}
	development := []string{"tools", "cmd/intumwa-dev", "internal/testenv", "internal/stories"}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := path.Base(name); slices.Contains(development, name) || name != "." && base[0] == '.' ||
				base == "testdata" || base == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, filepath.Join("../..", name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			found, problem := eventOf(call)
			switch {
			case problem != "":
				t.Errorf("%s: %s", positions.Position(call.Pos()), problem)
			case found == nil:
			case all[found.key] == nil:
				all[found.key] = found
			case all[found.key].text != found.text:
				t.Errorf("%s: the event %s has two texts: %q and %q", positions.Position(call.Pos()), found.key,
					all[found.key].text, found.text)
			default:
				all[found.key].levels = append(all[found.key].levels, found.levels...)
			}
			return true
		})
		return nil
	})
	if err != nil || len(all) < 90 {
		t.Fatalf("%d events, %v", len(all), err)
	}
	return all
}

// eventOf is the event that a call logs, nil for any other call. A log call at level info or above begins with a
// constant text, "event" and a constant key.
func eventOf(call *ast.CallExpr) (found *logEvent, problem string) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isLog(method.X) {
		return nil, ""
	}
	level, args := strings.ToLower(strings.TrimSuffix(method.Sel.Name, "Context")), call.Args
	if strings.HasSuffix(method.Sel.Name, "Context") {
		args = args[1:]
	}
	switch level {
	case "info", "warn", "error":
	case "with":
		if len(args) < 2 || constant(args[0]) != "event" {
			return nil, ""
		}
		return &logEvent{key: constant(args[1]), text: "a library cannot serve the metrics", levels: []string{"error"}}, ""
	case "log", "logattrs":
		return nil, "use Info, Warn, Error or Debug, so that the level is constant"
	default:
		return nil, ""
	}
	if len(args) < 3 || constant(args[0]) == "" || constant(args[1]) != "event" ||
		!eventKey.MatchString(constant(args[2])) {
		if len(args) == 2 && call.Ellipsis.IsValid() { // append([]any{"event", "key"}, fields...)...
			if literal := literalOf(args[1]); literal != nil {
				return eventOf(&ast.CallExpr{Fun: method, Args: append([]ast.Expr{args[0]}, literal...)})
			}
		}
		return nil, `after its text a log line has "event" and a constant key in snake case`
	}
	return &logEvent{key: constant(args[2]), text: constant(args[0]), levels: []string{level}}, ""
}

// isLog reports whether an expression is a logger: something named log or Log, or a call of it.
func isLog(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log")
	case *ast.SelectorExpr:
		return isLog(x.Sel)
	case *ast.CallExpr:
		return isLog(x.Fun)
	}
	return false
}

// literalOf are the elements of the composite literal that an append begins with.
func literalOf(x ast.Expr) []ast.Expr {
	if call, ok := x.(*ast.CallExpr); ok && len(call.Args) > 0 {
		x = call.Args[0]
	}
	if literal, ok := x.(*ast.CompositeLit); ok {
		return literal.Elts
	}
	return nil
}

func constant(x ast.Expr) string {
	literal, ok := x.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

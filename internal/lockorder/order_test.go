package lockorder

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	found  = flag.String("found", "", "the folder with the edges that the tests wrote")
	whole  = flag.Bool("whole", false, "all tests wrote it")
	update = flag.Bool("update", false, "write the lock order in ARCHITECTURE.md anew")
)

// exceptions are orders of a file that cannot be part of a deadlock.
var exceptions = []exception{
	{"returns", "balances", "billing/refund.go", "it waits for a balance for less than deadlock_timeout"},
	{"letters", "sessions", "operations/token.go", "no transaction that ends sessions writes a letter about a key"},
	{"opt_outs", "companies", "inbound/switchboard/",
		"it changes the row of a company only before the first entry of that company"},
	{"concat_refs", "", "messages/retention/purgemessages.go", "it locks rows of long final messages, which no " +
		"transaction locks " +
		"before it waits for a reference"},
	{"concat_refs", "", "messages/retention/obscure.go", "as above"},
	{"contact_import_rows", "contact_imports", "contacts/imports.go",
		"nobody sees an import before the transaction that checks it is committed"},
}

type (
	exception struct{ from, to, in, why string } // to "": all
	pair      struct{ from, to string }
	edges     map[pair]string // with the places
)

const (
	page  = "../../ARCHITECTURE.md"
	start = "<!-- lock order: written by go test ./internal/lockorder (CONTRIBUTING, the database) -->\n"
	end   = "<!-- end of the lock order -->"
)

// TestOrder compares what the tests found with ARCHITECTURE.md, and fails for circles.
func TestOrder(t *testing.T) {
	if *found == "" {
		return // one package alone has found nothing: scripts/test.sh gives the folder
	}
	all, unused := read(t, *found)
	for _, x := range unused {
		if *whole {
			t.Errorf("no test has the exception %q", x)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), start)
	old, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no lock order", page)
	}
	lines, circles := all.lines()
	for _, circle := range circles {
		var texts []string
		for _, p := range circle {
			texts = append(texts, all[p])
		}
		t.Errorf("a circle:\n%s", strings.Join(texts, "\n"))
	}
	if circles != nil {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+start+written(lines)+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, problem := range all.against(old, *whole) {
		t.Error(problem)
	}
}

// read unites the edges of all processes, without exceptions.
func read(t *testing.T, folder string) (all edges, unused []exception) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "edges-*"))
	if err != nil || *whole && len(files) == 0 {
		t.Fatalf("no test wrote an edge to %s (%v): was it built with -trimpath and the tag lockorder?", folder, err)
	}
	all, unused = edges{}, slices.Clone(exceptions)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(f) != 7 { // the process was killed as it wrote
				continue
			}
			is := func(x exception) bool {
				return x.from == f[0] && (x.to == f[3] || x.to == "") && strings.HasPrefix(f[6], x.in)
			}
			if slices.ContainsFunc(exceptions, is) {
				unused = slices.DeleteFunc(unused, is)
				continue
			}
			all[pair{f[0], f[3]}] = fmt.Sprintf("%s, then %s in %s\n\t%s: %s\n\t%s: %s", f[0], f[3], f[6], f[1], f[2], f[4],
				f[5])
		}
	}
	return all, unused
}

// lines returns the locks in their order: each is below those before which a transaction takes it. circles are those
// that allow no order; each but the first begins where the one before is mended.
func (e edges) lines() (lines [][]string, circles [][]pair) {
	left := map[string]bool{}
	for p := range e {
		left[p.from], left[p.to] = true, true
	}
	open := slices.SortedFunc(maps.Keys(e), before)
	for len(left) > 0 {
		line := maps.Clone(left)
		for _, p := range open {
			delete(line, p.to)
		}
		if len(line) == 0 {
			circle := shortest(open)
			circles = append(circles, circle)
			open = slices.DeleteFunc(open, func(p pair) bool { return p == circle[len(circle)-1] })
			continue
		}
		lines = append(lines, slices.Sorted(maps.Keys(line)))
		maps.DeleteFunc(left, func(name string, _ bool) bool { return line[name] })
		open = slices.DeleteFunc(open, func(p pair) bool { return line[p.from] })
	}
	return lines, circles
}

// shortest returns a shortest circle of edges that have one.
func shortest(open []pair) (circle []pair) {
	for _, first := range open {
		ways := map[string][]pair{first.to: {first}}
		for at := []string{first.to}; len(at) > 0; at = at[1:] {
			for _, p := range open {
				if p.from == at[0] && ways[p.to] == nil {
					ways[p.to] = append(slices.Clone(ways[at[0]]), p)
					at = append(at, p.to)
				}
			}
		}
		if way := ways[first.from]; way != nil && (circle == nil || len(way) < len(circle)) {
			circle = way
		}
	}
	return circle
}

func before(a, b pair) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }

// written is the list in ARCHITECTURE.md.
func written(lines [][]string) string {
	var b strings.Builder
	width := 0
	for i, line := range lines {
		for j, name := range line {
			text := "`" + name + "`"
			if i > 0 && j == 0 {
				text = "→ " + text
			}
			switch {
			case width+len(text) > 130:
				b.WriteByte('\n')
				width = 0
			case width > 0:
				b.WriteByte(' ')
			}
			b.WriteString(text)
			width += len(text) + 1
		}
	}
	return b.String() + "\n"
}

// against returns what contradicts a written list; in a whole run the list also has no locks that no test takes.
func (e edges) against(list string, whole bool) (problems []string) {
	at, taken := map[string]int{}, map[string]bool{}
	for i, line := range strings.Split(list, "→") {
		for j, name := range strings.Split(line, "`") {
			if j%2 == 1 {
				at[name] = i + 1
			}
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(e), before) {
		if taken[p.from], taken[p.to] = true, true; at[p.from] == 0 || at[p.from] >= at[p.to] {
			problems = append(problems, "ARCHITECTURE.md has another order: "+e[p])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(at)) {
		if whole && !taken[name] {
			problems = append(problems, "ARCHITECTURE.md has "+name+", which no test locks with another")
		}
	}
	return problems
}

func TestLines(t *testing.T) {
	all := edges{{"a", "b"}: "a b", {"b", "c"}: "b c", {"a", "d"}: "a d"}
	lines, circles := all.lines()
	if got := written(lines); got != "`a` → `b` `d` → `c`\n" || circles != nil {
		t.Errorf("the order is %q, the circles %v", got, circles)
	}
	if problems := all.against(written(lines), true); problems != nil {
		t.Errorf("it contradicts itself: %q", problems)
	}
	if problems := all.against("`b` `d` → `a` → `c` `e`\n", true); !slices.Equal(
		problems, []string{"ARCHITECTURE.md has another order: a b",
			"ARCHITECTURE.md has another order: a d", "ARCHITECTURE.md has e, which no test locks with another"}) {
		t.Errorf("another order has these problems: %q", problems)
	}
	all[pair{"c", "b"}], all[pair{"c", "e"}] = "c b", "c e"
	if _, circles := all.lines(); len(circles) != 1 || !slices.Equal(circles[0], []pair{{"b", "c"}, {"c", "b"}}) {
		t.Errorf("the circles are %v", circles)
	}
}

package deployments

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// pageTables are a page of docs, its tables cell by cell under the words of their first lines.
func pageTables(t *testing.T, page string) map[string][][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	tables, head := map[string][][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			head = ""
		case head == "":
			head = line
		case !strings.HasPrefix(line, "|---"):
			tables[head] = append(tables[head], cellsOf(line))
		}
	}
	return tables
}

func cellsOf(line string) (cells []string) {
	for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

// quoted is what stands in backquotes in a cell.
func quoted(t *testing.T, cell string) string {
	t.Helper()
	found := regexp.MustCompile("`([^`]+)`").FindStringSubmatch(cell)
	if found == nil {
		t.Fatalf("%q has nothing in backquotes", cell)
	}
	return found[1]
}

func numeral(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64)
	if err != nil {
		t.Fatalf("%q is no number", cell)
	}
	return v
}

// evaluate works out a formula: numbers, names, + - * / and brackets, ceil, min and max.
func evaluate(names map[string]float64, formula string) (v float64, err error) {
	root, err := parser.ParseExpr(formula)
	if err != nil {
		return 0, err
	}
	var walk func(ast.Expr) float64
	walk = func(e ast.Expr) float64 {
		switch e := e.(type) {
		case *ast.BasicLit:
			n, wrong := strconv.ParseFloat(e.Value, 64)
			if wrong != nil {
				err = wrong
			}
			return n
		case *ast.Ident:
			n, known := names[e.Name]
			if !known {
				err = fmt.Errorf("%s has no value", e.Name)
			}
			return n
		case *ast.ParenExpr:
			return walk(e.X)
		case *ast.BinaryExpr:
			x, y := walk(e.X), walk(e.Y)
			switch e.Op {
			case token.ADD:
				return x + y
			case token.SUB:
				return x - y
			case token.MUL:
				return x * y
			case token.QUO:
				return x / y
			}
		case *ast.CallExpr:
			var of []float64
			for _, argument := range e.Args {
				of = append(of, walk(argument))
			}
			name, _ := e.Fun.(*ast.Ident)
			switch {
			case name != nil && name.Name == "ceil" && len(of) == 1:
				return math.Ceil(of[0])
			case name != nil && name.Name == "min" && len(of) > 0:
				return slices.Min(of)
			case name != nil && name.Name == "max" && len(of) > 0:
				return slices.Max(of)
			}
		}
		err = fmt.Errorf("%q has what is not known here", formula)
		return 0
	}
	v = walk(root)
	return v, err
}

// TestGrowthFigures: every figure of the page follows from the inputs by the formula that stands beside it, the costs are those
// that were measured with one process of each role, and the page on capacity has the same figures.
func TestGrowthFigures(t *testing.T) {
	page := pageTables(t, "growth.md")
	inputs := map[string]float64{}
	for _, head := range []string{"| input | value | what |", "| cost | value | what |"} {
		for _, row := range page[head] {
			inputs[quoted(t, row[0])] = numeral(t, row[1])
		}
	}
	const head = "| figure | formula | everyday | campaign | 1,000 times |"
	loads := []map[string]float64{{}, {}, {}}
	for _, names := range loads {
		for name, v := range inputs {
			names[name] = v
		}
	}
	used := strings.Builder{}
	for _, row := range page[head] {
		if len(row) != 5 {
			t.Fatalf("a row of %d cells: %q", len(row), row)
		}
		name, formulas := quoted(t, row[0]), strings.Split(row[1], ";")
		for i, names := range loads {
			formula := formulas[min(i, len(formulas)-1)] // one for each load, where they differ
			formula = strings.Trim(strings.TrimSpace(formula), "`")
			used.WriteString(formula + "\n")
			v, err := evaluate(names, formula)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if shown := numeral(t, row[2+i]); math.Abs(shown-v) > 0.05*math.Abs(v) || v == math.Trunc(v) && v < 100 && shown != v {
				t.Errorf("%s, load %d: %s is %.4g, and the page says %s", name, i+1, formula, v, row[2+i])
			}
			names[name] = v
		}
	}
	if len(inputs) < 15 || len(page[head]) < 15 {
		t.Errorf("%d inputs, %d figures: the page is read wrongly", len(inputs), len(page[head]))
	}
	for name := range inputs {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(used.String()) {
			t.Errorf("nothing follows from %s", name)
		}
	}
	measuredOnce(t, page, inputs)
	figures := map[string][]string{} // as they are written, a cell for each load
	for _, row := range page[head] {
		figures[quoted(t, row[0])] = row[2:]
	}
	capacityRepeats(t, cellsOf(head)[2:], figures)
}

// measuredOnce compares costs at full load with the first line of the table of processes, which has one of each.
func measuredOnce(t *testing.T, page map[string][][]string, costs map[string]float64) {
	t.Helper()
	const head = "| api | dispatchers | carriers | api, ms | dispatcher, ms | PostgreSQL, ms | all with Redis, ms | commits a message | WAL, octets | others had of the machine |"
	if len(page[head]) != 5 || !slices.Equal(page[head][0][:3], []string{"1", "1", "1"}) {
		t.Fatalf("the page's table of processes does not begin with one of each: %q", page[head])
	}
	one := page[head][0]
	for i, cost := range map[int]float64{3: costs["api"], 4: costs["dispatcher"], 5: costs["pg"], 8: costs["wal"],
		6: costs["api"] + costs["dispatcher"] + costs["webhooks"] + costs["pg"] + costs["redis"]} {
		if got := numeral(t, one[i]); math.Abs(got-cost) > 0.01*cost+0.0015 { // of figures that were rounded
			t.Errorf("%s was measured as %v, and the costs say %v", cellsOf(head)[i], got, cost)
		}
	}
}

// capacityRepeats compares the table of loads in the page on capacity, whose columns name the figures.
func capacityRepeats(t *testing.T, loads []string, figures map[string][]string) {
	t.Helper()
	for head, rows := range pageTables(t, "capacity.md") {
		columns := cellsOf(head)
		if columns[0] != "load" {
			continue
		}
		if len(rows) != len(loads) {
			t.Fatalf("the page on capacity has %d loads, not %d", len(rows), len(loads))
		}
		said := map[string]bool{}
		for _, column := range columns[1:] {
			said[quoted(t, column)] = true
		}
		for _, name := range []string{"apis", "dispatchers", "pg_cores", "wal_day", "disk"} {
			if !said[name] {
				t.Errorf("the page on capacity does not say %s", name)
			}
		}
		for i, load := range loads {
			if len(rows[i]) != len(columns) || !strings.HasPrefix(rows[i][0], load) {
				t.Fatalf("the page on capacity has %q where %s belongs", rows[i], load)
			}
			for at, column := range columns[1:] {
				name := quoted(t, column)
				if of := figures[name]; of == nil {
					t.Errorf("the page on capacity speaks of %s, which is no figure of the page on growth", name)
				} else if got := rows[i][1+at]; got != of[i] {
					t.Errorf("%s, %s: the page on capacity says %s, that on growth %s", load, name, got, of[i])
				}
			}
		}
		return
	}
	t.Error("the page on capacity has no table of loads")
}

// TestGrowthKeys: the page speaks of every unique key of the schema, and of no other; and of each says what a database would
// make of it that is distributed by company.
func TestGrowthKeys(t *testing.T) {
	said := map[string]bool{}
	for _, row := range pageTables(t, "growth.md")["| table | unique key | distributed by `company_id` |"] {
		for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			said[quoted(t, row[0])+" ("+key[1]+")"] = true
			if verdict, _, _ := strings.Cut(row[2], ":"); !slices.Contains([]string{"holds", "copied", "bends", "breaks"}, verdict) {
				t.Errorf("%s %s: %q is no verdict", row[0], key[1], verdict)
			} else if has := strings.Contains(", "+key[1]+",", ", company_id,"); has != (verdict == "holds") && verdict != "copied" {
				t.Errorf("%s (%s): the page says %q", row[0], key[1], verdict)
			}
		}
	}
	pool := testenv.Pool(t)
	rows, err := pool.Query(t.Context(), `SELECT c.relname, string_agg(a.attname, ', ' ORDER BY k.n)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace s ON s.oid = c.relnamespace
			CROSS JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY k(attnum, n) JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
		WHERE i.indisunique AND s.nspname = 'public' GROUP BY c.relname, i.indexrelid`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, key string
		if err := rows.Scan(&table, &key); err != nil {
			t.Fatal(err)
		}
		key = table + " (" + key + ")"
		if !said[key] {
			t.Errorf("the page does not say what becomes of %s", key)
		}
		delete(said, key)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for key := range said {
		t.Errorf("the schema has no unique key %s", key)
	}
}

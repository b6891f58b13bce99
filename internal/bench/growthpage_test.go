package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// found is a report in which every figure of the page has a value of its own.
func found(scenario string) *report {
	r := &report{}
	add := func(load, figure string, v float64) {
		at := slices.IndexFunc(r.Results, func(res result) bool { return res.Name == scenario+" "+load })
		if at < 0 {
			at = len(r.Results)
			r.Results = append(r.Results, result{Name: scenario + " " + load})
		}
		if r.Results[at].value(figure) == 0 {
			r.Results[at].add(measurement{figures: []single{{figure, "", v}}})
		}
	}
	v := 0.0
	next := func(step float64) float64 {
		v += step
		return v
	}
	for _, f := range fleets {
		for _, name := range []string{cpuOf(roleOf("api")), cpuOf(roleOf("dispatcher")), cpuOf("PostgreSQL"), allCPU, "commits"} {
			add(f.String(), name, next(0.001))
		}
		add(f.String(), "WAL", 1960.4)
		add(f.String(), othersHad, 39.6)
		if f.dispatchers > 1 {
			add(f.String(), cpuOf(idlest("dispatcher", f.dispatchers)), 0.0021)
		}
	}
	for _, c := range growthCost {
		for _, figure := range c.figures {
			add(c.load, figure, 300)
		}
	}
	return r
}

func (r *result) value(figure string) float64 {
	for _, f := range r.Figures {
		if f.Name == figure {
			return f.Median
		}
	}
	return 0
}

// TestTablesAreThePages: what bench prints goes into the tables of docs/growth.md: the same
// columns, the same fleets in the same order, the same costs by name.
func TestTablesAreThePages(t *testing.T) {
	text, err := os.ReadFile("../../docs/growth.md")
	if err != nil {
		t.Fatal(err)
	}
	var fleetsSaid, costsSaid strings.Builder
	r := found("growth")
	if err := r.printFleets(&fleetsSaid, "growth"); err != nil {
		t.Fatal(err)
	}
	if err := r.printCosts(&costsSaid, "growth"); err != nil {
		t.Fatal(err)
	}
	for _, table := range []struct {
		said, head string
		is         *regexp.Regexp // what of a row is not measured
	}{
		{fleetsSaid.String(), fleetsHead, regexp.MustCompile(`^\| \d \| \d \| \d \|`)},
		{costsSaid.String(), costsHead, regexp.MustCompile("^\\| `\\w+` \\|")},
	} {
		printed, page := rows(table.said, table.head, table.is), rows(string(text), table.head, table.is)
		page = slices.DeleteFunc(page, func(row string) bool { return row == "| `full_pages` |" }) // an assumption
		if len(printed) == 0 || !slices.Equal(printed, page) {
			t.Errorf("%s\nbench prints %q\nthe page has %q", table.head, printed, page)
		}
	}
	if want := "| 2 | 1 | 1 | 0.006 | 0.007 | 0.008 | 0.009 | 0.010 | 1,960 | 40 % |\n"; !strings.Contains(fleetsSaid.String(), want) {
		t.Errorf("no row %q in\n%s", want, fleetsSaid.String())
	}
	if want := "the dispatchers' time in 1 api, 2 dispatchers, 2 carriers, 0.002 ms"; !strings.Contains(fleetsSaid.String(), want) {
		t.Errorf("no %q in\n%s", want, fleetsSaid.String())
	}
	if want := "| `disk_message` | 600 | |\n"; !strings.Contains(costsSaid.String(), want) {
		t.Errorf("no row %q in\n%s", want, costsSaid.String())
	}
}

// What was not measured is not printed as nothing.
func TestTablesLackNothing(t *testing.T) {
	for i := range found("fleet").Results {
		r := found("fleet")
		r.Results = slices.Delete(r.Results, i, i+1)
		if r.printFleets(&strings.Builder{}, "fleet") == nil && r.printCosts(&strings.Builder{}, "fleet") == nil {
			t.Errorf("nobody misses result %d", i)
		}
	}
	r := found("fleet")
	r.Results[0].Figures = r.Results[0].Figures[1:]
	if err := r.printFleets(&strings.Builder{}, "fleet"); err == nil {
		t.Error("nobody misses a figure")
	}
}

// rows are what a pattern finds in the lines below a table's head.
func rows(text, head string, is *regexp.Regexp) (list []string) {
	_, below, _ := strings.Cut(text, head+"\n")
	for line := range strings.Lines(below) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if row := is.FindString(line); row != "" {
			list = append(list, row)
		}
	}
	return list
}

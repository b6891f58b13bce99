package sms

import (
	"slices"
	"strings"
)

// Table is where numbers go: those that the plan has, by the routes.
type Table struct {
	Plan   *Plan
	Routes *Routes
}

// Carrier returns a number's carrier; "": none, or the plan does not have the number.
func (t Table) Carrier(n Number) string {
	if !t.Plan.covers([]byte(n.National())) {
		return ""
	}
	carrier, _ := t.Routes.Carrier(n)
	return carrier
}

// Range is the national numbers that begin with a prefix, and their carrier in each of several tables.
type Range struct {
	Prefix   string
	Numbers  int
	Carriers []string
}

// Ranges divides the numbers into the largest ranges whose numbers have the same carriers in all tables, in their
// order. It leaves out numbers without a carrier in any.
func Ranges(tables ...Table) []Range {
	inner := map[string]bool{} // what a known prefix begins with: its numbers may differ
	for _, list := range append([][]string{mobilePrefixes[:]}, prefixesOf(tables)...) {
		for _, prefix := range list {
			for n := range len(prefix) {
				inner[prefix[:n]] = true
			}
		}
	}
	var below func(prefix string, width int) []Range
	below = func(prefix string, width int) (all []Range) {
		if !inner[prefix] {
			number := Number("+" + countryCode + prefix + strings.Repeat("0", nationalDigits-len(prefix)))
			one := Range{Prefix: prefix, Numbers: width}
			for _, t := range tables {
				one.Carriers = append(one.Carriers, t.Carrier(number))
			}
			return []Range{one}
		}
		for digit := '0'; digit <= '9'; digit++ {
			all = append(all, below(prefix+string(digit), width/10)...)
		}
		differs := func(r Range) bool {
			return len(r.Prefix) != len(prefix)+1 || !slices.Equal(r.Carriers, all[0].Carriers)
		}
		if len(all) == 10 && !slices.ContainsFunc(all, differs) {
			return []Range{{prefix, width, all[0].Carriers}}
		}
		return all
	}
	width := 1
	for range nationalDigits {
		width *= 10
	}
	return slices.DeleteFunc(below("", width), func(r Range) bool {
		return !slices.ContainsFunc(r.Carriers, func(carrier string) bool { return carrier != "" })
	})
}

// prefixesOf returns the prefixes and numbers of the tables' carriers.
func prefixesOf(tables []Table) (all [][]string) {
	for _, t := range tables {
		var list []string
		for prefix := range t.Routes.carriers {
			list = append(list, prefix)
		}
		all = append(all, list)
	}
	return all
}

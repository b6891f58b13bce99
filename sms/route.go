package sms

import (
	"fmt"
	"slices"
	"strings"
)

// Route has the numbers of a carrier.
type Route struct {
	Carrier  string
	Prefixes []string // national digits; the longest match of all carriers' prefixes wins
	Numbers  []string // whole national numbers, which win over any prefix
	Default  bool     // takes all other numbers

	Registration bool // a sender works there only once it is registered
}

// Routes finds a number's carrier. It is immutable and safe for concurrent use; nil Routes have no carrier.
type Routes struct {
	carriers map[string]string // national prefix or number -> carrier; "": none
	fallback string
	names    []string // of all carriers
	require  map[string]bool
}

// NewRoutes builds the routing table. It refuses two carriers with the same prefix or number, and two default carriers.
func NewRoutes(routes []Route) (*Routes, error) {
	table := &Routes{carriers: make(map[string]string), require: make(map[string]bool)}
	for _, route := range routes {
		table.names, table.require[route.Carrier] = append(table.names, route.Carrier), route.Registration
		for _, prefix := range append(append([]string(nil), route.Prefixes...), route.Numbers...) {
			if len(prefix) == 0 || len(prefix) > nationalDigits || strings.Trim(prefix, "0123456789") != "" {
				return nil, fmt.Errorf("carrier %s: %q is no national prefix", route.Carrier, prefix)
			}
			if other, taken := table.carriers[prefix]; taken && other != route.Carrier {
				return nil, fmt.Errorf("prefix %s belongs to %s and to %s", prefix, other, route.Carrier)
			}
			table.carriers[prefix] = route.Carrier
		}
		if route.Default {
			if table.fallback != "" {
				return nil, fmt.Errorf("%s and %s are both the default carrier", table.fallback, route.Carrier)
			}
			table.fallback = route.Carrier
		}
	}
	return table, nil
}

// Carrier returns a number's carrier: by the longest prefix, else the default carrier; false for none.
func (r *Routes) Carrier(n Number) (string, bool) {
	if r == nil {
		return "", false
	}
	national := n.National()
	for length := len(national); length > 0; length-- {
		if carrier, ok := r.carriers[national[:length]]; ok {
			return carrier, carrier != ""
		}
	}
	return r.fallback, r.fallback != ""
}

// Carriers returns the names of all carriers, also of those without numbers, in the order of the configuration.
func (r *Routes) Carriers() []string {
	if r == nil {
		return nil
	}
	return slices.Clone(r.names)
}

// Registration reports whether a carrier requires the registration of a sender about which nothing is recorded.
func (r *Routes) Registration(carrier string) bool { return r != nil && r.require[carrier] }

// Successors returns for each retired carrier the one that takes its numbers, from the next one of each ("": none). A
// successor may be retired too. A circle has none.
func Successors(next map[string]string) map[string]string {
	last := make(map[string]string, len(next))
	for carrier, to := range next {
		for range next {
			further, retired := next[to]
			if !retired {
				break
			}
			to = further
		}
		if _, circle := next[to]; circle {
			to = ""
		}
		last[carrier] = to
	}
	return last
}

// Without returns the table after carriers were retired: their numbers go to the [Successors] of next, or to no carrier
// if the table does not have that one.
func (r *Routes) Without(next map[string]string) *Routes {
	if r == nil || len(next) == 0 {
		return r
	}
	last := Successors(next)
	now := func(carrier string) string {
		if to, retired := last[carrier]; retired {
			carrier = to
		}
		if !slices.Contains(r.names, carrier) {
			return ""
		}
		return carrier
	}
	table := &Routes{carriers: make(map[string]string, len(r.carriers)), fallback: now(r.fallback), names: r.names,
		require: r.require}
	for prefix, carrier := range r.carriers {
		table.carriers[prefix] = now(carrier)
	}
	return table
}

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
	carriers map[string]string // national prefix or number -> carrier
	fallback string
	names    []string
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
			return carrier, true
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

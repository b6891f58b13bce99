package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"intumwa/internal/testenv"
)

// TestRoutes: the routing table in ranges of prefixes, with retired carriers, and what another configuration changes.
func TestRoutes(t *testing.T) {
	t.Parallel()
	base := fmt.Sprintf("database: {url: %q}\n", testenv.Database(t))
	s := newShell(t, base+carriersOf("smart", `"75", "78"`, "leo", `"7"`, "lumitel", `"61", "6"`))
	routes := func(args ...string) (list []string) {
		t.Helper()
		for _, r := range s.list(append([]string{"routes"}, args...)...) {
			to, from := r["goes_to"], r["carrier"]
			if len(args) > 0 {
				to, from = r["to"], r["from"]
			}
			list = append(list, fmt.Sprint(r["prefix"], " ", from, " ", to, " ", r["numbers"]))
		}
		return list
	}
	same := func(got []string, want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got\n%q, want\n%q", got, want)
		}
	}
	leo := func(digits string) (list []string) {
		for _, d := range digits {
			list = append(list, "7"+string(d)+" leo leo 1e+06")
		}
		return list
	}
	six := "6 lumitel lumitel 1e+07"
	around := func(five, eight string) []string {
		return append(append(append(append([]string{six}, leo("01234")...), five), leo("67")...),
			append([]string{eight}, leo("9")...)...)
	}
	same(routes(), around("75 smart smart 1e+06", "78 smart smart 1e+06")...)
	s.exec(`insert into retired_carriers values ('smart', null)`)
	same(routes(), around("75 smart <nil> 1e+06", "78 smart <nil> 1e+06")...)
	s.exec(`update retired_carriers set to_carrier = 'leo'`)
	same(routes(), around("75 smart leo 1e+06", "78 smart leo 1e+06")...)

	file := filepath.Join(t.TempDir(), "new.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(base+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(carriersOf("leo", `"7", "75", "78"`, "lumitel", `"61", "6"`)) // what is retired leaves: nothing changes
	same(routes("--diff", file))
	write(carriersOf("leo", `"7"`, "lumitel", `"61", "62", "63"`, "onatel", `"7712", "31"`))
	same(routes("--diff", file), "31 <nil> onatel 1e+06", "60 lumitel <nil> 1e+06", "64 lumitel <nil> 1e+06",
		"65 lumitel <nil> 1e+06", "66 lumitel <nil> 1e+06",
		"67 lumitel <nil> 1e+06", "68 lumitel <nil> 1e+06", "69 lumitel <nil> 1e+06", "7712 leo onatel 10000")
	write(carriersOf("leo", `"7x"`))
	s.refused("--diff", "", "admin", "routes", "--diff", file)
}

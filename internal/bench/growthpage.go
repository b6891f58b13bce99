package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The tables of docs/growth.md that hold what was measured, as bench prints them: whoever
// measures anew puts them in place of the page's. A test compares them with the page.
const (
	fleetsHead = "| api | dispatchers | carriers | api, ms | dispatcher, ms | PostgreSQL, ms | all with Redis, ms | commits a message | WAL, octets | others had of the machine |"
	costsHead  = "| cost | value | what |"
)

// cost is one of the page: the sum of some figures of a load.
type cost struct {
	name, load string
	figures    []string
}

var growthCost = []cost{
	{"alone_api", "alone", []string{cpuOf(roleOf("api"))}},
	{"alone_dispatcher", "alone", []string{cpuOf(roleOf("dispatcher"))}},
	{"alone_webhooks", "alone", []string{cpuOf(roleOf("webhooks"))}},
	{"alone_pg", "alone", []string{cpuOf("PostgreSQL")}},
	{"alone_redis", "alone", []string{cpuOf("Redis")}},
	{"api", fleets[0].String(), []string{cpuOf(roleOf("api"))}},
	{"dispatcher", fleets[0].String(), []string{cpuOf(roleOf("dispatcher"))}},
	{"webhooks", fleets[0].String(), []string{cpuOf(roleOf("webhooks"))}},
	{"pg", fleets[0].String(), []string{cpuOf("PostgreSQL")}},
	{"redis", fleets[0].String(), []string{cpuOf("Redis")}},
	{"wal", fleets[0].String(), []string{"WAL"}},
	{"wal_bulk", "bulk", []string{"WAL"}},
	{"disk_message", "disk", []string{"disk, messages", "disk, segments"}},
	{"disk_delivery", "disk", []string{"disk, webhook_deliveries", "disk, webhook_attempts"}},
	{"disk_ledger", "disk", []string{"disk, ledger"}},
	{"net", "network", []string{overTheNetwork}},
}

// roleOf names a role's processes among the parts that use CPU, idlest the one of several
// that used least.
func roleOf(role string) string        { return "role " + role }
func idlest(role string, n int) string { return fmt.Sprintf("role %s, the idlest of %d", role, n) }

const (
	allCPU         = "CPU, gateway + PostgreSQL + Redis"
	overTheNetwork = "over the network, by all of them"
	othersHad      = "the machine's CPU that others had"
)

// printCosts prints what messages cost, under the names that the page's formulas have.
func (r *report) printCosts(to io.Writer, scenario string) error {
	fmt.Fprintf(to, "\n%s\n|---|---|---|\n", costsHead)
	for _, c := range growthCost {
		var sum float64
		for _, name := range c.figures {
			v, err := r.figure(scenario+" "+c.load, name)
			if err != nil {
				return err
			}
			sum += v
		}
		fmt.Fprintf(to, "| `%s` | %s | |\n", c.name, figureOnPage(sum))
	}
	return nil
}

// printFleets prints what a message costs in each of the fleets.
func (r *report) printFleets(to io.Writer, scenario string) error {
	fmt.Fprintf(to, "\n%s\n%s\n", fleetsHead, strings.Repeat("|---", strings.Count(fleetsHead, "|")-1)+"|")
	var beside []string
	for _, f := range fleets {
		load := scenario + " " + f.String()
		cells := []string{strconv.Itoa(f.apis), strconv.Itoa(f.dispatchers), strconv.Itoa(f.carriers)}
		for _, name := range []string{cpuOf(roleOf("api")), cpuOf(roleOf("dispatcher")), cpuOf("PostgreSQL"), allCPU, "commits", "WAL"} {
			v, err := r.figure(load, name)
			if err != nil {
				return err
			}
			cells = append(cells, figureOnPage(v))
		}
		others, err := r.figure(load, othersHad)
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "| %s | %.0f %% |\n", strings.Join(cells, " | "), others)
		if f.dispatchers > 1 {
			v, err := r.figure(load, cpuOf(idlest("dispatcher", f.dispatchers)))
			if err != nil {
				return err
			}
			beside = append(beside, fmt.Sprintf("Of the dispatchers' time in %s, %s ms was that of the one that carried least.", f, figureOnPage(v)))
		}
	}
	fmt.Fprintf(to, "\n%s\n", strings.Join(beside, "\n"))
	return nil
}

// figure is the median of one figure of a load.
func (r *report) figure(load, name string) (float64, error) {
	at := slices.IndexFunc(r.Results, func(res result) bool { return res.Name == load })
	if at < 0 {
		return 0, fmt.Errorf("nothing was measured that is called %q", load)
	}
	for _, f := range r.Results[at].Figures {
		if f.Name == name {
			return f.Median, nil
		}
	}
	return 0, fmt.Errorf("%s: nothing was measured that is called %q", load, name)
}

// figureOnPage writes what is below ten with three decimals, and large numbers with commas.
func figureOnPage(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

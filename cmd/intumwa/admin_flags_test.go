package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestFlagPairs: where commands name one thing differently, each accepts both names.
func TestFlagPairs(t *testing.T) {
	pairs := [][2]string{{"note", "reason"}, {"email", "user"}, {"number", "to"}}
	within := map[string][2]string{"admin company": {"id", "company"}, "admin link": {"name", "link"},
		"admin carrier": {"link", "name"}}
	parser, err := kong.New(new(commands))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	eachCommand(parser.Model.Node, nil, nil, func(node *kong.Node, words []string, _ []*kong.Flag) {
		command := strings.Join(words, " ")
		wanted := slices.Clone(pairs)
		if len(words) > 2 {
			if pair, special := within[strings.Join(words[:2], " ")]; special {
				wanted = append(wanted, pair)
			}
		}
		for _, flag := range node.Flags {
			for _, pair := range wanted {
				at := slices.Index(pair[:], flag.Name)
				if at < 0 || command == "admin carrier retire" || strings.HasPrefix(command, "admin report ") ||
					strings.HasPrefix(command, "admin invoice ") && flag.Name != "reason" || // a number of an invoice, a date

					slices.Contains([]string{"admin company create", "admin carrier try"}, command) && flag.Name == "name" {
					continue
				}
				other := pair[1-at]
				seen[pair[0]+" "+pair[1]]++
				if !slices.Contains(flag.Aliases, other) {
					t.Errorf("intumwa %s --%s does not accept --%s", command, flag.Name, other)
				}
			}
		}
	})
	if len(seen) != len(pairs)+len(within) {
		t.Errorf("pairs found: %v", seen)
	}
	for _, line := range []string{
		"admin company show --company 1", "admin company set --company 1 --approved=true",
		"admin company cancel --company 1 --note x",
		"admin credits add --company 1 --amount 5 --reason x", "admin credits add --company 1 --amount -5 --note x",
		"admin number erase --to 71000100 --note x", "admin test-send --number 71000100", "admin link pause --link leo-1",
		"admin carrier try --name leo-1",
		"admin user disable --user a@example.com", "admin token create --email a@example.com --name x",
		"admin sender refuse --id 1 --note x",
	} {
		if _, err := parser.Parse(strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

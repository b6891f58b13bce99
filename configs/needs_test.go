package configs

import (
	"fmt"
	"testing"
)

// TestNeeds: a command is refused by the mistakes in the sections whose keys it uses, and by no others.
func TestNeeds(t *testing.T) {
	const database, carriers = "database: {url: 'postgres://u@127.0.0.1/d'}\n", "carriers: [{name: leo, default: true, %s links: [{name: leo-1, address: '127.0.0.1:1', system_id: s, password: p %s}]}]\n"
	for _, c := range []struct {
		file     string
		env      []string
		sections []string
		want     string // the refusal
		mistakes int    // of the file, or the environment
	}{
		{database, nil, []string{"database", "messages", "carriers", "links"}, "", 0},
		{"", nil, []string{"database"}, "database.url: is required, or database.host", 0},
		{database + fmt.Sprintf(carriers, "", ", tps: 2oo"), nil, []string{"database", "carriers", "messages"}, "", 1},
		{database + fmt.Sprintf(carriers, "", ", tps: 2oo"), nil, []string{"links"}, `carriers[0].links[0].tps (line 2): must be a whole number, not "2oo"`, 1},
		{database + fmt.Sprintf(carriers, "confirm: 5,", ""), nil, []string{"carriers"}, `carriers[0].confirm (line 2): must be one of receipt, submit, not "5"`, 1},
		{database + "messages: {validity: -1h}\n", nil, []string{"messages"}, "messages.validity (line 2): must be longer than 0s, not -1h0m0s", 1},
		{database + "messages: {validity: -1h}\n", nil, []string{"billing"}, "", 1},
		{database + "messages: 5\n", nil, []string{"messages"}, "messages (line 2): must be an object with keys", 1},
		{database + "mesages: {validity: 1h}\n", nil, []string{"messages"}, "mesages (line 2): unknown key", 1}, // perhaps what it needs
		{database + "mesages: {validity: 1h}\n", nil, []string{"database"}, "", 1},
		{database, []string{"INTUMWA_MESSAGES_VALIDITY=1day"}, []string{"messages"}, "INTUMWA_MESSAGES_VALIDITY: must be a duration such as 90s, 5m or 24h", 1},
		{database, []string{"INTUMWA_MESSAGES_VALIDITY=1day"}, []string{"billing", "test_sender"}, "", 1},
		{database, []string{"INTUMWA_MESSAGES_VALIDITY=-1h"}, []string{"messages"}, "messages.validity: must be longer than 0s, not -1h0m0s", 1},
		{database + fmt.Sprintf(carriers, "", ""), []string{"INTUMWA_CARRIERS_LEO_LINKS_LEO_1_TPS=2oo"}, []string{"carriers"}, "", 1},
		{database + fmt.Sprintf(carriers, "", ""), []string{"INTUMWA_CARRIERS_LEO_LINKS_LEO_1_TPS=2oo"}, []string{"links"}, "INTUMWA_CARRIERS_LEO_LINKS_LEO_1_TPS: must be a whole number", 1},
		{database + fmt.Sprintf(carriers, "", ""), []string{"INTUMWA_CARRIERS_LEO_CONFIRM=5"}, []string{"carriers"}, "INTUMWA_CARRIERS_LEO_CONFIRM: must be one of receipt, submit", 1},
		{database + "test_sender: 12 34\n", nil, []string{"test_sender"}, "test_sender (line 2): must be 1-11 ASCII letters and digits", 1},
		{database + "redis: {prefix: x}\n" + database, nil, []string{"database"}, "database (line 3): is defined in line 1 already", 1},
		{database + "redis: {prefix: x}\nredis: {prefix: y}\n", nil, []string{"database"}, "", 1},
	} {
		loaded, err := Load(write(t, c.file), c.env)
		if loaded == nil {
			t.Fatalf("%q: %v", c.file, err)
		}
		got := ""
		if err := loaded.Needs(c.sections...); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q %v: %v needs %q, want %q", c.file, c.env, c.sections, got, c.want)
		}
		if mistakes := loaded.Mistakes(); len(mistakes) != c.mistakes {
			t.Errorf("%q %v: mistakes %v, want %d", c.file, c.env, mistakes, c.mistakes)
		}
	}
}

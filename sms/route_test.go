package sms_test

import (
	"testing"

	"intumwa/sms"
)

func TestWithout(t *testing.T) {
	table, err := sms.NewRoutes([]sms.Route{{Carrier: "lumitel", Prefixes: []string{"61"}},
		{Carrier: "leo", Prefixes: []string{"79", "71"}, Numbers: []string{"61000000"}},
		{Carrier: "smart", Prefixes: []string{"75"}, Default: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		next                        map[string]string
		lumitel, own, smart, others string // the carriers of 61111111, 61000000, 75111111, 66111111
	}{
		{nil, "lumitel", "leo", "smart", "smart"},
		{map[string]string{"smart": "leo"}, "lumitel", "leo", "leo", "leo"},
		{map[string]string{"smart": ""}, "lumitel", "leo", "", ""},
		{map[string]string{"smart": "leo", "leo": "lumitel"}, "lumitel", "lumitel", "lumitel", "lumitel"},
		{map[string]string{"smart": "leo", "leo": ""}, "lumitel", "", "", ""},
		{map[string]string{"smart": "leo", "leo": "smart"}, "lumitel", "", "", ""}, // by hand in the database
		{map[string]string{"smart": "onatel"}, "lumitel", "leo", "", ""},
		{map[string]string{"onatel": "leo"}, "lumitel", "leo", "smart", "smart"},
	} {
		now := table.Without(one.next)
		for number, want := range map[sms.Number]string{"+25761111111": one.lumitel, "+25761000000": one.own,
			"+25775111111": one.smart, "+25766111111": one.others} {
			if got, ok := now.Carrier(number); got != want || ok != (want != "") {
				t.Errorf("%v: %s goes to %q (%t), want %q", one.next, number, got, ok, want)
			}
		}
	}
}

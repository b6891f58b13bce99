package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// TestInboundRoutes: routes are added, listed and removed, each with an audit entry; a
// route to an unknown company or carrier is refused.
func TestInboundRoutes(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "ACME", "--approved")
	add := func(more ...string) []string {
		return append([]string{"inbound", "route", "add", "--company", company}, more...)
	}
	const keys = "route_id address keyword carrier company_id sender"
	first := s.admin("", keys, add("--address", "+8080")...)
	if first["address"] != "8080" || first["keyword"] != "" || number(first["company_id"]) != company {
		t.Errorf("%v", first)
	}
	second := s.admin("", keys, add("--address", "8080", "--keyword", "Payé!", "--sender", "ACME")...)
	if second["keyword"] != "PAYE" || second["sender"] != "ACME" {
		t.Errorf("%v", second)
	}
	if typed := s.admin("", keys, add("--address", "+257 22 00-11.22", "--keyword",
		" « paye » ")...); typed["address"] != "25722001122" || typed["keyword"] != "PAYE" {
		t.Errorf("%v", typed)
	} else {
		s.admin("", keys, "inbound", "route", "remove", "--id", number(typed["route_id"]))
	}
	for reason, args := range map[string][]string{
		"have a route already":                          add("--address", "80-80"),
		"no carrier is called":                          add("--address", "9090", "--carrier", "unknown"),
		"has no sender":                                 add("--address", "9090", "--sender", "OTHER"),
		`--keyword "..." has no letter or digit`:        add("--address", "9090", "--keyword", "..."),
		`--keyword "" has no letter or digit`:           add("--address", "9090", "--keyword", ""),
		`--keyword "two words" is more than one word`:   add("--address", "9090", "--keyword", "two words"),
		`--keyword "pa\u200ey" has a control character`: add("--address", "9090", "--keyword", "pa\u200ey"),
		"is longer than 80 bytes": add("--address", "9090", "--keyword",
			strings.Repeat("x", 81)),
		"opt out or in":          add("--address", "9090", "--keyword", "arrêt"),
		`--address " " is empty`: add("--address", " "),
		`--address "ABCDEFGHIJKL" has more than 11 characters`:      add("--address", "ABCDEFGHIJKL"),
		`--address "123456789012345678901" has more than 20 digits`: add("--address", "123456789012345678901"),
		`--address "+257 / 22" is neither a number nor a name`:      add("--address", "+257 / 22"),
		`--address "ac\x1bme" has a character`:                      add("--address", "ac\x1bme"),
		`--address "École" has a character`:                         add("--address", "École"),
		"no company with id": {"inbound", "route", "add", "--company", "99",
			"--address", "9090"},
		"not found": {"inbound", "route", "remove", "--id", "99"},
	} {
		s.refused(reason, "", append([]string{"admin"}, args...)...)
	}
	if list := s.list("inbound", "route", "list"); len(list) != 2 ||
		number(list[0]["route_id"]) != number(first["route_id"]) {
		t.Errorf("%v", list)
	}
	if gone := s.admin("", keys, "inbound", "route", "remove", "--id",
		number(first["route_id"])); gone["address"] != "8080" {
		t.Errorf("%v", gone)
	}
	if list := s.list("inbound", "route", "list"); len(list) != 1 {
		t.Errorf("%v", list)
	}
	var acts []string
	for _, act := range s.list("log") {
		if strings.HasPrefix(fmt.Sprint(act["act"]), "inbound.") {
			acts = append(acts, fmt.Sprint(act["act"]))
		}
	}
	if got := fmt.Sprint(acts); got != "[inbound.route_remove inbound.route_remove inbound.route_add inbound.route_add "+
		"inbound.route_add]" {
		t.Errorf("recorded %s", got)
	}
}

// TestRoutesThatAnswer: an answer is added with its size and needs a sender; groups are named by id or name.
func TestRoutesThatAnswer(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "8080", "--approved")
	for _, name := range []string{"Parents", "7"} {
		if _, err := contacts.New(s.pool()).CreateGroup(t.Context(), 1, name); err != nil {
			t.Fatal(err)
		}
	}
	add := func(more ...string) []string {
		return append([]string{"inbound", "route", "add", "--company", company}, more...)
	}
	const keys = "route_id address keyword carrier company_id sender"
	answers := s.admin("", keys+" answer hours answer_segments answer_encoding", add("--address", "8080",
		"--keyword", "prix", "--answer", "Igiciro: 3000 FBu ✅", "--hours", "08:00-18:00")...)
	if answers["answer_segments"] != float64(1) || answers["answer_encoding"] != sms.UCS2.String() ||
		answers["hours"] != "08:00-18:00" {
		t.Errorf("%v", answers)
	}
	moves := s.admin("", keys+" join leave", add("--address", "8080", "--keyword", "injira", "--join", "parents",
		"--leave", "2")...)
	if number(moves["join"]) != "1" || number(moves["leave"]) != "2" {
		t.Errorf("%v", moves)
	}
	if named := s.admin("", keys+" join", add("--address", "9090", "--keyword", "x", "--join", "7")...); number(
		named["join"]) != "2" {
		t.Errorf("a name of digits: %v", named)
	}
	for reason, args := range map[string][]string{
		`company 1 has no sender "9090"`:    add("--address", "9090", "--answer", "x"),
		`--join: company 1, group "others"`: add("--address", "9090", "--keyword", "y", "--join", "others"),
		`--leave: company 1, group "99"`:    add("--address", "9090", "--keyword", "y", "--leave", "99"),
		"the answer is blank":               add("--address", "8080", "--answer", " "),
		"not written as 08:00-18:00":        add("--address", "8080", "--answer", "x", "--hours", "8h-18h"),
		"the route has none":                add("--address", "8080", "--join", "Parents"),
	} {
		s.refused(reason, "", append([]string{"admin"}, args...)...)
	}
	if list := s.list("inbound", "route", "list"); len(list) != 3 || list[0]["answer"] != "Igiciro: 3000 FBu ✅" {
		t.Errorf("%v", list)
	}
}

// TestInboundOutcomes: the list shows the part of a message and its outcome, the text only if
// no company has it, and filters by time.
func TestInboundOutcomes(t *testing.T) {
	s := newAdmin(t)
	pool := s.pool()
	store, text := handsets.New(pool), "Yego"
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return store.Keep(t.Context(), tx, []handsets.Inbound{
			{At: time.Now().Add(-2 * time.Hour), Carrier: "l", Link: "l1", Source: "25779000001", Destination: "8080",
				Body: &text, Octets: []byte(text)},
			{At: time.Now(), Carrier: "l", Link: "l1", Source: "25779000001", Destination: "8080", Body: &text,
				Octets: []byte(text), Part: &handsets.Part{Reference: 1, Total: 3, Number: 2}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.Inbounds(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Mark(t.Context(), handsets.Waiting, 0, all[0].ID); err != nil {
		t.Fatal(err)
	}
	list := s.list("inbound")
	if len(list) != 2 || list[0]["part"] != "2/3" || list[0]["outcome"] != "waiting" || list[1]["part"] != nil ||
		list[1]["outcome"] != nil {
		t.Errorf("%v", list)
	}
	for _, outcome := range append(handsets.Outcomes(), handsets.Waiting, "") {
		if outcome != "" {
			if err := store.Mark(t.Context(), outcome, 0, all[1].ID); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.list("inbound")[1]; (got["message"] == text) != (outcome == handsets.Unrouted) ||
			got["octets"] != float64(len(text)) {
			t.Errorf("a message of a handset that became %q: %v", outcome, got)
		}
	}
	if list := s.list("inbound", "--since", "1h"); len(list) != 1 {
		t.Errorf("%v", list)
	}
}

// TestWebhookEvents: an endpoint's events are set, shown and audited; without any, none
// are shown.
func TestWebhookEvents(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	s.admin("", "company_id url secret active", "webhook", "set", "--company", company, "--url", "https://example.org/")
	set := s.admin("", "company_id url active events", "webhook", "set", "--company", company, "--events",
		"sms.received, balance.low")
	if fmt.Sprint(set["events"]) != "[balance.low sms.received]" {
		t.Errorf("%v", set)
	}
	s.admin("", "company_id url active events", "webhook", "set", "--company", company, "--active=true")
	s.refused("There is no such event", "", "admin", "webhook", "set", "--company", company, "--events", "sms.read")
	s.refused("Every endpoint gets", "", "admin", "webhook", "set", "--company", company, "--events", "sms.sent")
	s.admin("", "company_id url active", "webhook", "set", "--company", company, "--events", "")
	if _, out, _ := s.run("", "admin", "log", "--json"); !strings.Contains(
		out, `"events":["balance.low","sms.received"]`) {
		t.Errorf("recorded %s", out)
	}
}

package handsets_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// TestRoutesThatAct: a route's answer, hours and groups are kept as given, or refused with the reason.
func TestRoutesThatAct(t *testing.T) {
	d := newTestStore(t)
	full := handsets.Route{Address: "8080", Keyword: "INJIRA", CompanyID: 1, Answer: "Murakaze\n{{x}}",
		Hours: "08:00-18:00", Join: 1, Leave: 2}
	d.exec(`INSERT INTO contact_groups (company_id, name, name_key) VALUES (1, 'Parents', 'parents'), (1, 'x', 'x')`)
	added, err := d.AddRoute(t.Context(), full)
	if err != nil {
		t.Fatal(err)
	}
	full.ID, full.CreatedAt = added.ID, added.CreatedAt
	if list, err := d.ListRoutes(t.Context(), 0, 9); err != nil || len(list) != 1 || list[0] != full || added != full {
		t.Errorf("%+v, %v", list, err)
	}
	for name, c := range map[string]struct {
		wrong  handsets.Route
		reason string
	}{
		"blank":        {handsets.Route{Answer: " \n"}, "blank"},
		"NUL":          {handsets.Route{Answer: "a\x00"}, "NUL"},
		"bytes":        {handsets.Route{Answer: "\xff"}, "UTF-8"},
		"long":         {handsets.Route{Answer: strings.Repeat("é", sms.MaxText+1)}, "600"},
		"hours":        {handsets.Route{Answer: "x", Hours: "8-18"}, "08:00-18:00"},
		"no hours":     {handsets.Route{Answer: "x", Hours: "none"}, "08:00-18:00"},
		"only hours":   {handsets.Route{Hours: "08:00-18:00"}, "there is none"},
		"same group":   {handsets.Route{Keyword: "X", Join: 3, Leave: 3}, "same group"},
		"join any":     {handsets.Route{Join: 3}, "has none"},
		"no group":     {handsets.Route{Keyword: "X", Join: 3}, "group was deleted"},
		"leave by any": {handsets.Route{Leave: 3}, "has none"},
	} {
		c.wrong.Address, c.wrong.CompanyID = "9090", 1
		if _, err := d.AddRoute(t.Context(), c.wrong); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want %s", name, err, c.reason)
		}
	}
	at := func(clock string) time.Time {
		when, err := time.Parse(time.RFC3339, "2026-03-01T"+clock+":00+02:00")
		if err != nil {
			t.Fatal(err)
		}
		return when.UTC()
	}
	for _, c := range []struct {
		hours, at string
		open      bool
	}{{"", "03:00", true}, {"08:00-18:00", "07:59", false}, {"08:00-18:00", "08:00", true},
		{"08:00-18:00", "17:59", true}, {"08:00-18:00", "18:00", false}, {"20:00-06:00", "23:00", true},
		{"20:00-06:00", "05:59", true}, {"20:00-06:00", "12:00", false}} {
		if got := (&handsets.Route{Hours: c.hours}).Open(at(c.at)); got != c.open {
			t.Errorf("%s at %s: %v", c.hours, c.at, got)
		}
	}
}

// say stores a message to a company, at minutes before now, and returns its id.
func (d *testStore) say(company int64, from, text string, minutes int) int64 {
	d.Helper()
	id, err := d.Insert(d.Context(), handsets.Message{CompanyID: company, Carrier: "leo", From: from, To: "8080",
		At: time.Now().Add(-time.Duration(minutes) * time.Minute), Body: &text, Parts: 1})
	if err != nil {
		d.Fatal(err)
	}
	return id
}

// talks returns the conversations of company 1: the end of the number, the text, and what is unread.
func (d *testStore) talks(f handsets.ConversationFilter, p handsets.Place, limit int) (list []string,
	next handsets.Place) {
	d.Helper()
	page, next, err := d.Conversations(d.Context(), 1, f, p, limit)
	if err != nil {
		d.Fatal(err)
	}
	for _, c := range page {
		list = append(list, c.From[len(c.From)-1:]+" "+*c.Body+strings.Repeat("*", c.Unread))
	}
	return list, next
}

// TestConversations: each number is listed once, at its latest message, unread ones first. What is read stays read
// until the number writes again. An erased number, and messages past their retention, leave no mark.
func TestConversations(t *testing.T) {
	d := newTestStore(t)
	const a, b, c = "+25779000001", "+25779000002", "+25779000003"
	d.say(1, a, "a1", 50)
	d.say(1, b, "b1", 40)
	last := d.say(1, a, "a2 100%", 30)
	d.say(1, c, "c1", 20)
	d.say(2, b, "another company's", 1)
	all, none := handsets.ConversationFilter{}, handsets.Place{}
	expect := func(what string, f handsets.ConversationFilter, want ...string) {
		t.Helper()
		if got, next := d.talks(f, none, 9); !slices.Equal(got, want) || next != none {
			t.Errorf("%s: %q (%+v), want %q", what, got, next, want)
		}
	}
	expect("new", all, "3 c1*", "1 a2 100%**", "2 b1*")
	read := func(from string, upTo int64) {
		t.Helper()
		if err := d.Read(t.Context(), 1, from, upTo); err != nil {
			t.Fatal(err)
		}
	}
	read(c, last+1)
	read(a, last)
	read(a, last-1) // another page that is older
	expect("read", all, "2 b1*", "3 c1", "1 a2 100%")
	if unread, err := d.Unread(t.Context(), 1, a, last); err != nil || unread {
		t.Errorf("%v, %v", unread, err)
	}
	if unread, err := d.Unread(t.Context(), 1, b, last); err != nil || !unread {
		t.Errorf("%v, %v", unread, err)
	}
	read("", last+1)
	expect("all read", all, "3 c1", "1 a2 100%", "2 b1")
	newest := d.say(1, b, "b2", 0)
	expect("a new one", all, "2 b2*", "3 c1", "1 a2 100%")
	expect("a text", handsets.ConversationFilter{Text: "A1"}, "1 a2 100%")
	expect("a text with signs", handsets.ConversationFilter{Text: "0%"}, "1 a2 100%")
	expect("a text that is none", handsets.ConversationFilter{Text: "_"})
	expect("a number", handsets.ConversationFilter{Of: []string{c}}, "3 c1")
	expect("a name or a text", handsets.ConversationFilter{Of: []string{c}, Text: "b1"}, "2 b2*", "3 c1")

	first, next := d.talks(all, none, 2)
	if want := (handsets.Place{Skip: 2}); !slices.Equal(first, []string{"2 b2*", "3 c1"}) || next != want {
		t.Errorf("%q, %+v", first, next)
	}
	if rest, next := d.talks(all, next, 2); !slices.Equal(rest, []string{"1 a2 100%"}) || next != none {
		t.Errorf("%q, %+v", rest, next)
	}
	if with, err := d.With(t.Context(), 1, b, newest, 9); err != nil || len(with) != 1 || *with[0].Body != "b1" {
		t.Errorf("%+v, %v", with, err)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, _, err := d.In(tx).EraseInbound(ctx, []string{a}, func([]handsets.Ref) ([]int64, error) { return nil, nil })
		return err
	})
	marks := func() (n int) {
		t.Helper()
		if err := d.pool.QueryRow(t.Context(), `SELECT count(*) FROM read_marks`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := marks(); n != 2 {
		t.Errorf("%d marks after the erasure of a number, want those of all and of another one", n)
	}
	if _, err := d.Forget(t.Context(), -time.Minute); err != nil || marks() != 0 {
		t.Errorf("%d marks are left, %v", marks(), err)
	}
}

// TestManyConversations: a list reads a bounded number of messages at a time, and finds each number once.
func TestManyConversations(t *testing.T) {
	d := newTestStore(t)
	d.exec(`INSERT INTO inbound_messages (id, company_id, received_at, carrier, source, destination, body, parts)
		SELECT nextval('messages_id_seq'), 1, now() - make_interval(secs => 12000 - n), 'leo', '+2577900' || 1000 + n % 700,
			'8080', 'x', 1 FROM generate_series(1, 12000) n`)
	d.exec(`INSERT INTO inbound_messages (id, company_id, received_at, carrier, source, destination, body, parts)
		VALUES (nextval('messages_id_seq'), 1, now() - interval '1 day', 'leo', '+25761000000', '8080', 'alone', 1)`)
	seen, pages := map[string]bool{}, 0
	for place := (handsets.Place{}); ; pages++ {
		page, next, err := d.Conversations(t.Context(), 1, handsets.ConversationFilter{}, place, 50)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			if seen[c.From] {
				t.Fatalf("page %d has %s again", pages, c.From)
			}
			seen[c.From] = true
		}
		if place = next; place == (handsets.Place{}) {
			break
		}
	}
	if len(seen) != 701 || pages > 22 {
		t.Errorf("%d conversations on %d pages", len(seen), pages)
	}
	found, next, err := d.Conversations(t.Context(), 1, handsets.ConversationFilter{Text: "alone"}, handsets.Place{}, 50)
	if err != nil || len(found) != 0 || next.From == 0 {
		t.Errorf("%v, %+v, %v: want an empty page with a next one", found, next, err)
	}
}

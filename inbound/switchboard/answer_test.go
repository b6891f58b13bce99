package switchboard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// acts adds a route of company 1.
func (w *world) acts(r handsets.Route) {
	w.Helper()
	r.CompanyID = 1
	if _, err := w.store.AddRoute(w.Context(), r); err != nil {
		w.Fatal(err)
	}
}

// answersTo routes texts and returns the states of their answers; "-" for none.
func (w *world) answersTo(inbound ...handsets.Inbound) []string {
	w.Helper()
	w.exec(`DELETE FROM inbound_messages`)
	w.takes(inbound...)
	return all[string](w, `SELECT coalesce(keyword || ':' || answer, '-') FROM inbound_messages ORDER BY id`)
}

// hoursAround returns hours in Burundi's time from one offset from a moment to another.
func hoursAround(at time.Time, from, to time.Duration) string {
	return at.Add(from).In(sms.Burundi).Format("15:04") + "-" + at.Add(to).In(sms.Burundi).Format("15:04")
}

// TestWhichMessagesAreAnswered: a route's answer goes to people, within its hours, once in ten minutes for each number
// and keyword. No stop or start word is answered, and nobody gets the default answer who used a keyword.
func TestWhichMessagesAreAnswered(t *testing.T) {
	w := newWorld(t, Options{})
	w.acts(handsets.Route{Address: "8080", Keyword: "PRIX", Answer: "Riz: 3000"})
	w.acts(handsets.Route{Address: "8080", Keyword: "SILENCE"})
	w.acts(handsets.Route{Address: "8080", Answer: "Écrivez PRIX"})
	w.acts(handsets.Route{Address: "7070"})
	w.acts(handsets.Route{Address: "25779000050", Answer: "x"})
	w.acts(handsets.Route{Address: "8081", Answer: "x", Hours: hoursAround(w.clock, -time.Hour, time.Hour)})
	w.acts(handsets.Route{Address: "8082", Answer: "x", Hours: hoursAround(w.clock, time.Hour, 2*time.Hour)})
	w.route("8080", "AUTRE", "", 2)
	for name, c := range map[string]struct {
		got  handsets.Inbound
		want string
	}{
		"a keyword":                {from("25779000001", "8080", "Prix svp"), "PRIX:due"},
		"another form":             {from("079000002", "+8080", "prix"), "PRIX:due"},
		"no keyword":               {from("25779000003", "8080", "Bonjour"), ":due"},
		"a keyword without answer": {from("25779000004", "8080", "silence"), "-"},
		"another company's":        {from("25779000005", "8080", "autre"), "-"},
		"a route without answer":   {from("25779000006", "7070", "PRIX"), "-"},
		"STOP":                     {from("25779000007", "8080", "STOP"), "-"},
		"STOP and a keyword":       {from("25779000008", "8080", "STOP PRIX"), "-"},
		"START":                    {from("25779000009", "8080", "START"), "-"},
		"a short code":             {from("9090", "8080", "PRIX"), "PRIX:no_person"},
		"a name":                   {from("ECONET", "8080", "PRIX"), "PRIX:no_person"},
		"a foreign number":         {from("+32479000001", "8080", "PRIX"), "PRIX:no_person"},
		"an address of ours":       {from("79000050", "8080", "PRIX"), "PRIX:own_number"},
		"within hours":             {from("25779000010", "8081", "x"), ":due"},
		"outside hours":            {from("25779000011", "8082", "x"), ":closed"},
	} {
		if got := w.answersTo(c.got); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	first := from("25779000020", "8080", "PRIX")
	others := []handsets.Inbound{first, from("25779000020", "8080", "prix riz"), from("25779000020", "8080", "Allô"),
		from("79000020", "8080", "Allô?"), from("25779000021", "8080", "PRIX")}
	if got, want := w.answersTo(others...), []string{"PRIX:due", "PRIX:repeated", ":due", ":repeated",
		"PRIX:due"}; !slices.Equal(got, want) {
		t.Errorf("again: %v, want %v", got, want)
	}
	w.exec(`UPDATE inbound_messages SET received_at = received_at - interval '10 minutes',
		answer = CASE answer WHEN 'due' THEN 'sent' ELSE answer END`)
	w.takes(from("25779000020", "8080", "Prix du riz"))
	if got := one[string](w, `SELECT answer FROM inbound_messages ORDER BY id DESC LIMIT 1`); got != "due" {
		t.Errorf("ten minutes later: %s", got)
	}
	// A part without the first one has no keyword.
	if got := w.answersTo(part(from("25779000030", "8080", "PRIX "), 5, 2, 2)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	w.exec(`UPDATE inbound SET received_at = received_at - interval '1 hour'`)
	if _, err := w.board.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := all[string](w, `SELECT coalesce(answer, '-') FROM inbound_messages`); slices.Contains(got, "due") {
		t.Errorf("a message without its beginning: %v", got)
	}
}

// TestJoinAndLeave: a keyword adds a number to a group, with the message as the proof, and takes it from one. STOP
// stays above it: the number's entry stays.
func TestJoinAndLeave(t *testing.T) {
	w := newWorld(t, Options{})
	book := contacts.New(w.pool)
	var groups []int64
	for _, name := range []string{"Parents", "Autres"} {
		g, err := book.CreateGroup(t.Context(), 1, name)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, g.ID)
	}
	closed := hoursAround(w.clock, time.Hour, 2*time.Hour)
	w.acts(handsets.Route{Address: "8080", Keyword: "INJIRA", Answer: "Murakaze", Hours: closed, Join: groups[0]})
	w.acts(handsets.Route{Address: "8080", Keyword: "SOHOKA", Leave: groups[0]})
	w.acts(handsets.Route{Address: "8080", Keyword: "MUTA", Leave: groups[0], Join: groups[1]})
	members := func() []string {
		t.Helper()
		return all[string](w, `SELECT c.phone_number || ' ' || g.name || ' ' || c.consent_source || ' ' || g.members
			FROM contacts c JOIN contact_members ON contact_id = c.id JOIN contact_groups g ON g.id = group_id ORDER BY 1`)
	}
	expect := func(after string, want ...string) {
		t.Helper()
		if got := members(); !slices.Equal(got, want) {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
	w.takes(from("25779000001", "8080", "Injira Aline"), from("25779000001", "8080", "INJIRA\r\n \x1b\x00 ego "),
		from("9090", "8080", "INJIRA"), from("25779000002", "8080", "STOP INJIRA"))
	expect("INJIRA", "+25779000001 Parents SMS 8080: INJIRA ego 1")
	if got := one[time.Time](w, `SELECT consented_at FROM contacts`); !got.Equal(w.clock.Add(-2 * time.Second)) {
		t.Errorf("consented at %v, want %v", got, w.clock.Add(-2*time.Second))
	}
	w.takes(from("25779000002", "8080", "INJIRA"))
	expect("INJIRA after STOP", "+25779000001 Parents SMS 8080: INJIRA ego 2", "+25779000002 Parents SMS 8080: INJIRA 2")
	if got := w.optOuts(); !slices.Equal(got, []string{"1 +25779000002 "}) {
		t.Errorf("opt-outs %v", got)
	}
	w.takes(from("25779000001", "8080", "sohoka"), from("25779000003", "8080", "SOHOKA"))
	expect("SOHOKA", "+25779000002 Parents SMS 8080: INJIRA 1")
	w.takes(from("25779000002", "8080", "MUTA"))
	expect("MUTA", "+25779000002 Autres SMS 8080: MUTA 1")
	if got := w.outcomes(); slices.Contains(got, "") || slices.Contains(got, "unrouted") {
		t.Errorf("outcomes %v", got)
	}
	var used *contacts.GroupUsed
	if _, err := book.DeleteGroup(t.Context(), 1, groups[1]); !errors.As(err, &used) {
		t.Errorf("a group that a keyword joins is deleted: %v", err)
	}
	if _, err := w.store.AddRoute(t.Context(), handsets.Route{Address: "8080", Keyword: "RIEN", CompanyID: 1,
		Join: 99}); err == nil {
		t.Error("a route joins a group that does not exist")
	}
}

// TestAnswerOfNoMember: who cannot join a route's group does not get its answer.
func TestAnswerOfNoMember(t *testing.T) {
	w := newWorld(t, Options{})
	g, err := contacts.New(w.pool).CreateGroup(t.Context(), 1, "Parents")
	if err != nil {
		t.Fatal(err)
	}
	w.acts(handsets.Route{Address: "8080", Keyword: "INJIRA", Answer: "Murakaze", Join: g.ID})
	if got := w.answersTo(from("25779000001", "8080", "INJIRA")); !slices.Equal(got, []string{"INJIRA:due"}) {
		t.Errorf("%v", got)
	}
	w.exec(`UPDATE contact_books SET contacts = 500000`)
	if got := w.answersTo(from("25779000002", "8080", "INJIRA"),
		from("25779000001", "8080", "INJIRA ego")); !slices.Equal(got,
		[]string{"INJIRA:not_joined", "INJIRA:due"}) {
		t.Errorf("the company has no room: %v", got)
	}
	w.exec(`UPDATE contact_books SET contacts = 1`)
	w.exec(`UPDATE contact_groups SET company_id = 2`)
	if got := w.answersTo(from("25779000003", "8080", "INJIRA")); !slices.Equal(got, []string{"INJIRA:not_joined"}) {
		t.Errorf("the group is gone: %v", got)
	}
	if got := one[string](w, `SELECT outcome FROM inbound ORDER BY id DESC LIMIT 1`); got != "routed" {
		t.Errorf("%v", got)
	}
}

package contacts_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/contacts"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

func entry(number sms.Number, name string, groups ...int64) contacts.Entry {
	e := contacts.Entry{Number: number, Groups: groups}
	if name != "" {
		e.Name = &name
	}
	return e
}

// TestPut: what is given replaces what was there, what is not given stays, what is empty goes, and the counts are those
// of the rows.
func TestPut(t *testing.T) {
	d := newTestStore(t)
	class3, class4 := d.group(1, "Classe 3"), d.group(1, "Classe 4")
	foreign := d.group(2, "Classe 3")
	at := time.Date(2026, 9, 1, 8, 0, 0, 0, time.UTC)
	full := entry("+25779000001", " Aline  Ndayizeye ", class3, class4)
	full.Language, full.Fields = new("fr-BI"), map[string]*string{"Classe": new("3"), "Solde dû": new("25 000")}
	full.Consent = &contacts.Consent{Source: "form", At: at}
	if done := d.put(1, full, entry("+25779000002", "Éric")); done.Added != 2 || done.Changed+done.Unchanged != 0 {
		t.Errorf("%+v", done)
	}
	c := d.byNumber(1, "+25779000001")
	if c.Name != "Aline Ndayizeye" || c.Language != "fr" || !maps.Equal(c.Fields, map[string]string{"classe": "3",
		"solde_du": "25 000"}) || c.Consent.Source != "form" || !c.Consent.At.Equal(at) ||
		fmt.Sprint(c.Groups) != fmt.Sprintf("[{%d Classe 3} {%d Classe 4}]", class3, class4) {
		t.Errorf("%+v", c)
	}
	d.exact()
	undated := contacts.Entry{Number: "+25779000001", Consent: &contacts.Consent{Source: "form"}}
	if done := d.put(1, full, entry("+25779000002", "")); done.Unchanged != 2 {
		t.Errorf("the same again: %+v", done)
	}
	if done := d.put(1, undated); done.Unchanged != 1 {
		t.Errorf("the same consent without its date: %+v", done)
	}
	less := contacts.Entry{Number: "+25779000001", Name: new(""), Fields: map[string]*string{"classe": nil,
		"ville": new("Gitega")}, Groups: []int64{class4}}
	if done := d.put(1, less); done.Changed != 1 {
		t.Errorf("%+v", done)
	}
	c = d.byNumber(1, "+25779000001")
	if c.Name != "" || c.Language != "fr" || !maps.Equal(c.Fields, map[string]string{"solde_du": "25 000",
		"ville": "Gitega"}) || len(c.Groups) != 1 || c.Groups[0].ID != class4 {
		t.Errorf("%+v", c)
	}
	if book, err := d.Book(t.Context(), 1); err != nil || book.Contacts != 2 ||
		!slices.Equal(book.Fields, []string{"classe", "solde_du", "ville"}) {
		t.Errorf("%+v, %v", book, err)
	}
	d.exact()
	for why, e := range map[string]contacts.Entry{
		"contact.wrong.group.unknown": entry("+25779000003", "", foreign),
		"contact.wrong.fields":        {Number: "+25779000003", Fields: many(contacts.MaxFields - 1)}} {
		_, err := d.Put(t.Context(), 1, []contacts.Entry{e})
		if wrong, is := errors.AsType[*contacts.Fault](err); !is || wrong.Key != why {
			t.Errorf("%s: %v", why, err)
		}
	}
	_, err := d.Create(t.Context(), 1, entry("+25779000001", "Other"))
	if wrong, is := errors.AsType[*contacts.Fault](err); !is || wrong.Key != "contact.wrong.taken" ||
		wrong.Args[0] != c.ID {
		t.Error(err)
	}
	if c := d.byNumber(1, "+25779000001"); c.Name != "" {
		t.Error("a refused contact changed one")
	}
	d.exact()
	if _, after, err := d.Update(t.Context(), 1, c.ID, contacts.Entry{Number: "+25779000009"}); err != nil ||
		after.Number != "+25779000009" || len(after.Groups) != 1 {
		t.Errorf("%+v, %v", after, err)
	}
	if _, _, err := d.Update(t.Context(), 2, c.ID, contacts.Entry{}); !errors.Is(err, contacts.ErrNotFound) {
		t.Error("another company's contact:", err)
	}
	if n, err := d.DeleteSome(t.Context(), 1, contacts.Selection{IDs: []int64{c.ID}}); n != 1 || err != nil {
		t.Error(n, err)
	}
	d.exact()
}

func many(n int) map[string]*string {
	fields := map[string]*string{}
	for i := range n {
		fields[fmt.Sprintf("f%d", i)] = new("x")
	}
	return fields
}

// TestForgottenFields: the name of a field that no contact has any more leaves room for another.
func TestForgottenFields(t *testing.T) {
	d := newTestStore(t)
	wrong := many(contacts.MaxFields)
	d.put(1, contacts.Entry{Number: "+25779000001", Fields: wrong}, contacts.Entry{Number: "+25779000002",
		Fields: map[string]*string{"f7": new("7")}})
	_, err := d.Put(t.Context(), 1, []contacts.Entry{{Number: "+25779000002", Fields: map[string]*string{"g": new("x")}}})
	if fault, is := errors.AsType[*contacts.Fault](err); !is || fault.Key != "contact.wrong.fields" {
		t.Error(err)
	}
	fields := func(want ...string) {
		t.Helper()
		if book, err := d.Book(t.Context(), 1); err != nil || !slices.Equal(book.Fields, want) {
			t.Errorf("%v, %v; want %v", book.Fields, err, want)
		}
	}
	for name := range wrong {
		wrong[name] = nil
	}
	d.put(1, contacts.Entry{Number: "+25779000001", Fields: wrong})
	d.put(1, contacts.Entry{Number: "+25779000002", Fields: map[string]*string{"g": new("x")}})
	fields("f7", "g")
	for {
		if n, err := d.DeleteSome(t.Context(), 1, contacts.Selection{All: true}); n == 0 || err != nil {
			d.must(err)
			break
		}
	}
	fields()
}

// TestCheck: what is wrong is named.
func TestCheck(t *testing.T) {
	for want, e := range map[string]contacts.Entry{
		"name contact.wrong.long [200]":           {Name: new(strings.Repeat("é", 201))},
		"name contact.wrong.text []":              {Name: new("a\x00")},
		"fields.b contact.wrong.text []":          {Fields: map[string]*string{"b": new("a\u202eb")}},
		"fields.c contact.wrong.text []":          {Fields: map[string]*string{"c": new("a\u200bb")}},
		"language contact.wrong.language []":      {Language: new("de")},
		"fields.- contact.wrong.field [40]":       {Fields: map[string]*string{"-": nil}},
		"fields.Nom contact.wrong.reserved []":    {Fields: map[string]*string{"Nom": nil}},
		"fields.Langue contact.wrong.reserved []": {Fields: map[string]*string{"Langue": nil}},
		"fields.âge contact.wrong.twice [age]":    {Fields: map[string]*string{"Age": nil, "âge": nil}},
		"fields.a contact.wrong.long [255]":       {Fields: map[string]*string{"a": new(strings.Repeat("x", 256))}},
		"consented_at contact.wrong.future []":    {Consent: &contacts.Consent{At: time.Now().AddDate(1, 0, 0)}},
		"fields contact.wrong.fields [20]":        {Fields: many(21)},
		"consent_source contact.wrong.long [200]": {Consent: &contacts.Consent{Source: strings.Repeat("x", 201)}},
	} {
		wrong := e.Check()
		if len(wrong) != 1 || fmt.Sprintln(wrong[0].Field, wrong[0].Key, wrong[0].Args) != want+"\n" {
			t.Errorf("%s: %v", want, wrong)
		}
	}
}

// TestConsent: the same source without a date leaves the date, another one without a date is of now, and none removes
// both.
func TestConsent(t *testing.T) {
	d := newTestStore(t)
	old, newer := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2021, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, c := range []struct {
		given, want contacts.Consent // want without a time: now
		changed     bool
	}{
		{contacts.Consent{Source: "form", At: old}, contacts.Consent{Source: "form", At: old}, true},
		{contacts.Consent{Source: " form"}, contacts.Consent{Source: "form", At: old}, false},
		{contacts.Consent{Source: "form", At: newer}, contacts.Consent{Source: "form", At: newer}, true},
		{contacts.Consent{Source: "call"}, contacts.Consent{Source: "call"}, true},
		{contacts.Consent{Source: "call", At: old}, contacts.Consent{Source: "call", At: old}, true},
		{contacts.Consent{}, contacts.Consent{}, true},
		{contacts.Consent{}, contacts.Consent{}, false},
		{contacts.Consent{Source: "call"}, contacts.Consent{Source: "call"}, true},
	} {
		done := d.put(1, contacts.Entry{Number: "+25779000001", Consent: &c.given})
		is := d.byNumber(1, "+25779000001").Consent
		now := c.want.Source != "" && c.want.At.IsZero() && time.Since(is.At).Abs() < time.Hour
		if is.Source != c.want.Source || !now && !is.At.Equal(c.want.At) || (done.Unchanged == 0) != c.changed {
			t.Errorf("%d: %+v, %+v", i, is, done)
		}
	}
}

// TestDeleteGroupWithRoute: a group that a keyword joins or leaves stays, also if its route is added at the same time.
func TestDeleteGroupWithRoute(t *testing.T) {
	d := newTestStore(t)
	for i := range 20 {
		group := d.group(1, fmt.Sprint("Parents ", i))
		column := []string{"join_group", "leave_group"}[i%2]
		added := make(chan error)
		go func() {
			_, err := d.pool.Exec(t.Context(), `INSERT INTO inbound_routes (address, keyword, company_id, `+column+`)
				VALUES ('8080', $1, 1, $2)`, fmt.Sprint("K", i), group)
			added <- err
		}()
		_, err := d.DeleteGroup(t.Context(), 1, group)
		_, refused := errors.AsType[*contacts.GroupUsed](err)
		noGroup := postgres.SQLState(<-added) == "23503"
		if noGroup != (err == nil) || err != nil && !refused {
			t.Errorf("the group is deleted: %v; the route has none: %v", err, noGroup)
		}
	}
}

// TestJoin: a number joins and leaves a group once, whoever does it at the same time.
func TestJoin(t *testing.T) {
	d := newTestStore(t)
	group, foreign := d.group(1, "Église"), d.group(2, "x")
	join := func(group int64, number sms.Number) (joined bool, err error) {
		err = pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
			joined, err = d.Join(t.Context(), tx, 1, group, number, contacts.Consent{Source: "keyword JOIN"})
			return err
		})
		return joined, err
	}
	d.put(1, contacts.Entry{Number: "+25779000001", Name: new("Aline")})
	for _, test := range []struct {
		number sms.Number
		want   bool
	}{{"+25779000001", true}, {"+25779000001", false}, {"+25779000002", true}, {"+25779000002", false}} {
		if joined, err := join(group, test.number); joined != test.want || err != nil {
			t.Errorf("%s: %v %v", test.number, joined, err)
		}
	}
	if c := d.byNumber(1, "+25779000001"); c.Name != "Aline" || c.Consent.Source != "keyword JOIN" || len(c.Groups) != 1 {
		t.Errorf("%+v", c)
	}
	if _, err := join(foreign, "+25779000003"); !errors.Is(err, contacts.ErrNoGroup) {
		t.Error(err)
	}
	if g, err := d.Group(t.Context(), 1, group); err != nil || g.Members != 2 {
		t.Errorf("%+v, %v", g, err)
	}
	var many sync.WaitGroup
	for range 4 {
		many.Go(func() {
			for i := range 50 {
				if _, err := join(group, sms.Number(fmt.Sprintf("+257790001%02d", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	many.Wait()
	d.exact()
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		for _, want := range []bool{true, false} {
			if left, err := d.Leave(ctx, tx, 1, group, "+25779000001"); left != want || err != nil {
				t.Error(left, err)
			}
		}
		left, err := d.Leave(ctx, tx, 1, foreign, "+25779000002")
		if left {
			t.Error("it left another company's group")
		}
		return err
	})
	d.exact()
	other := d.group(1, "Autre")
	d.put(1, contacts.Entry{Number: "+25779000001", Groups: []int64{other}})
	for _, want := range []int{1, 0} {
		if n, err := d.EmptyGroup(t.Context(), 1, other); n != want || err != nil {
			t.Errorf("%d left, %v; want %d", n, err, want)
		}
	}
	if _, err := d.EmptyGroup(t.Context(), 1, foreign); !errors.Is(err, contacts.ErrNoGroup) {
		t.Error("another company's group:", err)
	}
	d.exact()
	if was, err := d.DeleteGroup(t.Context(), 1, group); err != nil || was.Members != 51 {
		t.Errorf("%+v, %v", was, err)
	}
	d.exact()
	if book, err := d.Book(t.Context(), 1); err != nil || book.Contacts != 52 {
		t.Errorf("%+v, %v", book, err)
	}
}

// TestLeaveWaits: a number leaves a group that an import lets it join at the same time.
func TestLeaveWaits(t *testing.T) {
	d := newTestStore(t)
	group := d.group(1, "Parents")
	d.put(1, entry("+25779000001", "Aline"))
	d.behind(func(ctx context.Context, tx pgx.Tx) error {
		_, err := d.In(tx).Put(ctx, 1, []contacts.Entry{entry("+25779000001", "", group)})
		return err
	}, func() error {
		return pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
			left, err := d.Leave(t.Context(), tx, 1, group, "+25779000001")
			if !left {
				t.Error("it has not left")
			}
			return err
		})
	})
	if c := d.byNumber(1, "+25779000001"); len(c.Groups) > 0 {
		t.Error("it is still a member:", c.Groups)
	}
	d.exact()
}

// TestDeleteMembersWaits: a contact that leaves a group while its members are deleted stays.
func TestDeleteMembersWaits(t *testing.T) {
	d := newTestStore(t)
	group := d.group(1, "Parents")
	d.put(1, entry("+25779000001", "Aline", group), entry("+25779000002", "Éric", group))
	d.behind(func(ctx context.Context, tx pgx.Tx) error {
		_, err := d.Leave(ctx, tx, 1, group, "+25779000001")
		return err
	}, func() error {
		n, err := d.DeleteSome(t.Context(), 1, contacts.Selection{Group: group})
		if n != 1 {
			t.Errorf("%d deleted", n)
		}
		return err
	})
	d.byNumber(1, "+25779000001")
	d.exact()
}

// TestSameTime: what happens to contacts and groups at the same time leaves exact counts, and nobody waits for ever.
func TestSameTime(t *testing.T) {
	d := newTestStore(t)
	var groups []int64
	for i := range 4 {
		groups = append(groups, d.group(1, fmt.Sprint("g", i)))
	}
	some := func(r *rand.Rand) (list []int64) {
		list = []int64{}
		for _, g := range groups {
			if r.IntN(2) == 0 {
				list = append(list, g)
			}
		}
		return list
	}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(worker)))
			for range 40 {
				number := sms.Number(fmt.Sprintf("+2577900000%d", r.IntN(10)))
				var err error
				switch r.IntN(5) {
				case 0, 1:
					entries := []contacts.Entry{entry(number, fmt.Sprint(r.Int()), some(r)...)}
					if other := sms.Number(fmt.Sprintf("+2577900000%d", r.IntN(10))); other != number {
						entries = append(entries, entry(other, "", some(r)...))
					}
					_, err = d.Put(t.Context(), 1, entries)
				case 2:
					err = postgres.InTx(t.Context(), d.pool, func(tx pgx.Tx) error {
						_, err := d.Join(t.Context(), tx, 1, groups[r.IntN(4)], number, contacts.Consent{Source: "x"})
						return err
					})
				case 3:
					err = postgres.InTx(t.Context(), d.pool, func(tx pgx.Tx) error {
						_, err := d.Leave(t.Context(), tx, 1, groups[r.IntN(4)], number)
						return err
					})
				case 4:
					_, err = d.Erase(t.Context(), number)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	d.exact()
}

// TestList: lists are complete and in order, page by page, for each filter.
func TestList(t *testing.T) {
	d := newTestStore(t)
	group := d.group(1, "g")
	var entries []contacts.Entry
	for i := range 25 {
		e := entry(sms.Number(fmt.Sprintf("+257790000%02d", i)), []string{"Éric", "eric N.", "Aline", "Zoé", ""}[i%5])
		if i%2 == 0 {
			e.Groups = []int64{group}
		}
		entries = append(entries, e)
	}
	d.put(1, entries...)
	d.put(2, entry("+25779000000", "Éric"))
	for name, test := range map[string]struct {
		contacts.Filter
		want int
		less func(a, b contacts.Contact) bool
	}{
		"all":   {contacts.Filter{}, 25, func(a, b contacts.Contact) bool { return a.ID > b.ID }},
		"group": {contacts.Filter{Group: group}, 13, func(a, b contacts.Contact) bool { return a.ID > b.ID }},
		"name":  {contacts.Search("ERI"), 10, func(a, b contacts.Contact) bool { return a.ID != b.ID }},
		"number": {contacts.Search("79 00 00 1"), 10,
			func(a, b contacts.Contact) bool { return a.Number < b.Number }},
		"number, whole":    {contacts.Search("00257 79000012"), 1, nil},
		"name in group":    {contacts.Filter{Name: "éric", Group: group}, 5, func(a, b contacts.Contact) bool { return true }},
		"number in group":  {contacts.Filter{Number: "+2577900001", Group: group}, 5, func(a, b contacts.Contact) bool { return a.Number < b.Number }},
		"name and number":  {contacts.Filter{Number: "+2577900001", Name: "zo"}, 2, func(a, b contacts.Contact) bool { return a.Number < b.Number }},
		"another's group":  {contacts.Filter{Group: group + 1}, 0, nil},
		"nothing":          {contacts.Filter{Name: "zzz"}, 0, nil},
		"the country code": {contacts.Search("257"), 25, func(a, b contacts.Contact) bool { return a.Number < b.Number }},
	} {
		for _, limit := range []int{1, 3, 5, 100} {
			var got []contacts.Contact
			after := ""
			for turn := 0; turn == 0 || after != "" && turn < 100; turn++ {
				page, next, err := d.List(t.Context(), 1, test.Filter, after, limit)
				d.must(err)
				if len(page) > limit {
					t.Errorf("%s: a page of %d", name, len(page))
				}
				got, after = append(got, page...), next
			}
			for i := 1; i < len(got); i++ {
				if !test.less(got[i-1], got[i]) {
					t.Errorf("%s: %s stands before %s", name, got[i-1].Number, got[i].Number)
				}
			}
			if len(got) != test.want {
				t.Errorf("%s, by %d: %d contacts", name, limit, len(got))
			}
		}
	}
	names, err := d.Names(t.Context(), 1, []sms.Number{"+25779000000", "+25779000004", "+25771000000"})
	if err != nil || !maps.Equal(names, map[sms.Number]string{"+25779000000": "Éric"}) {
		t.Error(names, err)
	}
}

// TestListReads: a page reads about as many rows as it shows, however many contacts there are.
func TestListReads(t *testing.T) {
	d := newTestStore(t)
	large, small := d.group(1, "large"), d.group(1, "small")
	for _, statement := range []string{
		`INSERT INTO contacts (company_id, phone_number, name, name_key) SELECT 1 + n % 2, '+257' || 79000000 + n,
			'N' || n % 1000, 'n' || n % 1000 FROM generate_series(1, 20000) n`,
		`INSERT INTO contact_members SELECT $1, id FROM contacts WHERE company_id = 1`, `ANALYZE contacts`} {
		args := []any{large}
		if !strings.Contains(statement, "$1") {
			args = nil
		}
		if _, err := d.pool.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		contacts.Filter
		most int64
	}{
		"all": {contacts.Filter{}, 200}, "group": {contacts.Filter{Group: large}, 200},
		"name": {contacts.Filter{Name: "n"}, 200}, "rare name": {contacts.Filter{Name: "n998"}, 200},
		"number": {contacts.Filter{Number: "+257790"}, 200}, "whole number": {contacts.Filter{Number: "+25779000002"}, 10},
		"name in a group": {contacts.Filter{Name: "n", Group: small}, 1100},
	} {
		after := ""
		for range 2 { // the first page, and the next one
			d.tx(func(ctx context.Context, tx pgx.Tx) error {
				var before, scanned, fetched int64
				read := func() error {
					return tx.QueryRow(ctx, `SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables
						WHERE relname = 'contacts'`).Scan(&scanned, &fetched)
				}
				if err := read(); err != nil {
					return err
				}
				all := scanned
				before = fetched
				_, next, err := d.Store.In(tx).List(ctx, 1, test.Filter, after, 50)
				if err != nil {
					return err
				}
				after = next
				err = read()
				if scanned > all || fetched-before > test.most {
					t.Errorf("%s: %d rows scanned, %d fetched", name, scanned-all, fetched-before)
				}
				return err
			})
		}
	}
}

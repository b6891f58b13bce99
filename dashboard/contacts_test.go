package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/xuri/excelize/v2"

	"intumwa/accounts"
	"intumwa/contacts"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

// contact adds a contact to a company and its groups.
func (w *world) contact(company int64, number sms.Number, name string, groups ...int64) int64 {
	w.t.Helper()
	done, err := w.d.deps.Contacts.Put(w.t.Context(), company, []contacts.Entry{{Number: number, Name: &name,
		Fields: map[string]*string{"classe": new("3A")}, Groups: groups}})
	if err != nil {
		w.t.Fatal(err)
	}
	return done.IDs[0]
}

func (w *world) group(company int64, name string) int64 {
	w.t.Helper()
	made, err := w.d.deps.Contacts.CreateGroup(w.t.Context(), company, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return made.ID
}

// leads expects a redirect and opens the page that it leads to.
func (c *client) leads(a answer, texts ...string) answer {
	c.t.Helper()
	c.wants(a, http.StatusSeeOther)
	next := c.get(a.Header.Get("Location"))
	c.wants(next, http.StatusOK, texts...)
	return next
}

// TestContactPages: people of a company add, find, change and delete contacts, one or many, and see what is wrong with
// what they enter. A second click changes nothing.
func TestContactPages(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 0)
	c.wants(c.get("/contacts"), http.StatusOK, "No contacts yet", "Import contacts", "New contact")
	for _, wrong := range []struct{ field, value, text string }{
		{"phone_number", "12", "not a Burundi"}, {"phone_number", "", "This field is required"},
		{"name", strings.Repeat("x", 201), "200"}, {"new_field", "Nom", "A contact has this itself"},
		{"new_field", "***", "must have a letter"}, {"new_value", "3A", "This field is required"},
		{"consented_at", "2026-01-02", "This field is required"}, {"consented_at", "tomorrow", "not a date"},
		{"groups", "999", "There is no group 999"}, {"language", "de", "rn, fr, en"},
	} {
		form := url.Values{"phone_number": {"79 00 00 01"}, "name": {"Aline"}}
		form.Set(wrong.field, wrong.value)
		if wrong.field == "new_field" {
			form.Set("new_value", "3A")
		}
		c.wants(c.do(http.MethodPost, "/contacts/new", form), http.StatusUnprocessableEntity, wrong.text)
	}
	w.counts(0, `select count(*) from contacts`)

	group := w.group(company.ID, "Parents 3A")
	form := url.Values{"phone_number": {"79 00 00 01"}, "name": {"Éric <b>"}, "language": {"fr"},
		"new_field": {"Classe"}, "new_value": {"3A"}, "groups": {fmt.Sprint(group)}, "consent_source": {"form"},
		"consented_at": {"2026-01-02"}}
	a := c.do(http.MethodPost, "/contacts/new", form)
	path := a.Header.Get("Location")
	c.leads(a, "The contact is added", "Éric &lt;b&gt;", `value="3A"`, "2 Jan 2026", "checked")
	c.wants(c.do(http.MethodPost, "/contacts/new", form), http.StatusSeeOther)
	form.Set("name", "Another")
	c.wants(c.do(http.MethodPost, "/contacts/new", form), http.StatusUnprocessableEntity, "Another contact has this")
	w.counts(1, `select count(*) from contacts`)

	// What is not changed stays: the field, and the time of the consent.
	w.exec(`update contacts set consented_at = '2026-01-02 10:32:00+02'`)
	form = url.Values{"phone_number": {"79000002"}, "name": {"Zoé"}, "language": {""}, "fields.classe": {"4B"},
		"consent_source": {"form"}, "consented_at": {"2026-01-02"}}
	c.leads(c.do(http.MethodPost, path, form), "The contact is saved", "Zoé", "&#43;25779000002", `value="4B"`, "10:32")
	w.counts(1, `select count(*) from contacts where fields = '{"classe": "4B"}' and language = ''`)
	w.counts(0, `select count(*) from contact_members`)
	form.Set("fields.classe", "")
	form.Set("consent_source", "")
	form.Set("consented_at", "")
	c.leads(c.do(http.MethodPost, path, form), "Zoé")
	w.counts(1, `select count(*) from contacts where fields = '{}' and consent_source = '' and consented_at is null`)

	for i := range 60 {
		w.contact(company.ID, sms.Number(fmt.Sprintf("+2577901%04d", i)), fmt.Sprintf("Jean %02d", i), group)
	}
	if all := c.pages("/contacts"); len(all) != 3 || strings.Count(all[2].body, `name="id"`) != 11 {
		t.Errorf("%d pages", len(all))
	}
	for query, want := range map[string]string{"q=zoe": "Zoé", "q=79000002": "Zoé", "q=%2B257+79+01+00+07": "Jean 07",
		"q=jean+3": "Jean 39", "q=jean+07&group=" + fmt.Sprint(group): "Jean 07", "q=nobody": "Nothing found",
		"q=zo%C3%A9&group=" + fmt.Sprint(group): "Nothing found"} {
		c.wants(c.get("/contacts?"+query), http.StatusOK, want)
	}
	for _, none := range []string{"/contacts?group=x", "/contacts?group=999", "/contacts?after=x", "/contacts/999",
		"/contacts/x"} {
		c.wants(c.get(none), http.StatusNotFound)
	}

	c.wants(c.post("/contacts/ticked", "do", "delete"), http.StatusUnprocessableEntity, "Tick contacts in the list first")
	page := c.get("/contacts?q=jean+0")
	ids := url.Values{"do": {"join"}, "to": {""}}
	for _, id := range regexp.MustCompile(`name="id" value="(\d+)"`).FindAllStringSubmatch(page.body, -1) {
		ids.Add("id", id[1])
	}
	ids.Add("id", "999999") // somebody has deleted it
	c.wants(c.do(http.MethodPost, "/contacts/ticked", ids), http.StatusUnprocessableEntity, "Choose a group")
	other := w.group(company.ID, "Parents 3B")
	ids.Set("to", fmt.Sprint(other))
	c.leads(c.do(http.MethodPost, "/contacts/ticked", ids), "The contacts are in the group")
	w.counts(10, `select members from contact_groups where id = $1`, other)
	ids.Set("do", "leave")
	ids.Set("group", fmt.Sprint(group))
	c.leads(c.do(http.MethodPost, "/contacts/ticked", ids), "no longer in the group", "50 contacts in this group")
	ids.Set("do", "delete")
	for range 2 {
		c.leads(c.do(http.MethodPost, "/contacts/ticked", ids), "The contacts are deleted")
	}
	w.counts(51, `select contacts from contact_books where company_id = $1`, company.ID)
	w.counts(0, `select members from contact_groups where id = $1`, other)
	c.leads(c.post(path+"/delete"), "The contact is deleted")
	c.wants(c.post(path+"/delete"), http.StatusNotFound)
	if n := w.count(`select count(*) from audit_log where act like 'contacts.%'`); n != 7 {
		t.Errorf("%d entries of the audit log", n)
	}

	reader, _ := w.person(company, accounts.RoleReader)
	jean := w.contact(company.ID, "+25779999999", "Jean")
	for _, path := range []string{"/contacts", "/contacts/groups", fmt.Sprintf("/contacts/%d", jean)} {
		a := reader.get(path)
		reader.wants(a, http.StatusOK)
		if strings.Contains(a.body, `action="/contacts`) && strings.Contains(a.body, `method="post" action="/contacts`) {
			t.Errorf("%s offers a reader a change:\n%s", path, a.body)
		}
	}
	reader.wants(reader.get(fmt.Sprintf("/contacts/%d", jean)), http.StatusOK, "classe", "3A", "&#43;25779999999")
}

// TestGroupPages: people make, rename and delete groups. The members of a deleted one stay contacts.
func TestGroupPages(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 0)
	c.wants(c.get("/contacts/groups"), http.StatusOK, "No groups yet")
	c.wants(c.post("/contacts/groups", "name", " "), http.StatusUnprocessableEntity, "name of the group is required")
	c.leads(c.post("/contacts/groups", "name", "Élèves"), "The group is created", "Élèves")
	c.wants(c.post("/contacts/groups", "name", "eleves"), http.StatusUnprocessableEntity, "There is a group")
	id := int64(w.count(`select id from contact_groups`))
	w.contact(company.ID, "+25779000001", "Aline", id)
	path := fmt.Sprintf("/contacts/groups/%d", id)
	c.wants(c.get(fmt.Sprintf("/contacts?group=%d", id)), http.StatusOK, "1 contact in this group", `value="Élèves"`,
		fmt.Sprintf("/contacts/import?group=%d", id))
	c.wants(c.post(path, "name", ""), http.StatusUnprocessableEntity, "is required", "Aline")
	c.leads(c.post(path, "name", "Élèves 3A"), "The group is renamed", "Élèves 3A")
	w.exec(`insert into inbound_routes (address, keyword, company_id, leave_group) values ('8080', 'SOHOKA', $1, $2)`,
		company.ID, id)
	c.wants(c.post(path+"/delete"), http.StatusUnprocessableEntity, "people who send SOHOKA to 8080 join or leave it",
		"Élèves 3A", "Aline")
	w.exec(`delete from inbound_routes`)
	c.leads(c.post(path+"/delete"), "The group is deleted")
	c.wants(c.post(path+"/delete"), http.StatusNotFound)
	c.wants(c.get(fmt.Sprintf("/contacts?group=%d", id)), http.StatusNotFound)
	c.wants(c.get("/contacts"), http.StatusOK, "Aline")
	for i := range 60 {
		w.group(company.ID, fmt.Sprintf("Groupe %d", i))
	}
	if all := c.pages("/contacts/groups"); len(all) != 3 {
		t.Errorf("%d pages", len(all))
	}
}

// TestImportPages: a person sees what a file would change before anything is kept, confirms it, and follows it to its
// end. The same file again changes nothing.
func TestImportPages(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 0)
	w.contact(company.ID, "+25779000001", "Aline")
	group := w.group(company.ID, "Parents")
	import1 := func(file string, pairs ...string) answer {
		t.Helper()
		form := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return c.upload("/contacts/import", form, file)
	}
	const file = "Noms;Tél;Classe;Langue\nAline;79000001;3A;fr\nÉric;79 00 00 02;4B;kirundi\nZoé;12;4B;fr\n" +
		"Jean;79000003;;xx\nAnge;79000004;4B;\nAnge N.;79000004;4B;\n"
	for _, wrong := range []struct {
		file  string
		pairs []string
		text  string
	}{
		{"", nil, "Choose a file"}, {"nom;ville\nA;B\n", nil, "No column has phone numbers"},
		{"a\n", []string{"encoding", "EBCDIC"}, "Choose one of the encodings"},
		{file, []string{"group", "999"}, "does not exist any more"},
		{file, []string{"group", "x"}, "does not exist any more"},
		{file, []string{"group", fmt.Sprint(group), "new_group", "Autres"}, "not both"},
		{file, []string{"consented_at", "2026-01-01"}, "This field is required"},
		{file, []string{"new_group", "a,b"}, "comma"},
		{file, []string{"new_group", "a\x00b"}, "character"},
		{strings.Repeat("x", 2<<20), nil, ""},
	} {
		a := import1(wrong.file, wrong.pairs...)
		c.wants(a, http.StatusUnprocessableEntity, wrong.text)
	}
	w.counts(0, `select count(*) from contact_imports`)

	a := import1(file, "new_group", "Parents 3", "consent_source", "form")
	path := a.Header.Get("Location")
	page := c.leads(a, "Check before you import", "To be confirmed", "Éric", "Field classe", "Parents 3",
		"2 lines are refused", "Import 3 contacts", "1 line has the number of a later line")
	if !regexp.MustCompile(`(?s)New</dt><dd>2<.*Changed</dt><dd>1<.*Unchanged</dt><dd>0<`).MatchString(page.body) {
		t.Errorf("the counts:\n%s", page.body)
	}
	if lines := c.lines(c.get(path + "/lines.csv")); len(lines) != 3 || lines[1][0] != "4" || lines[2][0] != "5" {
		t.Errorf("the refused lines: %q", lines)
	}
	w.counts(1, `select count(*) from contacts`)
	for range 2 {
		c.wants(c.post(path+"/confirm"), http.StatusSeeOther)
	}
	w.until("it is merged", func() bool {
		return w.count(`select count(*) from contact_imports where done_at is not null`) == 1
	})
	c.wants(c.get(path), http.StatusOK, "Done", "See the contacts")
	w.counts(3, `select count(*) from contact_members m join contact_groups g on g.id = group_id where name = 'Parents 3'`)
	w.counts(1, `select count(*) from audit_log where act = 'contacts.import'`)
	c.wants(c.post(path+"/drop"), http.StatusSeeOther)
	c.wants(c.get(path), http.StatusOK, "Done")
	c.wants(c.get("/contacts/import"), http.StatusOK, "people.csv", "Done")

	a = import1(file, "group", fmt.Sprint(w.count(`select id from contact_groups where name = 'Parents 3'`)))
	c.leads(a, "This file changes no contact")
	path = a.Header.Get("Location")
	c.leads(c.post(path+"/drop"), "The import is discarded")
	c.wants(c.get(path), http.StatusNotFound)
	c.wants(c.post(path+"/confirm"), http.StatusNotFound)
	c.wants(c.post(path+"/drop"), http.StatusNotFound)

	// A group that is deleted before the import is confirmed.
	a = import1("tel\n79000009\n", "group", fmt.Sprint(group))
	c.wants(a, http.StatusSeeOther)
	w.exec(`delete from contact_groups where id = $1`, group)
	c.wants(c.post(a.Header.Get("Location")+"/confirm"), http.StatusUnprocessableEntity, "Discard this import")
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK)
}

// TestExportContacts: the files of all contacts or a group, of which the owner is told.
func TestExportContacts(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 0)
	group := w.group(company.ID, "Parents")
	w.contact(company.ID, "+25779000001", "=1+1", group)
	w.contact(company.ID, "+25779000002", "Éric")
	rows := c.lines(c.post("/contacts/export.csv"))
	if len(rows) != 3 || strings.Contains(fmt.Sprint(rows), "[=1") || !strings.Contains(fmt.Sprint(rows), "Éric") {
		t.Errorf("the file: %q", rows)
	}
	a := c.post("/contacts/export.xlsx", "group", fmt.Sprint(group))
	c.wants(a, http.StatusOK)
	book, err := excelize.OpenReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	rows, err = book.GetRows(book.GetSheetName(0))
	if err != nil || len(rows) != 2 || !strings.Contains(fmt.Sprint(rows), "79000001") {
		t.Errorf("the workbook: %q (%v)", rows, err)
	}
	c.wants(c.post("/contacts/export.csv", "group", "999"), http.StatusNotFound)
	w.counts(2, `select count(*) from audit_log where act = 'contacts.export'`)
	if m := w.mail("aline@example.com", 0); !strings.Contains(m.Text, "aline@example.com") {
		t.Errorf("the mail: %s", m.Text)
	}
}

// TestCampaignToGroups: a campaign goes to groups without others, each number once, after the page of a checked file.
func TestCampaignToGroups(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 100)
	if a := c.get("/campaigns"); strings.Contains(a.body, "Choose groups") {
		t.Error("the form has groups where there are none")
	}
	a, b := w.group(company.ID, "Parents 3"), w.group(company.ID, "Parents 4")
	w.contact(company.ID, "+25779000001", "Aline", a)
	w.contact(company.ID, "+25779000002", "Éric", a, b)
	w.contact(company.ID, "+25779000003", "", a)
	w.contact(company.ID, "+25779000004", "Zoé", a)
	w.exec(`insert into opt_outs (company_id, phone_number, sender, source) values ($1, '+25779000004', '', 'handset')`,
		company.ID)
	send := func(template string, groups, without []int64, file string) answer {
		form := url.Values{"sender": {"DEMO"}, "template": {template}}
		for _, id := range groups {
			form.Add("groups", fmt.Sprint(id))
		}
		for _, id := range without {
			form.Add("without", fmt.Sprint(id))
		}
		return c.upload("/campaigns", form, file)
	}
	c.wants(c.get(fmt.Sprintf("/campaigns?groups=%d", a)), http.StatusOK, "Parents 3 (4)", "Parents 4 (1)", "checked",
		"{{classe}}", "{{name}}")
	one := []int64{a}
	for _, wrong := range []struct {
		a    answer
		text string
	}{
		{send("Bonjour", one, nil, "tel\n79000001\n"), "not both"},
		{send("Bonjour", nil, one, ""), "Choose at least one group"},
		{send("Bonjour", nil, nil, ""), "Choose a file"},
		{send("Bonjour", []int64{999}, nil, ""), "does not exist any more"},
		{send("Bonjour {{solde}}", one, nil, ""), "solde"},
		{send("Bonjour", one, one, ""), "Nothing was sent"},
	} {
		c.wants(wrong.a, http.StatusUnprocessableEntity, wrong.text)
	}
	answer := send("Bonjour {{name}} de {{classe}}", one, []int64{b}, "")
	path := answer.Header.Get("Location")
	page := c.leads(answer, "Bonjour Aline de 3A", "1 recipient has opted out", "1 message has an empty cell", "Parents 4",
		"&#43;25779000003")
	if strings.Contains(page.body, "79000002") || strings.Contains(page.body, "Line</th>") {
		t.Errorf("the page:\n%s", page.body)
	}
	c.leads(c.post(path+"/without", "what", "optedout"), "Send 2 messages")
	w.exec(`delete from contact_members where contact_id = (select id from contacts where phone_number = '+25779000003')`)
	c.wants(c.post(path+"/send"), http.StatusUnprocessableEntity, "Nothing was sent", "1 contact cannot get this campaign")
	c.leads(c.post(path+"/without", "what", "faults"), "Send 1 message")
	c.leads(c.post(path+"/send"), "Parents 3")
	w.counts(1, `select count(*) from messages`)
	w.counts(1, `select count(*) from messages where phone_number = '+25779000001' and body = 'Bonjour Aline de 3A'`)
}

// TestManyContacts: the pages of contacts stay small, take few statements, and scan no table that grows with the
// contacts. The short form disables sequential scans where an index exists; the long one has 1,000,000 contacts, lets
// the planner choose, and measures.
func TestManyContacts(t *testing.T) {
	many := 6_000
	if testenv.Thorough() {
		many = 1_000_000
	}
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 1000)
	conn, err := w.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	blanks := strings.NewReplacer("$company", fmt.Sprint(company.ID), "$all", fmt.Sprint(many))
	for _, fill := range []string{
		`set statement_timeout = 0`,
		`insert into contacts (company_id, phone_number, name, name_key, fields)
		 select case when n % 2 = 0 then $company else $company + 1 end, '+2577' || lpad(n::text, 7, '0'), 'Jean ' || n,
			'jean ' || n, '{"classe": "3A"}' from generate_series(1, $all) n`,
		`insert into contact_groups (company_id, name, name_key, members) select $company, 'Groupe ' || n, 'groupe ' || n, 0
		 from generate_series(1, 200) n`,
		`insert into contact_members select g.id, c.id from contacts c, (select min(id) as id from contact_groups) g
		 where company_id = $company`,
		`insert into contact_members select g.id + 1 + c.id % 199, c.id from contacts c,
			(select min(id) as id from contact_groups) g where company_id = $company`,
		`update contact_groups g set members = (select count(*) from contact_members where group_id = g.id)`,
		`insert into contact_books (company_id, contacts, fields) values ($company, $all / 2, '{classe}')`,
		`vacuum analyze`,
	} {
		if _, err := conn.Exec(t.Context(), blanks.Replace(fill)); err != nil {
			t.Fatal(err)
		}
	}
	tracer := &executed{}
	config := w.pool.Config()
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.d.deps.Contacts = contacts.New(pool)
	w.d.deps.Imports = contacts.NewImports(pool, w.d.opts.Plan, w.d.log)
	w.d.wire()
	one := w.count(`select min(id) from contacts where company_id = $1`, company.ID)
	first, rare := w.count(`select min(id) from contact_groups`), w.count(`select min(id) + 7 from contact_groups`)
	for _, try := range []struct {
		name, path string
		statements int
	}{
		{"contacts", "/contacts", 4},
		{"contacts, a name", "/contacts?q=jean+2", 4},
		{"contacts, a number", "/contacts?q=79", 4},
		{"contacts, a large group", fmt.Sprintf("/contacts?group=%d", first), 5},
		{"contacts, a name in a small group", fmt.Sprintf("/contacts?q=jean&group=%d", rare), 9},
		{"contacts, nobody of a small group", fmt.Sprintf("/contacts?q=jean+2&group=%d", rare), 9},
		{"contact", fmt.Sprintf("/contacts/%d", one), 3},
		{"contact, new", "/contacts/new", 2},
		{"groups", "/contacts/groups", 1},
		{"import", "/contacts/import", 2},
		{"campaigns", "/campaigns", 2},
	} {
		tracer.take()
		a := c.get(try.path)
		if a.StatusCode != http.StatusOK || len(a.body) > 110_000 {
			t.Errorf("%s: %d, %d bytes", try.name, a.StatusCode, len(a.body))
		}
		statements := tracer.take()
		if len(statements) > try.statements {
			t.Errorf("%s takes %d statements, not %d", try.name, len(statements), try.statements)
		}
		seen := map[string]bool{}
		for _, s := range statements {
			if seen[s.sql] {
				continue
			}
			seen[s.sql] = true
			plan := explain(t, w.pool, s)
			for _, table := range []string{"contacts", "contact_members"} {
				if strings.Contains(plan, "Seq Scan on "+table+" ") || strings.HasSuffix(plan, "Seq Scan on "+table) {
					t.Errorf("%s reads the whole table %s:\n%s\n%s", try.name, table, s.sql, plan)
				}
			}
		}
		if testenv.Thorough() {
			best := time.Hour
			for range 5 {
				start := time.Now()
				c.get(try.path)
				best = min(best, time.Since(start))
			}
			t.Logf("%s: %v", try.name, best) // 1 to 30 ms on a machine that does nothing else
		}
	}
	if all := c.pages("/contacts?q=jean+1999&group=" + fmt.Sprint(first)); len(all) > 10 {
		t.Errorf("a search in a group takes %d pages", len(all))
	}
}

// schoolList is a spreadsheet as a school has it: a title, numbered lines, numbers in
// several forms, a cell with two numbers, and a column of groups.
func schoolList(t *testing.T) string {
	t.Helper()
	return string(newBook(t, func(f *excelize.File) {
		for i, row := range [][]any{
			{"Lycée du Lac Tanganyika : parents d’élèves 2026"},
			{},
			{"N°", "Nom et prénom", "Téléphone", "Classe", "Solde (FBu)", "Groupe"},
			{1, "NDAYISHIMIYE Aline", 79000401, "3A", 25000, "Parents 3A"},
			{2, "Niyonzima Éric", "+257 79 00 04 02", "3A", 0, "Parents 3A"},
			{3, "Hakizimana Zoé", "79.00.04.03", "4B", 12500, "Parents 4B"},
			{4, "Irakoze Jean-Bosco", "71 00 04 04 / 71 00 04 05", "4B", 0, "Parents 4B"},
			{5, "Ndayizeye Ange", 61000406, "4B", 7000, "Parents 4B, Comité"},
			{6, "Bukuru Divine", 61000407, "3A", 7000, "Parents 3A; Comité"},
		} {
			if err := f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row); err != nil {
				t.Fatal(err)
			}
		}
	}))
}

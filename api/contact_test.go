package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"intumwa/contacts"
)

// made returns the id in a response.
func (w *world) made(got reply) int64 {
	w.t.Helper()
	var v struct{ ID int64 }
	if err := json.Unmarshal([]byte(got.body), &v); err != nil || got.status != 200 || v.ID == 0 {
		w.t.Fatalf("%d %s", got.status, got.body)
	}
	return v.ID
}

// A company's programs keep its contacts and groups; another company sees none of them.
func TestContacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	do := func(method, path, body string) reply { return w.do("live", method, path, body) }
	group := w.made(do("POST", "/v1/groups", `{"name":"Classe 3"}`))
	choir := w.made(do("POST", "/v1/groups", `{"name":"Chorale"}`))
	id := w.made(do("POST", "/v1/contacts", fmt.Sprintf(`{"phone_number":"79 12 34 00","name":"Aline","language":"fr-BI",
		"fields":{"Classe":"3","Solde dû":"25 000"},"groups":["%d",%d],"consent_source":"form 2026",
		"consented_at":"2026-03-01T10:00:00+02:00"}`, group, choir)))
	path := fmt.Sprint("/v1/contacts/", id)
	is := func(want string) {
		t.Helper()
		got := do("GET", path, "")
		var all map[string]any
		_ = json.Unmarshal([]byte(got.body), &all)
		delete(all, "created_at")
		delete(all, "updated_at")
		if text, _ := json.Marshal(all); string(text) != want {
			t.Errorf("%d %s\nnot %s", got.status, text, want)
		}
	}
	is(fmt.Sprintf(`{"consent_source":"form 2026","consented_at":"2026-03-01T08:00:00+00:00","fields":{"classe":"3",`+
		`"solde_du":"25 000"},"groups":[%d,%d],"id":%d,"language":"fr","name":"Aline","phone_number":"+25779123400"}`, group,
		choir, id))
	if got := do("PATCH", path, fmt.Sprintf(`{"name":null,"fields":{"classe":null,"ville":"Gitega"},"groups":[%d],
		"phone_number":"+25779123401"}`, choir)); got.status != 200 {
		t.Error(got.status, got.body)
	}
	is(fmt.Sprintf(`{"consent_source":"form 2026","consented_at":"2026-03-01T08:00:00+00:00","fields":{"solde_du":"25 000",`+
		`"ville":"Gitega"},"groups":[%d],"id":%d,"language":"fr","name":null,"phone_number":"+25779123401"}`, choir, id))
	for given, want := range map[string]string{
		`"consent_source":"call","consented_at":"2026-03-01"`: `"call","consented_at":"2026-02-28T22:00:00+00:00"`,
		`"consent_source":null`:                               `null,"consented_at":null`} {
		if got := do("PATCH", path, `{`+given+`}`); !strings.Contains(got.body, `"consent_source":`+want) {
			t.Errorf("%s: %s", given, got.body)
		}
	}
	for range 2 { // it can be repeated
		do("POST", "/v1/contacts/bulk", `{"contacts":[{"phone_number":"79123401","name":"Aline"},
			{"phone_number":"61234500","name":"Éric"}]}`)
	}
	if got := do("POST", "/v1/contacts/bulk", `{"contacts":[{"phone_number":"79123401","name":"Aline"},
		{"phone_number":"61234500","name":"Eric"},{"phone_number":"61234501"}]}`); got.body !=
		`{"created":1,"updated":1,"unchanged":1}` {
		t.Error(got.body)
	}
	if got := w.do("other", "GET", path, ""); got.status != 404 {
		t.Error("another company:", got.body)
	}
	var seen []string
	cursor := ""
	for range 9 {
		got := do("GET", "/v1/contacts?limit=1"+cursor, "")
		var page struct {
			Data []struct {
				PhoneNumber string `json:"phone_number"`
			}
			NextCursor *string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || len(page.Data) != 1 {
			t.Fatal(got.body)
		}
		seen = append(seen, page.Data[0].PhoneNumber)
		if page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if strings.Join(seen, " ") != "+25761234501 +25761234500 +25779123401" {
		t.Error(seen)
	}
	for query, want := range map[string]int{"name=ALI": 1, "name=x": 0, "phone_number=61234500": 1,
		fmt.Sprint("group=", choir): 1, fmt.Sprintf("group=%d&name=e", choir): 0} {
		got := do("GET", "/v1/contacts?"+query, "")
		if n := strings.Count(got.body, `"id"`); got.status != 200 || n != want {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	if got := do("PATCH", fmt.Sprint("/v1/groups/", group), `{"name":"Classe 3 A"}`); got.status != 200 ||
		!strings.Contains(got.body, `"name":"Classe 3 A","members":0`) {
		t.Error(got.body)
	}
	if got := do("GET", "/v1/groups?limit=1", ""); got.status != 200 ||
		!strings.Contains(got.body, `"name":"Chorale","members":1`) || strings.Contains(got.body, `"next_cursor":null`) {
		t.Error(got.body)
	}
	for _, gone := range []string{path, fmt.Sprint("/v1/groups/", choir)} {
		if got := do("DELETE", gone, ""); got.status != 200 || !strings.Contains(got.body, `"deleted":true`) {
			t.Error(got.body)
		}
		for _, method := range []string{"GET", "DELETE", "PATCH"} {
			if got := do(method, gone, `{"name":"x"}`); got.status != 404 {
				t.Errorf("%s %s: %d %s", method, gone, got.status, got.body)
			}
		}
	}
	if n := w.count(`SELECT count(*) FROM audit_log WHERE act IN ('contacts.delete', 'contacts.group_delete')`); n != 2 {
		t.Errorf("%d entries in the audit log", n)
	}
}

// What is wrong with a contact or group is named, and nothing is changed.
func TestWrongContacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	do := func(method, path, body string) reply { return w.do("live", method, path, body) }
	group := w.made(do("POST", "/v1/groups", `{"name":"Classe 3"}`))
	id := w.made(do("POST", "/v1/contacts", `{"phone_number":"79123400"}`))
	w.made(do("POST", "/v1/contacts", `{"phone_number":"79123401"}`))
	long := strings.Repeat("x", 300)
	inGroups := ""
	for i := range 21 {
		inGroups += fmt.Sprintf(`,{"phone_number":"791234%02d","groups":[1`, i)
		for id := 2; id <= contacts.MaxGroups; id++ {
			inGroups += fmt.Sprint(",", id)
		}
		inGroups += "]}"
	}
	inGroups = inGroups[1:]
	many := strings.TrimSuffix(strings.Repeat(`{"phone_number":"79123400"},`, 1001), ",")
	var fields []string
	for i := range 21 {
		fields = append(fields, fmt.Sprintf(`"f%d":"x"`, i))
	}
	wrong := []struct{ body, field string }{
		{`{"phone_number":null}`, "phone_number"}, {`{"phone_number":"22"}`, "phone_number"},
		{`{"phone_number":"79000001","name":7}`, "name"}, {`{"phone_number":"79000001","name":"` + long + `"}`, "name"},
		{`{"phone_number":"79000001","language":"de"}`, "language"},
		{`{"phone_number":"79000001","fields":[1]}`, "fields"},
		{`{"phone_number":"79000001","fields":{` + strings.Join(fields, ",") + `}}`, "fields"},
		{`{"phone_number":"79000001","fields":{"a":1}}`, "fields.a"},
		{`{"phone_number":"79000001","fields":{"nom":"x"}}`, "fields.nom"},
		{`{"phone_number":"79000001","fields":{"a":"` + long + `"}}`, "fields.a"},
		{`{"phone_number":"79000001","groups":[0]}`, "groups"}, {`{"phone_number":"79000001","groups":{}}`, "groups"},
		{`{"phone_number":"79000001","groups":[999]}`, "groups"},
		{`{"phone_number":"79000001","consent_source":7}`, "consent_source"},
		{`{"phone_number":"79000001","consent_source":"x","consented_at":"soon"}`, "consented_at"},
		{`{"phone_number":"79000001","consent_source":"x","consented_at":"2999-01-01"}`, "consented_at"},
		{`{"phone_number":"79000001","consent_source":"x","consented_at":"0001-01-01T00:00:00Z"}`, "consented_at"},
		{`{"phone_number":"79000001","consent_source":"x","consented_at":"1999-12-31"}`, "consented_at"},
		{`{"phone_number":"79000001","name":"a\u202eb"}`, "name"},
	}
	for _, source := range []string{"", `,"consent_source":null`, `,"consent_source":" "`} {
		wrong = append(wrong, struct{ body, field string }{
			`{"phone_number":"79000001","consented_at":"2026-03-01"` + source + `}`, "consent_source"})
	}
	for _, c := range wrong {
		got := do("POST", "/v1/contacts", c.body)
		if got.status != 422 || !strings.Contains(got.body, `"`+c.field+`":[`) {
			t.Errorf("%.100s: %d %s", c.body, got.status, got.body)
		}
		got = do("POST", "/v1/contacts/bulk", `{"contacts":[{"phone_number":"79000002"},`+c.body+`]}`)
		if got.status != 422 || !strings.Contains(got.body, `"contacts.1.`+c.field+`":[`) ||
			!strings.Contains(got.body, textInvalid) {
			t.Errorf("%.100s: %d %s", c.body, got.status, got.body)
		}
	}
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "/v1/contacts", `{"phone_number":"79123400"}`, "phone_number"},
		{"PATCH", fmt.Sprint("/v1/contacts/", id), `{"phone_number":"79123401"}`, "phone_number"},
		{"POST", "/v1/contacts/bulk", `{}`, "contacts"}, {"POST", "/v1/contacts/bulk", `{"contacts":[` + many + `]}`, "contacts"},
		{"POST", "/v1/contacts/bulk", `{"contacts":[` + inGroups + `]}`, "contacts"},
		{"POST", "/v1/contacts/bulk", `{"contacts":[{"phone_number":"79123400"},{"phone_number":"+25779123400"}]}`,
			"contacts.1.phone_number"},
		{"POST", "/v1/groups", `{}`, "name"}, {"POST", "/v1/groups", `{"name":"a;b"}`, "name"},
		{"POST", "/v1/groups", `{"name":"CLASSE  3"}`, "name"},
		{"GET", "/v1/contacts?group=x", "", "group"}, {"GET", "/v1/contacts?cursor=x", "", "cursor"},
		{"GET", "/v1/contacts?colour=x", "", "colour"}, {"GET", "/v1/contacts?name=", "", "name"},
		{"GET", "/v1/contacts?name=%00", "", "name"}, {"GET", "/v1/contacts?name=%E2%80%8B", "", "name"},
		{"GET", "/v1/contacts?name=%CC%81", "", "name"},
		{"GET", "/v1/contacts?phone_number=22", "", "phone_number"}, {"GET", "/v1/groups?limit=0", "", "limit"},
	} {
		if got := do(c.method, c.path, c.body); got.status != 422 || !strings.Contains(got.body, `"`+c.field+`":[`) {
			t.Errorf("%s %s %.100s: %d %s", c.method, c.path, c.body, got.status, got.body)
		}
	}
	if n := w.count(`SELECT count(*) FROM contacts`); n != 2 {
		t.Errorf("%d contacts", n)
	}
	if n := w.count(`SELECT count(*) FROM contact_groups WHERE id = $1`, group); n != 1 {
		t.Error("the group is gone")
	}
}

// TestFullBooks: the errors of full lists are the documented refusals.
func TestFullBooks(t *testing.T) {
	a := &API{opts: Options{Log: slog.New(slog.DiscardHandler)}, metrics: newMetrics(nil)}
	for err, want := range map[error]*refusal{contacts.ErrFull: bookFull, contacts.ErrGroups: groupsFull} {
		answer := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(answer)
		c.Request = httptest.NewRequest("POST", "/v1/contacts", nil)
		a.writeError(c, err)
		if answer.Code != 400 || answer.Body.String() != messageJSON(want.text) {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		provoke(answer.Body.Bytes())
	}
}

// A template goes to the members of a group as to recipients with their values; who cannot be sent to is left out.
func TestTemplateToGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	do := func(method, path, body string, headers ...string) reply {
		return w.do("live", method, path, body, headers...)
	}
	group := w.made(do("POST", "/v1/groups", `{"name":"Parents"}`))
	empty := w.made(do("POST", "/v1/groups", `{"name":"Personne"}`))
	large := w.made(do("POST", "/v1/groups", `{"name":"Tous"}`))
	put := func(group int64, items string) {
		t.Helper()
		items = strings.ReplaceAll(items, "GROUP", fmt.Sprint(group))
		if got := do("POST", "/v1/contacts/bulk", `{"contacts":[`+items+`]}`); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	put(group, `{"phone_number":"79123401","name":"Aline","fields":{"solde":"100"},"groups":[GROUP]},
		{"phone_number":"61234502","name":"Éric","fields":{"solde":"200"},"groups":[GROUP]},
		{"phone_number":"79123403","name":"Out","groups":[GROUP]},{"phone_number":"31234504","name":"L","groups":[]}`)
	var all []string
	for i := range 501 {
		all = append(all, fmt.Sprintf(`{"phone_number":"7900%04d","groups":[GROUP]}`, i))
	}
	put(large, strings.Join(all, ","))
	w.optOut("live", "+25779123403", "ACME")
	send := func(template string, group any, more string) string {
		return fmt.Sprintf(`{"sender":"ACME","template":%q,"group":%v%s}`, template, group, more)
	}
	body := send("{{nom}}: {{Solde}} FBu", fmt.Sprintf(`"%d"`, group), "")
	got := do("POST", "/v1/sms/template", body, "Idempotency-Key", "k1")
	if got.status != 200 || !strings.Contains(got.body, `"recipients_count":2,"item_count":2`) ||
		!strings.HasSuffix(got.body, `,"left_out":{"opted_out":1}}`) {
		t.Fatal(got.status, got.body)
	}
	if n := w.count(`SELECT count(*) FROM messages WHERE (phone_number, body) IN (('+25779123401', 'Aline: 100 FBu'),
		('+25761234502', 'Éric: 200 FBu'))`); n != 2 {
		t.Errorf("%d of the texts are right", n)
	}
	aline := w.count(`SELECT id FROM contacts WHERE phone_number = '+25779123401'`)
	if got := do("PATCH", fmt.Sprint("/v1/contacts/", aline), `{"fields":{"solde":null}}`); got.status != 200 {
		t.Fatal(got.body)
	}
	for want, body := range map[string]string{
		messageJSON(fmt.Sprintf("Contact #%d is missing required template variables: Solde.", aline)): body,
		`"group":["The group does not exist."]`:                                                       send("x", 999, ""),
		`"group":["The group has no members."]`:                                                       send("x", empty, ""),
		`"group":["The group must not have more than 500 members."]`:                                  send("x", large, ""),
		`"group":["The group must be the id of a group."]`:                                            send("x", `"a"`, ""),
		`"group":["The group must not be given together with recipients."]`:                           send("x", group, `,"recipients":[]`),
		`"template":["The template field is required."]`:                                              send("", group, ""),
	} {
		if got := do("POST", "/v1/sms/template", body); got.status != 400 && got.status != 422 ||
			!strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	w.exec(`INSERT INTO inbound_routes (address, keyword, company_id, join_group) SELECT '8080', 'JOIN', company_id, id
		FROM contact_groups WHERE id = $1`, group)
	if got := do("DELETE", fmt.Sprint("/v1/groups/", group), ""); got.status != 400 ||
		got.body != messageJSON("A keyword (JOIN to 8080) joins or leaves the group.") {
		t.Error(got.status, got.body)
	}
	w.exec(`DELETE FROM inbound_routes`)
	if got := do("DELETE", fmt.Sprint("/v1/groups/", group), ""); got.status != 200 {
		t.Fatal(got.body)
	}
	if again := do("POST", "/v1/sms/template", body, "Idempotency-Key", "k1"); again.body != got.body ||
		again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the first answer is not given again:", again.body)
	}
	out := w.made(do("POST", "/v1/groups", `{"name":"Sortis"}`))
	put(out, `{"phone_number":"79123403","groups":[GROUP]}`)
	if got := do("POST", "/v1/sms/template", send("x", out, "")); got.body != messageJSON(
		"No member of the group can be sent to.") {
		t.Error(got.body)
	}
}

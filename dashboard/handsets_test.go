package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// writes stores MO messages to a company, one a minute up to now, and returns their ids.
func (w *world) writes(company accounts.Company, from string, texts ...string) (ids []int64) {
	w.t.Helper()
	for i, text := range texts {
		m := handsets.Message{CompanyID: company.ID, At: time.Now().Add(time.Duration(i+1-len(texts)) * time.Minute),
			Carrier: "leo", From: from, To: "8080", Parts: 1}
		if text != "" {
			m.Body = &text
		}
		id, err := handsets.New(w.pool).Insert(w.t.Context(), m)
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestReceivedPage: a company sees its MO messages page by page, by number and by day, and in a file. Texts are shown
// as text.
func TestReceivedPage(t *testing.T) {
	w := newWorld(t, nil)
	aline, _, alines := w.customer("aline", "ISOKO", 0)
	aline.wants(aline.get("/received"), http.StatusOK, "No messages received yet")
	var texts []string
	for i := range 30 {
		texts = append(texts, fmt.Sprintf("Amakuru no. %d", i))
	}
	w.writes(alines, "+25779000001", texts...)
	const evil = `"><script>alert(1)</script>=1+1`
	w.writes(alines, "+25761000002", "", evil)

	pages := aline.pages("/received")
	if len(pages) != 2 {
		t.Fatalf("%d pages", len(pages))
	}
	first, second := pages[0], pages[1]
	aline.wants(first, http.StatusOK, "Amakuru no. 29", "Not a text", "&lt;script&gt;", "Older", "/received.csv")
	aline.wants(second, http.StatusOK, "Amakuru no. 0<", "Newest")
	if strings.Contains(first.body, "Amakuru no. 3<") || strings.Contains(first.body, "<script>alert") ||
		strings.Contains(second.body, "Amakuru no. 29") {
		t.Errorf("the pages:\n%s\n%s", first.body, second.body)
	}
	found := aline.get("/received?number=61+00+00+02")
	aline.wants(found, http.StatusOK, "&lt;script&gt;", "/received.csv?number=61&#43;00&#43;00&#43;02")
	if strings.Contains(found.body, "Amakuru") {
		t.Error("another number's is found")
	}
	aline.wants(aline.get("/received?number=69000000"), http.StatusOK, "Nothing found")
	aline.wants(aline.get("/received?number=%2B32479000001"), http.StatusOK, "Nothing found")
	aline.wants(aline.get("/received?from=2001-01-01&to=2001-01-02"), http.StatusOK, "Nothing found")
	aline.wants(aline.get("/received?number=12"), http.StatusUnprocessableEntity, "not a Burundi", `value="12"`)
	aline.wants(aline.get("/received?from=tomorrow&number=%ff%00"), http.StatusUnprocessableEntity, "not a date")

	file := aline.lines(aline.get("/received.csv"))
	if len(file) != 33 || file[1][2] != "25761000002" || file[1][3] != "8080" || !strings.HasSuffix(file[1][5], "=1+1") ||
		file[3][5] != "" {
		t.Errorf("the file has %d lines: %q", len(file), file)
	}
	if one := aline.lines(aline.get("/received.csv?number=79000001")); len(one) != 31 {
		t.Errorf("the file of a number has %d lines", len(one))
	}
	for _, wrong := range []string{"/received.csv?number=12", "/opt-outs.csv?q=12", "/messages.csv?from=2026",
		"/statement.csv?to=tomorrow"} {
		if a := aline.get(wrong); a.StatusCode != http.StatusUnprocessableEntity ||
			!strings.Contains(a.body, `class="error"`) {
			t.Errorf("%s: %d, not the page with the error", wrong, a.StatusCode)
		}
	}
	// A purged message ends the list: all older ones are purged too.
	w.exec(`delete from inbound_messages where company_id = $1`, alines.ID)
	aline.wants(aline.get(second.Request.URL.RequestURI()), http.StatusOK, "Nothing found")
}

// TestOptOutsPage: a company adds numbers to its list and removes them, for one sender ID or all. Each change is
// audited without the number. Another company's list does not exist.
func TestOptOutsPage(t *testing.T) {
	w := newWorld(t, nil)
	aline, user, alines := w.customer("aline", "ISOKO", 0)
	bob, _, bobs := w.customer("bob", "BOBCO", 0)
	store := handsets.New(w.pool)
	if _, err := store.OptOut(t.Context(), sms.CompanyID(bobs.ID),
		[]handsets.OptOut{{Number: "+25779000009", Source: handsets.ByHandset}}); err != nil {
		t.Fatal(err)
	}
	aline.wants(aline.get("/opt-outs"), http.StatusOK, "No opt-outs yet")
	for _, wrong := range []struct{ number, sender, text string }{
		{"12", "", "not a Burundi"}, {"", "", "This field is required"},
		{"79 00 00 01", "BOBCO", "Choose one of your sender IDs"}, {"79 00 00 01", "*", "Choose one of your sender IDs"},
	} {
		aline.wants(aline.post("/opt-outs", "number", wrong.number, "sender", wrong.sender), http.StatusUnprocessableEntity,
			wrong.text)
	}
	changes := func(a answer, flash string) {
		t.Helper()
		if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/opt-outs" {
			t.Fatalf("%d to %s", a.StatusCode, a.Header.Get("Location"))
		}
		aline.wants(aline.get("/opt-outs"), http.StatusOK, flash)
	}
	changes(aline.post("/opt-outs", "number", "79 00 00 01", "sender", ""), "The number is on the list")
	changes(aline.post("/opt-outs", "number", "79 00 00 01", "sender", ""), "already on the list")
	changes(aline.post("/opt-outs", "number", "79 00 00 01", "sender", "ISOKO"), "The number is on the list")
	if _, err := store.OptOut(t.Context(), sms.CompanyID(alines.ID),
		[]handsets.OptOut{{Number: "+25761000002", Sender: "ISOKO", Source: handsets.ByHandset}}); err != nil {
		t.Fatal(err)
	}
	rows := func(path string, want ...string) {
		t.Helper()
		file := aline.lines(aline.get(strings.Replace(path, "/opt-outs", "/opt-outs.csv", 1)))
		var got []string
		for _, line := range file[1:] {
			got = append(got, strings.Join(line[:3], " "))
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if a := aline.get(path); strings.Count(a.body, `action="/opt-outs/remove"`) != len(want) {
			t.Errorf("%s has other lines than the file:\n%s", path, a.body)
		}
	}
	const all, ofSender, byHandset = "25779000001  Your company", "25779000001 ISOKO Your company",
		"25761000002 ISOKO The recipient"
	rows("/opt-outs", byHandset, ofSender, all)
	rows("/opt-outs?of=isoko", byHandset, ofSender)
	rows("/opt-outs?of=%2A", all)
	rows("/opt-outs?q=79000001", ofSender, all)
	rows("/opt-outs?q=79000001&of=ISOKO", ofSender)
	rows("/opt-outs?q=79000009")
	aline.wants(aline.get("/opt-outs?q=12"), http.StatusUnprocessableEntity, "not a Burundi")

	bob.wants(bob.post("/opt-outs/remove", "number", "+25779000001", "sender", "ISOKO"), http.StatusSeeOther)
	rows("/opt-outs", byHandset, ofSender, all)
	for _, wrong := range [][]string{{"number", "12", "sender", ""}, {"number", "+25779000001", "sender", "\xff"},
		{"sender", ""}} {
		aline.wants(aline.post("/opt-outs/remove", wrong...), http.StatusNotFound)
	}
	changes(aline.post("/opt-outs/remove", "number", "+25779000001", "sender", ""), "The number is off the list")
	changes(aline.post("/opt-outs/remove", "number", "+25779000001", "sender", ""), "no longer on the list")
	changes(aline.post("/opt-outs/remove", "number", "+25779000009", "sender", ""), "no longer on the list")
	rows("/opt-outs", byHandset, ofSender)
	if left, _, err := store.OptOuts(t.Context(), sms.CompanyID(bobs.ID), handsets.OptOutFilter{}, 0, 10); err != nil ||
		len(left) != 1 {
		t.Errorf("another's list: %v, %v", left, err)
	}
	var recorded string
	if err := w.pool.QueryRow(t.Context(), `select string_agg(act || ' ' || subject || ' ' || actor ||
		coalesce(before::text, '') || coalesce(after::text, ''), E'\n' order by id)
		from audit_log where act like 'optout%'`).Scan(&recorded); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("optout.add number +25779****01 user %[1]d{\"sender\": \"\"}\noptout.add number +25779****01 "+
		"user %[1]d{\"sender\": \"ISOKO\"}\noptout.remove number +25779****01 user %[1]d{\"sender\": \"\"}",
		user.ID); recorded != want {
		t.Errorf("recorded are %s, want %s", recorded, want)
	}
}

// TestCampaignWithoutOptedOut: a campaign with opted-out recipients is refused and lists them. Without them it is the
// same campaign, sent once.
func TestCampaignWithoutOptedOut(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 100)
	bar := func(numbers ...sms.Number) {
		t.Helper()
		var entries []handsets.OptOut
		for _, n := range numbers {
			entries = append(entries, handsets.OptOut{Number: n, Sender: "demo", Source: handsets.ByHandset})
		}
		if err := w.companies.NoteOptOuts(t.Context(), company.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := handsets.New(w.pool).OptOut(t.Context(), sms.CompanyID(company.ID), entries); err != nil {
			t.Fatal(err)
		}
	}
	check := func(file string) string {
		t.Helper()
		a := c.send("/campaigns", "DEMO", "Bonjour {{name}}", []byte("phone_number,name\n"+file))
		c.wants(a, http.StatusSeeOther)
		return a.Header.Get("Location")
	}
	draft := check("79000001,A\n79000002,B\n79000003,C\n79000002,B\n")
	c.wants(c.get(draft), http.StatusOK, "Send 4 messages")
	bar("+25779000002") // while they look at it
	c.wants(c.post(draft+"/send"), http.StatusUnprocessableEntity, "Nothing was sent", "2 recipients have opted out",
		`number">3<`, `number">5<`, "&#43;25779000002", "Remove the opted-out numbers")
	if page := c.get(draft); strings.Contains(page.body, draft+`/send`) || strings.Contains(page.body, `number">2<`) {
		t.Errorf("it can be sent with them:\n%s", page.body)
	}
	for range 2 { // the second time none is left to remove
		if to := c.post(draft+"/without", "what", "optedout").Header.Get("Location"); to != draft {
			t.Fatalf("without them: %s", to)
		}
	}
	c.wants(c.get(draft), http.StatusOK, "Ready to send", "Send 2 messages", "Cost in credits</dt><dd>2<")
	batch := c.post(draft + "/send").Header.Get("Location")
	bar("+25779000001")
	if to := c.post(draft+"/without", "what", "optedout").Header.Get("Location"); to != batch ||
		!strings.HasPrefix(batch, "/batches/") {
		t.Errorf("a sent campaign leads to %s, not to %s", to, batch)
	}
	w.counts(2, `select count(*) filter (where phone_number in ('+25779000001', '+25779000003')) from messages
		having count(*) = 2`)
	bar("+25779000003")
	empty := check("79000001,A\n79000003,C\n")
	c.wants(c.get(empty), http.StatusOK, "2 recipients have opted out", "no recipients left")
	if to := c.post(empty+"/without", "what", "optedout").Header.Get("Location"); to != empty {
		t.Errorf("without recipients: %s", to)
	}
	var file strings.Builder
	var numbers []sms.Number
	for i := range 30 {
		numbers = append(numbers, sms.Number(fmt.Sprintf("+257791000%02d", i)))
		fmt.Fprintf(&file, "%s,x\n", numbers[i])
	}
	bar(numbers...)
	c.wants(c.get(check(file.String())), http.StatusOK, "30 recipients have opted out", `number">21<`, "and 10 more lines")
}

// TestAdministratorsSeeNoCompanysTexts: administrators see only the texts of MO messages that no company has.
func TestAdministratorsSeeNoCompanysTexts(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(w)
	c.inside("root@example.com")
	outcomes := append(handsets.Outcomes(), handsets.Waiting, "")
	for _, outcome := range outcomes {
		w.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets, outcome)
			VALUES ('leo', 'leo', '25779000001', '8080', 0, 0, 'canary ' || $1, 'canary', nullif($1, ''))`, string(outcome))
	}
	a := c.get("/admin/inbound")
	c.wants(a, http.StatusOK, "canary "+string(handsets.Unrouted))
	if n := strings.Count(a.body, "canary"); n != 1 || strings.Count(a.body, "Not shown") != len(outcomes)-1 {
		t.Errorf("%d texts are shown:\n%s", n, a.body)
	}
}

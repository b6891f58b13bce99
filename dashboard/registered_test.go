package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"intumwa/accounts/companies"
	"intumwa/dashboard/web"
)

// registrationVersion is the hidden version of a carrier's form.
func registrationVersion(t *testing.T, page, carrier string) string {
	t.Helper()
	found := regexp.MustCompile(`name="carrier" value="` + carrier +
		`">\s*<input type="hidden" name="version" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no form for %s\n%s", carrier, page)
	}
	return found[1]
}

// TestSenderAtCarriersPages: an administrator records a sender's state at a carrier, from what the page showed, prints
// the letter and stores its document; the customer sees where the name works; sends and campaigns toward the other
// carrier are refused with the reason and cost nothing.
func TestSenderAtCarriersPages(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 100)
	admin := newClient(w)
	admin.inside("root@example.com")
	var id int64
	if err := w.pool.QueryRow(t.Context(), `select id from senders`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	path := senderPath(id)
	if page := c.get("/senders").body; strings.Contains(page, "leo") {
		t.Error("where nothing is required, nothing is said of carriers")
	}
	admin.wants(admin.get(web.CompanyPath(company.ID)), http.StatusOK, `href="`+path+`"`)
	record := func(status int, pairs ...string) answer {
		t.Helper()
		version := registrationVersion(t, admin.get(path).body, "leo")
		a := admin.post(path+"/carriers", append([]string{"carrier", "leo", "version", version}, pairs...)...)
		admin.wants(a, status)
		return a
	}
	for _, wrong := range [][]string{{"state", "maybe"}, {"state", "refused"}, {"state", "sent", "sent_on", "2999-01-01"},
		{"state", "sent", "sent_on", "x"}, {"state", "sent", "reason", "a\u202e"},
		{"state", "sent", "reason", strings.Repeat("x", 501)}} {
		record(http.StatusUnprocessableEntity, wrong...)
	}
	admin.wants(admin.post(path+"/carriers", "carrier", "econet", "state", "sent"), http.StatusNotFound)
	admin.wants(admin.post(senderPath(999)+"/carriers", "carrier", "leo", "state", "sent"), http.StatusNotFound)
	if n := w.count(`select count(*) from sender_carriers`); n != 0 {
		t.Fatalf("%d states are recorded", n)
	}
	record(http.StatusSeeOther, "state", "sent", "sent_on", "2026-03-01")
	admin.wants(admin.get(path), http.StatusOK, "Sent to the carrier", "2026", "Works") // it works at lumitel
	old := registrationVersion(t, admin.get(path).body, "leo")
	record(http.StatusSeeOther, "state", "refused", "reason", "Whose name?")
	a := admin.post(path+"/carriers", "carrier", "leo", "version", old, "state", "approved")
	admin.wants(a, http.StatusSeeOther)
	admin.wants(admin.get(path), http.StatusOK, "Not recorded: the state has changed since", "Whose name?")
	c.wants(c.get("/senders"), http.StatusOK, "leo", "Refused", "Whose name?", "lumitel", "cost nothing")

	// The customer's sends.
	c.wants(c.post("/messages/new", "do", "send", "key", c.key("/messages/new"), "sender", "DEMO", "number", "79000001",
		"message", "x"),
		http.StatusUnprocessableEntity, "does not know this sender ID yet")
	c.wants(c.post("/messages/new", "do", "send", "key", c.key("/messages/new"), "sender", "DEMO", "number", "61000001",
		"message", "x"), http.StatusSeeOther)
	draft := c.send("/campaigns", "DEMO", "Bonjour", []byte("phone_number\n61000001\n79000001\n")).Header.Get("Location")
	c.wants(c.get(draft), http.StatusOK, "1 line has an error", "leo does not know the sender ID DEMO yet: 79000001.")
	c.wants(c.post(draft+"/without", "what", "faults"), http.StatusSeeOther)
	c.wants(c.post(draft+"/send"), http.StatusSeeOther)
	draft = c.send("/campaigns", "DEMO", "Bonjour", []byte("phone_number\n61000001\n")).Header.Get("Location")
	// after the check of the file
	w.exec(`insert into sender_carriers (sender_id, company_id, carrier, state) values ($1, $2, 'lumitel', 'requested')`,
		id, company.ID)
	c.wants(c.post(draft+"/send"), http.StatusUnprocessableEntity, "does not know this sender ID yet")
	w.credits(company.ID, 98)

	// The list of late ones.
	admin.wants(admin.get("/admin/senders"), http.StatusOK, "One sender ID is waiting for a carrier")
	admin.wants(admin.get("/admin/senders/late"), http.StatusOK, "None has waited for more than a week")
	w.exec(`update sender_carriers set changed_at = now() - interval '8 days'`)
	admin.wants(admin.get("/admin/senders"), http.StatusOK, "one for more than a week")
	admin.wants(admin.get("/admin/senders/late"), http.StatusOK, `href="`+path+`"`, "lumitel", "Requested")

	// The letter.
	w.d.opts.Operator = web.Operator{Name: "Nyota <Ltd>", NIF: "4000999999", Address: "Rohero"}
	w.d.wire()
	if _, _, err := w.companies.SetFacts(t.Context(), 1, companies.Facts{NIF: "4000123456", TradeRegister: "RC 12345/21",
		Address: "Rohero", Phone: "+257 22 21 00 00", Contact: hostile}); err != nil {
		t.Fatal(err)
	}
	w.exec(`update senders set purpose = $1`, hostile)
	letter := admin.get(path + "/letter?carrier=leo")
	admin.wants(letter, http.StatusOK, `lang="fr"`, "Madame, Monsieur", "Nyota &lt;Ltd&gt;", "4000999999", "DEMO", "leo",
		"4000123456", "RC 12345/21", "aucune")
	if strings.Contains(letter.body, "<img") {
		t.Error("markup of the customer is in the letter")
	}
	admin.wants(admin.get(path+"/letter?carrier=leo&in=en"), http.StatusOK, `lang="en"`, "Dear Sir or Madam")
	for _, none := range []string{path + "/letter?carrier=econet", path + "/letter?carrier=leo&in=xx", senderPath(999) +
		"/letter?carrier=leo", senderPath(999)} {
		admin.wants(admin.get(none), http.StatusNotFound)
	}

	// Its document.
	var at int64
	if err := w.pool.QueryRow(t.Context(), `select id from sender_carriers where carrier = 'leo'`).Scan(&at); err != nil {
		t.Fatal(err)
	}
	paper := fmt.Sprintf("/admin/registrations/%d/document", at)
	admin.wants(admin.get(paper), http.StatusNotFound)
	admin.wants(admin.uploadAs(paper, url.Values{}, "letter.txt", "text"), http.StatusUnprocessableEntity)
	admin.wants(admin.uploadAs("/admin/registrations/999/document", url.Values{}, "letter.pdf", aCertificate),
		http.StatusNotFound)
	admin.wants(admin.uploadAs(paper, url.Values{}, "letter.pdf", aCertificate), http.StatusSeeOther)
	got := admin.get(paper)
	admin.wants(got, http.StatusOK, aCertificate)
	if !strings.HasPrefix(got.Header.Get("Content-Disposition"), "attachment") ||
		got.Header.Get("Content-Type") != "application/pdf" {
		t.Errorf("%v", got.Header)
	}
	admin.wants(admin.get(path), http.StatusOK, "letter.pdf")
	admin.wants(admin.get(path+"/letter?carrier=leo"), http.StatusOK, "letter.pdf")
	c.wants(c.get(paper), http.StatusNotFound)
	c.wants(c.get(path), http.StatusNotFound)
	if acts := strings.Join(w.acts(company.ID), " "); !strings.HasSuffix(
		acts, "sender.carrier sender.carrier sender.carrier_document") {
		t.Errorf("recorded: %s", acts)
	}
}

func senderPath(id int64) string { return fmt.Sprintf("/admin/senders/%d", id) }

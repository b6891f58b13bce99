package dashboard

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/dashboard/web"
)

// aCertificate begins like a PDF; nothing more is checked.
const aCertificate = "%PDF-1.7\n<script>alert(1)</script>"

var factsVersion = regexp.MustCompile(`name="facts" value="(\d*)"`)

// TestFacts: after the sign-up, the only next step on the home page leads a company to state its facts. An
// administrator sees what is missing and approves exactly the facts shown.
func TestFacts(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.owner()
	admin := newClient(w)
	admin.inside("root@example.com")
	admin.wants(admin.get("/admin"), http.StatusOK, "Missing: NIF, RC, Address, Phone, Contact, Document")
	if n := strings.Count(admin.get(web.CompanyPath(company.ID)).body, `class="badge wait">Missing<`); n != 6 {
		t.Errorf("%d facts are marked as missing", n)
	}
	old := factsVersion.FindStringSubmatch(admin.get("/admin").body)

	c.wants(c.post("/company/facts", "nif", "12", "trade_register", "none", "address", "", "phone", "22 21", "contact",
		"Aline\u202e"), http.StatusUnprocessableEntity,
		"6 to 20 letters and digits", "at least one digit", "8 to 15 digits", "1 to 200 ordinary", `value="22 21"`)
	facts := []string{"nif", "4000 123 456", "trade_register", "RC 12345/21", "address", "Rohero,\r\nBujumbura", "phone",
		"+257 22 21 00 00", "contact", "Éric N."}
	c.wants(c.post("/company/facts", facts...), http.StatusSeeOther)
	c.wants(c.get("/company"), http.StatusOK, "4000123456", "Rohero, Bujumbura")
	if page := c.get("/company").body; strings.Contains(page, "nothing for you to do") ||
		!strings.Contains(page, "Details are missing") {
		t.Error("a document is missing, and there is nothing to do")
	}
	w.exec(`insert into api_tokens (user_id, name, secret_hash) select id, 'Till', sha256('x') from users`)
	w.exec(`update users set test_number = '+25779000001', test_verified_at = now()`)
	w.accept(company.ID, company.OwnerID, "+25779000001", "lumitel")
	if next := mainButton.FindAllStringSubmatch(c.get("/").body, -1); len(next) != 1 || next[0][1] != "/company#facts" {
		t.Errorf("the next step is %v", next)
	}
	c.wants(c.uploadAs("/company/document", nil, "certificate.pdf", aCertificate), http.StatusSeeOther)
	c.wants(c.get("/company"), http.StatusOK, "nothing for you to do", "certificate.pdf")
	if next := mainButton.FindAllStringSubmatch(c.get("/").body, -1); len(next) != 1 || next[0][1] != "/senders" {
		t.Errorf("the next step is %v", next)
	}

	page := admin.get(web.CompanyPath(company.ID))
	admin.wants(page, http.StatusOK, "4000123456", "RC 12345/21", "Rohero, Bujumbura", "&#43;257 22 21 00 00", "Éric N.",
		"certificate.pdf")
	admin.wants(admin.get("/admin"), http.StatusOK, "Complete")
	for _, version := range []string{"", old[1]} { // of an older page
		admin.wants(admin.post(web.CompanyPath(company.ID)+"/approve", "facts", version), http.StatusSeeOther)
		admin.wants(admin.get(web.CompanyPath(company.ID)), http.StatusOK, "the company has changed its details")
	}
	admin.wants(admin.post(web.CompanyPath(company.ID)+"/approve", "facts", factsVersion.FindStringSubmatch(page.body)[1]),
		http.StatusSeeOther)
	c.wants(c.post("/company/facts", facts...), http.StatusUnprocessableEntity, "approved with these details")
	c.wants(c.uploadAs("/company/document", nil, "other.pdf", aCertificate), http.StatusUnprocessableEntity,
		"approved with these details")
	if got := strings.Join(w.acts(company.ID), " "); got != "company.facts company.document company.set" {
		t.Errorf("recorded: %s", got)
	}
	c.wants(admin.get("/admin/acts"), http.StatusOK, "4000123456", "&#43;257****00")
	if strings.Contains(admin.get("/admin/acts").body, "22 21 00") {
		t.Error("the audit log has a whole phone number")
	}
}

// TestDocument: a document is a PDF, PNG or JPEG of bounded size, and only a download. Only the company and
// administrators can read it, until an administrator deletes it.
func TestDocument(t *testing.T) {
	w := newWorld(t, func(r *Deps, _ *Options) { r.Tries.Papers = limit(t, 3, time.Hour) })
	c, _, company := w.owner()
	other, _, _ := w.customer("bob", "BOBCO", 0)
	admin := newClient(w)
	admin.inside("root@example.com")
	path := web.CompanyPath(company.ID) + "/document"
	for _, try := range []struct{ name, file, text string }{
		{"certificate.pdf", "", "Choose a file"},
		{"certificate.pdf", "<html>", "This is not a PDF"},
		{"certificate.html", aCertificate, "This is not a PDF"},
		{"certificate.pdf", aCertificate + strings.Repeat("x", accounts.MaxDocument), "larger than 5 MiB"},
	} {
		c.wants(c.uploadAs("/company/document", nil, try.name, try.file), http.StatusUnprocessableEntity, try.text)
	}
	c.wants(c.uploadAs("/company/document", url.Values{"x": {strings.Repeat("x", web.MaxForm)}}, "certificate.pdf",
		aCertificate+strings.Repeat("x", accounts.MaxDocument)), http.StatusRequestEntityTooLarge)
	c.wants(c.get("/company/document"), http.StatusNotFound)
	admin.wants(admin.get(path), http.StatusNotFound)

	full := aCertificate + strings.Repeat("x", accounts.MaxDocument-len(aCertificate))
	c.wants(c.uploadAs("/company/document", nil, "old.png", "\x89PNG\r\n\x1a\n"), http.StatusSeeOther)
	c.wants(c.uploadAs("/company/document", nil, `"certi\ficate".pdf`, full), http.StatusSeeOther)
	for _, a := range []answer{c.get("/company/document"), admin.get(path)} {
		c.wants(a, http.StatusOK)
		if a.body != full {
			t.Errorf("another file of %d bytes", len(a.body))
		}
		for name, want := range map[string]string{"Content-Type": "application/pdf",
			"Content-Disposition":     `attachment; filename="intumwa-1.pdf"`,
			"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff",
			"Cache-Control": "no-store"} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	other.wants(other.get("/company/document"), http.StatusNotFound)
	other.wants(other.get(path), http.StatusNotFound)
	other.wants(other.post(path+"/delete"), http.StatusNotFound)
	newClient(w).wants(newClient(w).get("/company/document"), http.StatusSeeOther)

	admin.wants(admin.post(path+"/delete"), http.StatusSeeOther)
	admin.wants(admin.post(path+"/delete"), http.StatusNotFound)
	admin.wants(admin.get(path), http.StatusNotFound)
	c.wants(c.get("/company/document"), http.StatusNotFound)
	c.wants(c.get("/company"), http.StatusOK, "(deleted after our check)")
	c.wants(c.uploadAs("/company/document", nil, "new.pdf", aCertificate), http.StatusSeeOther)
	c.wants(c.uploadAs("/company/document", nil, "new.pdf", aCertificate), http.StatusTooManyRequests, "Too many changes")
	if got := strings.Join(w.acts(company.ID), " "); got != "company.document company.document company.document_delete "+
		"company.document" {
		t.Errorf("recorded: %s", got)
	}
}

// TestSenderWarnings: before an approval, the list and the company's page show a sender ID's purpose, other companies
// with it, and the protected name that it resembles.
func TestSenderWarnings(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.owner()
	w.customer("bob", "LUM1CASH", 0)
	c.wants(c.post("/senders", "name", "Lum1Cash"), http.StatusUnprocessableEntity) // without a purpose
	c.wants(c.post("/senders", "name", "Lum1Cash", "purpose", "Receipts of payments"), http.StatusSeeOther)
	admin := newClient(w)
	admin.inside("root@example.com")
	for _, path := range []string{"/admin/senders", web.CompanyPath(company.ID)} {
		admin.wants(admin.get(path), http.StatusOK, "Looks like Lumicash, a wallet", "Also approved for: bob",
			"Receipts of payments")
	}
	w.exec(`update senders set name = 'Isoko' where name = 'Lum1Cash'`)
	for _, path := range []string{"/admin/senders", web.CompanyPath(company.ID)} {
		if strings.Contains(admin.get(path).body, "Looks like") {
			t.Errorf("%s warns of another name", path)
		}
	}
}

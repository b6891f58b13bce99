package dashboard

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"intumwa/accounts"
	"intumwa/sms"
)

// hostile is a text as somebody who wishes no good writes it.
const hostile = `<img src=x onerror=alert(1)>"'&`

// TestAdministrator: an administrator's day, beside a dispatcher with links that are really bound and one that is not;
// in two languages, with and without JavaScript.
func TestAdministrator(t *testing.T) {
	t.Parallel() // with the other walks: a browser waits more than it computes
	w := newWorld(t, nil)
	chromium := startChromium(t)
	w.bind()
	w.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, status, error, outcome)
		VALUES ('lumitel', 'lumitel-1', 'k', $1, '25761000000', 'DELIVRD', 1, '000', 'unmatched')`, "7f\x1b[2J"+hostile)
	w.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets) VALUES
		('lumitel', 'lumitel-1', '25761000001', '8080', 0, 0, $1, ''), ('lumitel', 'lumitel-2', '25761000002', '8080', 4, 0, NULL, '\x0102')`,
		"STOP\x1b[2J\u202e"+hostile)
	for i, try := range []struct {
		language string
		script   bool
	}{{"fr", true}, {"en", false}} {
		p := newPerson(chromium, t, w, try.language, try.script)
		p.administer(i)
	}
}

// administer is the whole day; each has a customer of its own.
func (p *person) administer(serial int) {
	w := p.w
	email, owner := p.name+"-admin@example.com", p.name+"@example.com"
	w.user(email, true)
	customer := w.user(owner, false)
	company := w.company(owner, "Isoko "+p.name+" "+hostile)
	if _, _, err := w.accounts.CreateToken(p.Context(), owner, "Web shop"); err != nil {
		p.Fatal(err)
	}
	name := "ISOKO" + strconv.Itoa(serial)
	if _, err := w.accounts.CreateSender(p.Context(), company.ID, name, "BI", false); err != nil {
		p.Fatal(err)
	}
	w.exec(`INSERT INTO webhook_endpoints (company_id, url, secret) VALUES ($1, 'https://isoko.example/hook?key=hush', 'sealed')`, company.ID)
	number := sms.Number("+2576100000" + strconv.Itoa(serial))
	message := w.accept(company.ID, customer.ID, number, "lumitel")
	w.settled(message)

	p.open("/admin")
	p.fill("email", email)
	p.fill("password", testPassword)
	p.press("signin.button")
	p.sees("admin.enter.setup")
	p.look("admin-setup")
	p.press("account.twostep.open")
	secret := regexp.MustCompile(`[A-Z2-7]{32}`).FindString(p.read())
	p.fill("code", codeOf(p.T, secret))
	p.press("twostep.turnon")
	recovery := regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`).FindString(p.read())
	p.open("/admin")
	p.look("admin-enter")
	p.fill("proof", recovery)
	p.press("admin.enter.button")
	p.sees("admin.title")
	p.look("admin")
	p.press("admin.approve")
	p.sees("flash.approved")
	p.press("admin.verify")
	p.sees("flash.verified")
	p.sees("admin.none")
	p.look("admin-none")

	p.open("/admin/senders")
	p.look("admin-senders")
	p.press("waiting.senders.approve", name)
	p.sees("flash.sender.approved")
	p.sees("waiting.senders.none")
	p.look("admin-senders-none")

	p.theCompany(company, name)
	p.theLinks()
	p.strays()

	p.open("/admin/search?q=" + message.String())
	p.sees("onemessage.title")
	if text := p.read(); strings.Contains(text, string(number)) || !strings.Contains(text, number.Masked()) || strings.Contains(text, "Amahoro") {
		p.Errorf("a message's page shows what nobody needs:\n%s", text)
	}
	p.look("admin-message")
	p.open("/admin/search?q=" + number.National())
	p.sees("search.messages")
	p.look("admin-search")
	p.open("/admin/search?q=" + owner)
	if p.where() != companyPath(company.ID) {
		p.Errorf("an e-mail leads to %s", p.where())
	}
	p.open("/admin/search?q=nothing+of+the+kind")
	p.sees("search.none")
	p.look("admin-search-none")

	p.open("/admin/acts?actor=" + email)
	if !strings.Contains(p.read(), "link.pause") {
		p.Error("the record lacks link.pause")
	}
	p.sees("act.link.pause")
	p.look("admin-acts")
	p.open("/admin/acts?company=" + strconv.FormatInt(company.ID, 10))
	if !strings.Contains(p.read(), "credits.add") {
		p.Error("the record lacks credits.add")
	}
	p.open("/admin/acts?company=x")
	p.sees("acts.company.wrong")
	p.look("admin-acts-wrong")

	p.open("/admin")
	p.press("admin.leave")
	p.open("/admin")
	p.sees("admin.enter.title")
}

// theCompany is one company's page: credits, what is taken back, a key that is revoked.
func (p *person) theCompany(company accounts.Company, sender string) {
	p.open("/admin/companies?q=" + p.name)
	p.look("admin-companies")
	p.open(companyPath(company.ID))
	if text := p.read(); !strings.Contains(text, "https://isoko.example/hook") || strings.Contains(text, "hush") || strings.Contains(text, "sealed") {
		p.Errorf("the endpoint:\n%s", text)
	}
	p.look("admin-company")
	p.fill("amount", "-5")
	p.fill("note", "taken back")
	p.press("credits.book")
	p.sees("credits.negative")
	p.look("admin-company-wrong")
	p.fill("amount", "1500")
	p.fill("note", "Invoice 12 "+hostile)
	p.press("credits.book")
	p.sees("flash.credits")
	if credits, err := p.w.d.rooms.Ledger.Balance(p.Context(), company.ID); err != nil || credits != 1500 {
		p.Errorf("%d credits, %v", credits, err)
	}
	p.unfold("keys.revoke")
	p.press("keys.revoke.do", "Web shop")
	p.sees("flash.revoked")
	p.do("unfolding", chromedp.Evaluate(`undefined`, nil), chromedp.Click(`main summary`, chromedp.ByQuery))
	p.fill("reason", "papers are missing")
	p.press("admin.disapprove.do")
	p.sees("flash.disapproved")
	p.look("admin-company-done")
	if now, err := p.w.accounts.CompanyByID(p.Context(), company.ID); err != nil || now.Approved || !now.Verified {
		p.Errorf("%+v, %v", now, err)
	}
	p.press("admin.approve")
	p.sees("flash.approved")
}

// theLinks pauses and resumes a link that is bound, and sees which is sick.
func (p *person) theLinks() {
	p.open("/admin/links")
	if text := p.read(); !strings.Contains(text, "econet-1") || !strings.Contains(text, p.lang.T("links.state.bound")) {
		p.Errorf("the links:\n%s", text)
	}
	p.look("admin-links")
	p.press("links.pause", "lumitel-1")
	p.sees("flash.paused")
	p.sees("links.state.paused")
	p.w.link("lumitel-1", "paused")
	p.look("admin-links-paused")
	if p.script { // somebody resumes it by a command: the page says so within a second, and whatever the load soon
		p.w.exec(`UPDATE links SET paused = false WHERE name = 'lumitel-1'`)
		began := time.Now()
		p.w.soon("the page says that it was resumed", func() bool { return !strings.Contains(p.read(), p.lang.T("links.state.paused")) })
		p.Logf("shown after %v", time.Since(began))
	} else {
		p.press("links.resume", "lumitel-1")
		p.sees("flash.resumed")
	}
	p.w.link("lumitel-1", "bound")
	p.open("/admin/links")
	p.look("admin-links-resumed")
}

// strays reads what carriers sent that nobody asked for.
func (p *person) strays() {
	p.open("/admin/receipts")
	if text := p.read(); !strings.Contains(text, `7f\x1b[2J<img`) || !strings.Contains(text, "25761000000") {
		p.Errorf("stray receipts:\n%s", text)
	}
	p.look("admin-receipts")
	p.open("/admin/inbound")
	if text := p.read(); !strings.Contains(text, `STOP\x1b[2J\u202e<img`) || !strings.Contains(text, p.lang.T("inbound.octets", 2, 4)) {
		p.Errorf("messages from handsets:\n%s", text)
	}
	p.look("admin-inbound")
}

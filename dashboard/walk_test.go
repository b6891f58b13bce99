package dashboard

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/sms"
	"intumwa/webhooks"
)

var (
	linkInMail  = regexp.MustCompile(`http://\S+`)
	recoveryKey = regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`)
	totpSecret  = regexp.MustCompile(`[A-Z2-7]{32}`)
)

// hostile is a malicious text.
const hostile = `<img src=x onerror=alert(1)>"'&`

// walkPages opens every page in its states, only by links and forms, and returns the pages.
func walkPages(t *testing.T, w *world, language string) []look {
	t.Helper()
	p := newWalker(t, w, language)
	email := language + "@example.com"
	p.signsUp(email)
	company := p.companyID(email)
	p.requestsSenders(company)
	p.bindsBySMPP(company)
	p.watchesWebhooks(company)
	p.sendsFirst(email, company)
	p.sendsMessages(email, company)
	p.readsHandsets(company)
	p.sendsCampaign(company)
	p.readsFigures(company)
	p.guardsAccount(email)

	a := newWalker(t, w, language)
	a.administers(company)
	return append(p.looks, a.looks...)
}

func (p *walker) companyID(email string) int64 {
	p.t.Helper()
	u, err := p.w.accounts.UserByEmail(p.t.Context(), email)
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := p.w.accounts.CompanyOf(p.t.Context(), u.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	return c.ID
}

func (p *walker) signsIn(email string) {
	p.t.Helper()
	p.fill("email", email)
	p.fill("password", testPassword)
	p.press("signin.button")
}

// signsUp signs up, signs in, and creates a company and a key.
func (p *walker) signsUp(email string) {
	p.open("/")
	p.sees("signin.title")
	p.look("signin")
	p.press("signin.signup")
	p.look("signup")
	p.submit("signup.button", "sent.title", "name", "Aline Ndayishimiye", "email", email)
	p.look("sent")
	p.open(strings.TrimPrefix(linkInMail.FindString(p.w.mail(email, 0).Text), p.w.url))
	p.fill("password", "too short")
	p.press("finish.button")
	p.sees("finish.short", accounts.MinPassword)
	p.look("choose-wrong")
	p.submit("finish.button", "flash.welcome", "password", testPassword)
	p.look("home-new")
	p.press("nav.signout")
	p.press("signin.forgotten")
	p.look("forgotten")
	p.open("/keys")
	p.submit("signin.button", "signin.wrong", "email", email, "password", "not the password")
	p.look("signin-wrong")
	p.open("/keys")
	p.signsIn(email)
	if p.where() != "/keys" {
		p.t.Errorf("after signing in: %s", p.where())
	}
	p.look("keys-none")

	p.open("/company")
	p.look("newcompany")
	p.submit("company.create", "flash.company", "name", "Isoko & Fils <SARL>")
	p.look("home-company")
	p.open("/company")
	p.look("company")
	p.statesFacts()
	p.open("/people")
	p.submit("people.invite.do", "flash.invited", "name", "Jean", "email", "jean."+email)
	p.look("people")
	p.open("/keys")
	p.fill("name", "Web shop")
	p.press("keys.create")
	p.sees("keys.made", "Web shop")
	p.press("keys.run")
	p.reads("HTTP 200")
	p.look("keys-made")
	if key := keyText.FindString(p.text()); key == "" {
		p.t.Error("the key is not shown")
	} else if _, err := p.w.accounts.Authenticate(p.t.Context(), key); err != nil {
		p.t.Errorf("the key %q does not work: %v", key, err)
	}
	p.press("keys.revoke.do", "Web shop")
	p.sees("flash.revoked")
	p.open("/nowhere")
	p.look("notfound")
}

// statesFacts states the company's facts and uploads a document.
func (p *walker) statesFacts() {
	p.press("facts.upload")
	p.sees("facts.file.none")
	p.submit("facts.save", "facts.nif.wrong", "nif", "4000 1", "phone", "22 21")
	p.sees("facts.phone.wrong")
	p.look("company-wrong")
	p.submit("facts.save", "flash.facts", "nif", "4000 123 456", "trade_register", "RC 12345/21", "address", "12, avenue de la Mission, Rohero, Bujumbura "+hostile, "phone", "+257 22 21 00 00", "contact", "Aline Ndayishimiye")
	p.submit("facts.upload", "flash.document", "file", "%PDF-1.7\n")
	p.look("company-stated")
}

// requestsSenders requests three sender IDs; one is approved, one refused.
func (p *walker) requestsSenders(company int64) {
	p.open("/senders")
	p.look("senders-none")
	p.submit("senders.request.do", "senders.name.wrong", "name", "Isoko & Fils", "purpose", "x")
	p.look("senders-wrong")
	for _, name := range []string{"IsokoNews", "IsokoShop", "ISOKO"} {
		p.submit("senders.request.do", "flash.sender", "name", name, "purpose", "Order news for customers of our shops in Bujumbura and Gitega")
	}
	p.w.exec(`update senders set refused_at = now(), refusal = 'This name reads like another company’s.' where name = 'IsokoShop' and company_id = $1`, company)
}

// watchesWebhooks sets an endpoint, tests it, and reads the deliveries.
func (p *walker) watchesWebhooks(company int64) {
	r := newReceiver(p.t)
	p.open("/deliveries")
	p.look("webhooks-none")
	p.submit("webhook.save", "webhook.bad.scheme", "url", "ftp://example.com")
	p.submit("webhook.save", "webhook.secret.new", "url", r.URL+"/intumwa")
	p.look("webhooks-made")
	r.answer(http.StatusInternalServerError, "Traceback (most recent call last):\n  File \"hook.py\", line 12, in post\nKeyError: 'message_id'")
	p.press("webhook.test.do")
	p.sees("attempt.answer")
	p.look("webhooks-test")
	p.press("webhook.rotate.do")
	p.sees("webhook.secret.new")
	p.look("webhooks-rotated")
	p.press("webhook.rotate.end.do")
	p.sees("flash.rotated")
	p.press("webhook.turnoff")
	p.sees("flash.webhook.off")
	p.press("webhook.turnon")
	p.sees("flash.webhook.on")

	r.answer(http.StatusOK, "")
	p.w.enqueue(company, 1000*company, 4)
	p.w.until("they are delivered", func() bool { return p.w.inState(company, webhooks.StateDelivered) == 4 })
	r.answer(http.StatusBadGateway, "<html><head><title>502 Bad Gateway</title></head>\n<body><center><h1>502 Bad Gateway</h1></center></body></html>")
	p.w.enqueue(company, 1000*company+10, 3)
	p.w.until("they fail", func() bool { return p.w.inState(company, webhooks.StateFailed) == 3 })
	p.open("/deliveries")
	p.look("deliveries")
	p.open("/deliveries?state=pending&since=2026-01-01T00:00")
	p.sees("deliveries.nomatch")
	p.look("deliveries-nomatch")
	p.open("/deliveries?state=failed")
	list, _, err := p.w.hooks.Deliveries(p.t.Context(), sms.CompanyID(company), webhooks.Filter{State: webhooks.StateFailed}, 0, 1)
	if err != nil {
		p.t.Fatal(err)
	}
	p.open(fmt.Sprintf("/deliveries/of/%d", list[0].ID))
	p.sees("delivery.failed.text")
	p.look("delivery-failed")
	r.answer(http.StatusOK, "")
	p.press("delivery.resend")
	p.sees("flash.resent")
	p.press("deliveries.title")
	p.press("recovery.do")
	p.sees("flash.recovery")
	p.w.until("they are delivered", func() bool { return p.w.inState(company, webhooks.StateDelivered) == 7 })
}

// bindsBySMPP creates a key of kind SMPP and ends a bind.
func (p *walker) bindsBySMPP(company int64) {
	p.press("nav.smpp")
	p.sees("smpp.none")
	p.look("smpp-none")
	p.fill("name", "Core banking")
	p.fill("networks", "the office")
	p.press("keys.create")
	p.sees("keys.networks.wrong", accounts.MaxNetworks)
	p.look("smpp-wrong")
	p.submit("keys.create", "smpp.binds.none", "name", "Core banking "+hostile, "networks", "192.0.2.0/24, 2001:db8::/32")
	p.look("smpp-made")
	p.w.exec(`insert into smpp_binds (account, process, peer, mode, seen_at, submitted, refused, in_flight, unanswered) select id, 'gateway-1', '[2001:db8:1234:5678::7]:40000', 'transceiver', now() + interval '1 hour', 12345, '{"ESME_RTHROTTLED": 77, "ESME_RINVSRCADR": 1}', 3, 5
		from api_tokens where system_id is not null and user_id in (select id from users where company_id = $1)`, company)
	p.w.exec(`insert into smpp_deliveries (account, phone_number, address, at, body) select id, '+25779000001', 'A', now(), 'x' from api_tokens where system_id is not null`)
	p.open("/smpp")
	p.look("smpp")
	p.press("smpp.unbind")
	p.sees("flash.unbound")
}

// sendsFirst verifies a test number and sends the first message to it.
func (p *walker) sendsFirst(email string, company int64) {
	number := map[string]string{"fr": "79000101", "en": "79000102"}[p.lang.Tag]
	p.open("/first")
	p.look("first-none")
	p.press("home.number.open")
	p.look("testnumber-none")
	p.submit("testnumber.send", "error.number", "number", "22 22 22 22")
	p.submit("testnumber.send", "flash.code", "number", number)
	p.look("testnumber-code")
	code := p.w.code("+257" + number)
	p.fill("code", map[bool]string{true: "111111", false: "000000"}[code == "000000"])
	p.press("testnumber.confirm")
	p.sees("testnumber.code.wrong", 4)
	p.submit("testnumber.confirm", "flash.verifiednumber", "code", code[:3]+" "+code[3:])
	p.look("first")
	p.open("/test-number")
	p.look("testnumber")
	p.press("home.first")
	p.press("first.send")
	p.sees("first.sent")
	p.sees("first.answer")
	p.look("first-sent")
	p.w.settle()
	p.press("life.again")
	p.sees("life.sent")
	p.press("first.open")
	p.look("message-test")
	p.open("/messages/new")
	p.sees("compose.unapproved", testSender)
	p.look("compose-unapproved")
	p.w.exec(`update companies set approved = true, verified = true where id = $1`, company)
	p.w.exec(`update senders set approved = true where name = 'ISOKO' and company_id = $1`, company)
	p.w.grant(company, 5000, "invoice 7")
	p.open("/company")
	p.look("company-approved")
	p.open("/")
	p.look("home")
	p.verifies(number)
}

// verifies tries a verification with the own number, and asks for an own text.
func (p *walker) verifies(number string) {
	p.press("nav.verifications")
	p.sees("verification.none")
	p.look("verifications-none")
	p.submit("verification.ask.do", "verification.text.nocode", "text", "ISOKO")
	p.look("verifications-wrong")
	p.submit("verification.ask.do", "flash.verification.asked", "text", "ISOKO: {{code}}, iminota {{minutes}}. Ntuyihe uwundi muntu.")
	p.press("verification.try.do", "+257"+number)
	p.sees("flash.verification.sent")
	p.look("verifications-tried")
	p.submit("verification.check", "flash.verification.approved", "code", p.w.code("+257"+number))
	p.look("verifications")
}

// sendsMessages sends a message and finds it and a batch.
func (p *walker) sendsMessages(email string, company int64) {
	p.open("/messages/new")
	p.submit("compose.check", "compose.foreign.text", "number", "79000301", "message", "Merci ! « Votre commande » est prête ✅ "+strings.Repeat("à bientôt ", 4))
	p.look("compose-unicode")
	p.press("compose.replace")
	p.reads(`Merci ! " Votre commande " est prete ✅`)
	p.submit("compose.send", "error.number", "number", "22 00 00 00")
	p.look("compose-wrong")
	p.submit("compose.send", "flash.sent", "number", "79000301")
	p.w.exec(`insert into segments (message_id, segment, total, carrier, link, carrier_id, key, submitted_at, state, receipt, error, receipt_at)
		select id, 1, 2, 'leo', 'leo-1', id::text, id::text, now(), 1, 'DELIVRD', '000', now() from messages where phone_number = '+25779000301' and company_id = $1`, company)
	p.open(p.where())
	p.sees("life.receipt", 1)
	p.look("message-pending")

	user, err := p.w.accounts.UserByEmail(p.t.Context(), email)
	if err != nil {
		p.t.Fatal(err)
	}
	principal, err := p.w.accounts.PrincipalOf(p.t.Context(), user.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	bulk := intake.Batch{Sender: "ISOKO"}
	for i := range 30 {
		bulk.Recipients = append(bulk.Recipients, intake.Recipient{Number: sms.Number(fmt.Sprintf("+2577901%04d", i)), Message: fmt.Sprintf("Amahoro %d, ibicuruzwa vyawe birageze.", i+1)})
	}
	answer, err := p.w.d.rooms.Intake.SendBatch(p.t.Context(), principal, bulk)
	if err != nil {
		p.t.Fatal(err)
	}
	p.open("/batches/" + regexp.MustCompile(`[0-9A-Z]{26}`).FindString(string(answer.Body)))
	p.sees("batch.far")
	p.look("batch-pending")
	p.w.settle()
	p.press("life.again")
	p.reads(p.lang.T("status.sent") + "30")
	p.press("batch.more")
	p.look("batch-more")
	p.open("/messages")
	p.look("messages")
	p.press("messages.older")
	p.look("messages-older")
	p.fill("q", "79000301")
	p.press("messages.do")
	p.reads("Votre commande")
	p.submit("messages.do", "messages.nothing", "q", "79 99 99 99")
	p.look("messages-nothing")
}

// readsHandsets reads MO messages and edits the opt-out list.
func (p *walker) readsHandsets(company int64) {
	p.open("/received")
	p.sees("received.none")
	p.look("received-none")
	texts := []string{"Yego, ndabikeneye ✅\nMurakoze", "", strings.Repeat("Amakuru y’ibicuruzwa? ", 50)}
	for range 30 {
		texts = append(texts, "STOP")
	}
	p.w.writes(accounts.Company{ID: company}, "+25779123400", texts...)
	p.w.writes(accounts.Company{ID: company}, "ECONET-PROMO", "Promo <b>2</b> "+strings.Repeat("x", 400))
	p.open("/received")
	p.look("received")
	p.press("messages.older")
	p.sees("received.notext")
	p.look("received-older")
	p.submit("messages.do", "error.number", "number", "79 12 34")
	p.look("received-wrong")

	p.press("nav.optouts")
	p.sees("optouts.none")
	p.look("optouts-none")
	p.submit("optouts.add", "error.number", "number", "12")
	p.look("optouts-wrong")
	p.submit("optouts.add", "flash.optout.added", "number", "79 12 34 00")
	if _, err := handsets.New(p.w.pool).OptOut(p.t.Context(), sms.CompanyID(company), []handsets.OptOut{{Number: "+25771234500", Sender: "ISOKO", Source: handsets.ByHandset}}); err != nil {
		p.t.Fatal(err)
	}
	p.open("/opt-outs")
	p.sees("optouts.by.handset")
	p.look("optouts")
	p.fill("q", "79 12 34 00")
	p.press("messages.do")
	p.press("optouts.remove.do", "+25779123400")
	p.sees("flash.optout.removed")
}

// sendsCampaign sends a campaign without an opted-out recipient.
func (p *walker) sendsCampaign(company int64) {
	p.open("/campaigns")
	p.look("campaigns-new")
	p.fill("template", "Bonjour {{prenom}}, votre facture de {{montant}} FBu est prête. Merci, ISOKO")
	p.fill("file", "phone_number;Prénom;Montant\n+257 79 12 34;Aline;25 000\n=1+1;Éric;18 500\n71 234 567;Jean\n")
	p.press("campaign.check")
	p.sees("draft.faults.other", 3)
	p.look("draft-wrong")
	p.open("/campaigns")
	p.submit("campaign.check", "draft.title.hindered", "template", "Bonjour {{prenom}}, votre facture de {{montant}} FBu est prête. Merci, ISOKO", "file", "Téléphone;Prénom;Montant\n+257 79 12 34 00;Aline;25 000\n71 234 500;Łucja;18 500\n79 12 35 01;Jean-Bosco;7 000\n61 000 000;Éric;1 250\n79 12 35 02;;1\u202f250\n")
	p.look("draft-optedout")
	p.press("draft.without")
	p.sees("draft.blank.one", 1)
	p.reads("U+202F")
	p.look("draft-blank")
	p.press("draft.without.blank")
	p.sees("flash.campaign.without")
	p.look("draft")
	p.press("draft.send.other", 3)
	p.sees("flash.campaign")
	p.look("campaign")
	p.w.settle()
	p.press("nav.campaigns")
	p.look("campaigns")
}

// readsFigures opens the charts and the statement.
func (p *walker) readsFigures(company int64) {
	fillMessages(p.t, p.w.pool, company, 2_000, 88)
	p.w.tally("the messages are counted", func() bool {
		p.open("/charts")
		return strings.Contains(p.page.body, "<rect")
	})
	p.press("charts.days", 90)
	p.look("charts-90")
	p.press("charts.days", 7)
	p.look("charts-7")
	p.press("nav.quality")
	p.look("quality")
	p.submit("quality.do", "quality.months", "from", time.Now().AddDate(0, -6, 0).Format(time.DateOnly), "kind", "single")
	p.look("quality-months")
	p.press("statement.csv")
	p.open("/quality?to=2001-01-01")
	p.sees("charts.none")
	p.look("quality-none")
	p.submit("quality.do", "quality.period.turned", "from", "2001-01-02", "to", "2001-01-01")
	p.look("quality-wrong")
	p.w.history(company)
	p.open("/statement")
	p.look("statement")
	p.fill("threshold", "a few")
	p.press("statement.threshold.save")
	p.sees("statement.threshold.wrong", maxThreshold)
	p.look("statement-wrong")
	p.submit("statement.threshold.save", "flash.threshold", "threshold", "100000")
	p.look("statement-low")
	p.open("/statement/month")
	p.look("month")
	p.open("/statement?from=2001-01-01&to=2001-01-31")
	p.sees("statement.none")
	p.look("statement-none")
	p.press("statement.print")
	p.open("/statement/print?from=2026-01-01")
	p.look("sheet")
}

// guardsAccount turns the second factor on, signs in with it, and changes the password.
func (p *walker) guardsAccount(email string) {
	p.open("/account")
	p.look("account")
	p.press("account.twostep.open")
	p.look("twostep")
	secret := totpSecret.FindString(p.text())
	p.submit("twostep.turnon", "code.wrong", "present", testPassword, "code", "000000", "present", testPassword)
	p.submit("twostep.turnon", "twostep.codes", "present", testPassword, "code", codeOf(p.t, secret), "present", testPassword)
	p.look("twostep-codes")
	recovery := recoveryKey.FindString(p.text())
	p.press("twostep.kept")
	p.press("account.twostep.manage")
	p.look("twostep-on")
	p.press("nav.signout")
	p.signsIn(email)
	p.sees("code.lead")
	p.look("code")
	p.submit("code.button", "home.today", "code", recovery)
	p.open("/account")
	p.submit("account.change", "flash.password", "present", testPassword, "new", testPassword+"!")
}

// administers approves a waiting customer as an administrator.
func (p *walker) administers(other int64) {
	w, language := p.w, p.lang.Tag
	email, owner := "root-"+language+"@example.com", "owner-"+language+"@example.com"
	w.user(email, true)
	customer, name := w.user(owner, false), "LUMICASH"+strings.ToUpper(language)
	company := w.company(owner, "Isoko "+language+" "+hostile)
	if _, _, err := w.accounts.CreateToken(p.t.Context(), owner, "Web shop", accounts.TokenLimits{}); err != nil {
		p.t.Fatal(err)
	}
	if _, err := w.accounts.CreateSender(p.t.Context(), company.ID, name, "BI", false); err != nil {
		p.t.Fatal(err)
	}
	w.exec(`INSERT INTO webhook_endpoints (company_id, url, secret) VALUES ($1, 'https://isoko.example/hook?key=canary', 'sealed')`, company.ID)
	number := sms.Number("+257610001" + map[string]string{"fr": "01", "en": "02"}[language])
	message := w.accept(company.ID, customer.ID, number, "lumitel")
	w.settle()

	p.open("/admin")
	p.signsIn(email)
	p.sees("admin.enter.setup")
	p.look("admin-setup")
	p.press("account.twostep.open")
	p.fill("present", testPassword)
	p.fill("code", codeOf(p.t, totpSecret.FindString(p.text())))
	p.fill("present", testPassword)
	p.press("twostep.turnon")
	recovery := recoveryKey.FindString(p.text())
	p.open("/admin")
	p.look("admin-enter")
	p.submit("admin.enter.button", "admin.title", "proof", recovery)
	p.sees("facts.missing")
	p.look("admin")
	p.press("admin.approve")
	p.sees("flash.approved")
	p.press("admin.verify")
	p.sees("flash.verified")
	p.look("admin-none")
	p.open("/admin/senders")
	p.sees("likeness.text", "Lumicash", p.lang.T("likeness.wallet"))
	p.look("admin-senders")
	p.press("waiting.senders.approve", name)
	p.sees("flash.sender.approved")
	var sender int64
	if err := w.pool.QueryRow(p.t.Context(), `SELECT id FROM senders WHERE name = $1`, name).Scan(&sender); err != nil {
		p.t.Fatal(err)
	}
	_, at, err := w.accounts.SetRegistration(p.t.Context(), sender, "lumitel", accounts.RegistrationChange{State: accounts.RegistrationSent, Reason: hostile})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := w.accounts.SetRegistrationDocument(p.t.Context(), at.ID, strings.Repeat("lettre", 16)+".pdf", []byte("%PDF-1.7\n")); err != nil {
		p.t.Fatal(err)
	}
	w.exec(`UPDATE sender_carriers SET changed_at = now() - interval '8 days'`)
	p.open("/admin/senders")
	p.look("admin-senders-late")
	p.open("/admin/senders/late")
	p.look("admin-late")
	p.open(senderPath(sender))
	p.look("admin-sender")
	p.open(senderPath(sender) + "/letter?carrier=lumitel")
	p.look("admin-letter")

	p.open("/admin/users")
	p.look("admin-users")
	p.open("/admin/verifications")
	p.look("admin-verifications")
	p.open("/admin/companies?q=Isoko")
	p.look("admin-companies")
	p.open(companyPath(company.ID))
	p.reads("https://isoko.example/hook")
	if strings.Contains(p.page.body, "canary") || strings.Contains(p.page.body, "sealed") {
		p.t.Errorf("the endpoint's secrets are shown:\n%s", p.text())
	}
	p.look("admin-company")
	p.submit("credits.book", "credits.negative", "amount", "-5", "note", "correction")
	p.look("admin-company-wrong")
	if _, _, err := w.accounts.SetFacts(p.t.Context(), sms.CompanyID(company.ID), accounts.Facts{NIF: "4000123456", TradeRegister: "RC 12345/21", Address: strings.Repeat("Rohero ", 40), Phone: "+257 22 21 00 00", Contact: "Éric " + hostile}); err != nil {
		p.t.Fatal(err)
	}
	if _, _, err := w.accounts.SetDocument(p.t.Context(), sms.CompanyID(company.ID), strings.Repeat("certificat", 9)+".pdf", []byte("%PDF-1.7\n")); err != nil {
		p.t.Fatal(err)
	}
	p.submit("credits.book", "flash.credits", "amount", "1500", "note", "Invoice 12 "+hostile)
	p.look("admin-company-stated")
	p.press("facts.delete.do")
	p.sees("flash.document.deleted")
	p.press("keys.revoke.do", "Web shop")
	p.sees("flash.revoked")
	p.submit("admin.disapprove.do", "flash.disapproved", "reason", "papers are missing")
	p.look("admin-company-done")
	p.press("admin.approve")
	p.sees("flash.approved")

	p.open("/admin/smpp")
	p.reads("Core banking", "gateway-1")
	p.look("admin-smpp")
	p.open("/admin/links")
	p.sees("links.state.down")
	p.look("admin-links")
	p.press("links.pause", "lumitel-1")
	p.sees("flash.paused")
	p.sees("links.state.paused")
	p.look("admin-links-paused")
	p.press("links.resume", "lumitel-1")
	p.sees("flash.resumed")
	p.open("/admin/money")
	p.look("adminmoney")
	p.open("/admin/quality")
	p.sees("quality.plot")
	p.look("admin-quality")
	p.submit("quality.do", "acts.company.wrong", "company", "x")
	p.fill("company", strconv.FormatInt(other, 10))
	p.press("quality.do")
	p.reads("Isoko & Fils")
	p.look("admin-quality-company")
	p.open("/admin/receipts")
	p.reads(`7f\x1b[2J<img`, "25761000000")
	p.look("admin-receipts")
	p.open("/admin/inbound")
	p.reads(`STOP\x1b[2J\u202e<img`, p.lang.T("inbound.octets", 2, 4))
	p.look("admin-inbound")

	p.submit("search.button", "message.life", "q", message.String())
	p.reads(number.Masked())
	p.look("admin-message")
	w.exec(`insert into segments (message_id, segment, total, carrier, link, carrier_id, key, submitted_at)
		select id, 1, 1, 'lumitel', 'lumitel-1', $2, lower($2), now() from messages where ulid = $1`, message.Bytes(), "9F-"+language)
	p.open("/admin/search?q=9F-" + language)
	if p.where() != "/admin/messages/"+message.String() {
		p.t.Errorf("a carrier's id leads to %s", p.where())
	}
	p.reads(p.lang.T("life.carrierid", "9F-"+language))
	p.open("/admin/search?q=" + number.National())
	p.sees("search.messages")
	p.look("admin-search")
	p.open("/admin/search?q=" + owner)
	if p.where() != companyPath(company.ID) {
		p.t.Errorf("an e-mail leads to %s", p.where())
	}
	p.open("/admin/search?q=nothing+of+the+kind")
	p.look("admin-search-none")
	p.open("/admin/acts?actor=" + email)
	p.sees("act.link.pause")
	p.look("admin-acts")
	p.open("/admin/acts?company=" + strconv.FormatInt(company.ID, 10))
	p.reads("credits.add")
	p.open("/admin/acts?company=x")
	p.sees("acts.company.wrong")
	p.look("admin-acts-wrong")
	p.open("/admin")
	p.press("admin.leave")
	p.open("/admin")
	p.sees("admin.enter.title")
}

// strays makes links, receipts and MO messages for the administration's pages.
func (w *world) strays() {
	w.t.Helper()
	w.exec(`INSERT INTO links (name, carrier, state, "window", in_flight, tps, last_error) VALUES
		('lumitel-1', 'lumitel', 'bound', 20, 5, 200, ''), ('econet-1', 'econet', 'connecting', 10, 0, 0, 'connection refused')`)
	w.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, status, error, outcome)
		VALUES ('lumitel', 'lumitel-1', 'k', $1, '25761000000', 'DELIVRD', 1, '000', 'unmatched')`, "7f\x1b[2J"+hostile)
	w.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets, outcome) VALUES
		('lumitel', 'lumitel-1', '25761000001', '8080', 0, 0, $1, '', 'unrouted'), ('lumitel', 'lumitel-2', '25761000002', '8080', 4, 0, NULL, '\x0102', 'unrouted')`,
		"STOP\x1b[2J\u202e"+hostile)
	w.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets, outcome)
		SELECT 'lumitel', 'lumitel-1', '25761000003', 'INTUMWATEST', 0, 0, repeat('Ndabikeneye ejo mu gitondo. ', 40), '', 'unrouted' FROM generate_series(1, 40)`)
}

// settle makes every pending message sent.
func (w *world) settle() {
	w.t.Helper()
	w.exec(`with gone as (delete from outbox) update messages set status = 1, sent_at = now() where status = 0`)
}

// history gives a company a month of ledger rows.
func (w *world) history(company int64) {
	w.t.Helper()
	w.exec(`INSERT INTO ledger (company_id, kind, amount, balance_after, ref, note, created_at)
		SELECT $1, kind, amount, (SELECT credits FROM balances WHERE company_id = $1) + sum(amount) OVER (ORDER BY i),
			CASE WHEN kind <> 'adjustment' THEN gen_random_uuid() END, CASE WHEN kind = 'adjustment' THEN 'Facture 2026-0147, payée par virement' ELSE '' END, now()
		FROM (SELECT i, CASE WHEN i % 20 = 0 THEN 'adjustment' WHEN i % 7 = 0 THEN 'refund' ELSE 'send' END AS kind,
			CASE WHEN i % 20 = 0 THEN 1000 WHEN i % 7 = 0 THEN 1 ELSE -(i % 30) - 1 END AS amount FROM generate_series(1, 90) i) x`, company)
	w.exec(`UPDATE balances SET credits = (SELECT balance_after FROM ledger WHERE company_id = $1 ORDER BY id DESC LIMIT 1) WHERE company_id = $1`, company)
}

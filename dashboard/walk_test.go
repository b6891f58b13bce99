package dashboard

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/sms"
	"intumwa/texts"
	"intumwa/webhooks"
)

var (
	linkInMail  = regexp.MustCompile(`http://\S+`)
	recoveryKey = regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`)
	totpSecret  = regexp.MustCompile(`[A-Z2-7]{32}`)
)

// hostile is a malicious text.
const hostile = `<img src=x onerror=alert(1)>"'&`

// walk plays TestByHand in a language.
func walk(t *testing.T, language, axe string) {
	office, withOffice := newTaxOffice(t)
	w := newWorld(t, func(d *Deps, o *Options) { sells(t)(d, o); withOffice(d, o) })
	w.reports()
	w.strays()
	seen := map[string]bool{}
	var all []*person
	opens := func() *person {
		p := newPerson(t, w, language)
		p.axe, p.seen = axe, seen
		if language == "en" {
			p.do("choosing colours", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: "dark"}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
		}
		all = append(all, p)
		return p
	}
	p, a, jean := opens(), opens(), opens()
	email, number, company := language+"@example.com", "", int64(0)
	wide, narrow := int64(1280), int64(390)
	if language == "en" {
		wide, narrow = narrow, wide
	}
	for _, step := range []struct {
		name  string
		width int64
		do    func()
	}{
		{"sign-up", narrow, func() { p.signsUp(email); company = p.companyID(email) }},
		{"sender IDs", wide, func() { p.requestsSenders() }},
		{"SMPP", narrow, func() { p.bindsBySMPP(company) }},
		{"webhook", wide, func() { p.watchesWebhooks(company) }},
		{"test number", narrow, func() { number = p.sendsFirst(email) }},
		{"administration", wide, func() { a.entersAdministration() }},
		{"approval", wide, func() { a.approves(company); p.isApproved() }},
		{"verification", narrow, func() { p.verifies(number) }},
		{"messages", narrow, func() { p.sendsMessages(email, company) }},
		{"handsets", wide, func() { p.readsHandsets(company) }},
		{"conversations", wide, func() { p.answersPeople(company) }},
		{"campaigns", narrow, func() { p.sendsCampaigns() }},
		{"contacts", narrow, func() { p.keepsContacts() }},
		{"orders", narrow, func() { p.buys(a) }},
		{"files", wide, func() { p.takesFiles() }},
		{"figures", wide, func() { p.readsFigures(company) }},
		{"tax office", wide, func() { a.asksTaxOffice(office, company) }},
		{"administrator", wide, func() { a.administers(company) }},
		{"people", narrow, func() { p.worksWithOthers(jean, "jean."+email) }},
		{"account", wide, func() { p.guardsAccount(email) }},
	} {
		t.Run(step.name, func(t *testing.T) {
			for _, one := range all {
				one.T = t
				one.size(step.width)
			}
			step.do()
		})
	}
	for _, r := range w.d.site.Routes() {
		page := regexp.MustCompile(`^` + regexp.MustCompile(`:\w+`).ReplaceAllString(r.Path, `[^/]+`) + `$`)
		file := strings.HasSuffix(r.Path, ".csv") || strings.HasSuffix(r.Path, "/document") ||
			strings.HasSuffix(r.Path, "/slip") ||
			strings.HasPrefix(r.Path, "/assets") || r.Path == "/robots.txt"
		if r.Method == http.MethodGet && !file && !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), page.MatchString) {
			t.Errorf("nobody has opened %s", r.Path)
		}
	}
}

func (p *person) companyID(email string) int64 {
	p.Helper()
	u, err := p.w.people.UserByEmail(p.Context(), email)
	if err != nil {
		p.Fatal(err)
	}
	c, err := p.w.companies.CompanyOf(p.Context(), u.ID)
	if err != nil {
		p.Fatal(err)
	}
	return c.ID
}

func (p *person) signsIn(email string) {
	p.Helper()
	p.fill("email", email)
	p.fill("password", testPassword)
	p.press("signin.button")
}

// signsUp signs up, signs in, and creates a company and a key.
func (p *person) signsUp(email string) {
	p.open("/")
	p.sees("signin.title")
	p.look("signin")
	p.press("signin.signup")
	p.look("signup")
	p.submit("signup.button", "sent.title", "name", "Aline Ndayishimiye", "email", email)
	p.look("sent")
	p.open(linkInMail.FindString(p.w.mail(email, 0).Text))
	p.fill("password", "too short")
	p.press("finish.button")
	p.sees("finish.short", people.MinPassword)
	p.look("choose-wrong")
	p.submit("finish.button", "flash.welcome", "password", testPassword)
	p.look("home-new")
	p.press("nav.signout")
	p.press("signin.forgotten")
	p.look("forgotten")
	p.submit("forgotten.button", "sent.title", "email", email)
	p.open(linkInMail.FindString(p.w.mail(email, 1).Text))
	p.look("reset")
	p.submit("reset.button", "flash.reset", "password", testPassword)
	p.press("nav.signout")
	p.open("/keys")
	p.submit("signin.button", "signin.wrong", "email", email, "password", "not the password")
	p.look("signin-wrong")
	p.open("/keys")
	p.signsIn(email)
	if p.where() != "/keys" {
		p.Errorf("after signing in: %s", p.where())
	}
	p.look("keys-none")

	p.open("/company")
	p.look("newcompany")
	p.submit("company.create", "flash.company", "name", "Isoko & Fils <SARL>")
	p.look("home-company")
	p.open("/company")
	p.look("company")
	p.statesFacts()
	p.open("/keys")
	p.fill("name", "Web shop")
	p.tap("keys.limits")
	p.fill("days", "90")
	p.press("keys.create")
	p.sees("keys.made", "Web shop")
	p.tap("keys.run") // the answer comes into the page
	p.reads("HTTP 200")
	p.look("keys-made")
	if key := keyText.FindString(p.read()); key == "" {
		p.Error("the key is not shown")
	} else if _, err := p.w.holders.Authenticate(p.Context(), key); err != nil {
		p.Errorf("the key %q does not work: %v", key, err)
	}
	p.press("keys.revoke.do", "Web shop")
	p.sees("flash.revoked")
	p.open("/nowhere")
	p.look("notfound")
}

// statesFacts states the company's facts and uploads a document.
func (p *person) statesFacts() {
	p.submit("facts.save", "facts.nif.wrong", "nif", "4000 1", "trade_register", "RC 1", "address", "Rohero", "phone",
		"22 21", "contact", "Aline")
	p.sees("facts.phone.wrong")
	p.look("company-wrong")
	p.submit("facts.save", "flash.facts", "nif", "4000 123 456", "trade_register", "RC 12345/21", "address",
		"12, avenue de la Mission, Rohero, Bujumbura "+hostile, "phone", "+257 22 21 00 00", "contact", "Aline Ndayishimiye")
	p.submit("facts.upload", "flash.document", "file", p.file("certificate.pdf", "%PDF-1.7\n"))
	p.look("company-stated")
}

// requestsSenders requests three sender IDs.
func (p *person) requestsSenders() {
	p.open("/senders")
	p.look("senders-none")
	p.submit("senders.request.do", "senders.name.wrong", "name", "Isoko & Fils", "purpose", "x")
	p.look("senders-wrong")
	for _, name := range []string{"IsokoNews", "IsokoShop", "ISOKO"} {
		p.submit("senders.request.do", "flash.sender", "name", name, "purpose",
			"Order news for customers of our shops in Bujumbura and Gitega")
	}
}

// watchesWebhooks sets an endpoint, tests it, and reads the deliveries.
func (p *person) watchesWebhooks(company int64) {
	r := newReceiver(p.T)
	p.open("/deliveries")
	p.look("webhooks-none")
	p.submit("webhook.save", "webhook.bad.scheme", "url", "ftp://example.com")
	p.submit("webhook.save", "webhook.secret.new", "url", r.URL+"/intumwa")
	p.look("webhooks-made")
	r.answer(http.StatusInternalServerError, "Traceback (most recent call last):\n  File \"hook.py\", line 12, in "+
		"post\nKeyError: 'message_id'")
	p.submit("webhook.test.do", "attempt.answer", "test", webhooks.Failed)
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
	r.answer(http.StatusBadGateway, "<html><head><title>502 Bad Gateway</title></head>\n<body><center><h1>502 Bad "+
		"Gateway</h1></center></body></html>")
	p.w.enqueue(company, 1000*company+10, 3)
	p.w.until("they fail", func() bool { return p.w.inState(company, webhooks.StateFailed) == 3 })
	p.open("/deliveries")
	p.look("deliveries")
	p.open("/deliveries?state=pending&since=2026-01-01T00:00")
	p.sees("deliveries.nomatch")
	p.look("deliveries-nomatch")
	p.open("/deliveries?state=failed")
	list, _, err := p.w.hooks.Deliveries(p.Context(), sms.CompanyID(company), webhooks.Filter{State: webhooks.StateFailed},
		0, 1)
	if err != nil {
		p.Fatal(err)
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
func (p *person) bindsBySMPP(company int64) {
	p.press("nav.smpp")
	p.sees("smpp.none")
	p.look("smpp-none")
	p.fill("name", "Core banking")
	p.fill("networks", "the office")
	p.press("keys.create")
	p.sees("keys.networks.wrong", keys.MaxNetworks)
	p.look("smpp-wrong")
	p.submit("keys.create", "smpp.binds.none", "name", "Core banking "+hostile, "networks", "192.0.2.0/24, 2001:db8::/32")
	p.look("smpp-made")
	p.w.exec(`insert into smpp_binds (account, process, peer, mode, seen_at, submitted, refused, in_flight, unanswered)
		select id, 'gateway-1', '[2001:db8:1234:5678::7]:40000', 'transceiver', now() + interval '1 hour', 12345,
			'{"ESME_RTHROTTLED": 77, "ESME_RINVSRCADR": 1}', 3, 5
		from api_tokens where system_id is not null and user_id in (select id from users where company_id = $1)`, company)
	p.w.exec(`insert into smpp_deliveries (account, phone_number, address, at, body) select id, '+25779000001', 'A', now(),
		'x' from api_tokens where system_id is not null`)
	p.open("/smpp")
	p.look("smpp")
	p.press("smpp.unbind")
	p.sees("flash.unbound")
}

// sendsFirst verifies a test number and sends the first message to it.
func (p *person) sendsFirst(email string) (number string) {
	number = map[string]string{"fr": "79000101", "en": "79000102"}[p.lang.Tag]
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
	p.sees("life.sent") // the page follows the message
	p.press("first.open")
	p.look("message-test")
	p.open("/messages/new")
	p.sees("compose.unapproved", testSender)
	p.look("compose-unapproved")
	return number
}

// isApproved looks at what an administrator has decided.
func (p *person) isApproved() {
	p.open("/senders")
	p.sees("senders.refused")
	p.look("senders")
	p.open("/company")
	p.look("company-approved")
	p.open("/")
	p.look("home")
}

// verifies tries a verification with the own number, and asks for an own text.
func (p *person) verifies(number string) {
	p.press("nav.verifications")
	p.sees("verification.none")
	p.look("verifications-none")
	p.submit("verification.ask.do", "verification.text.nocode", "text", "ISOKO")
	p.look("verifications-wrong")
	p.submit("verification.ask.do", "flash.verification.asked", "text",
		"ISOKO: {{code}}, iminota {{minutes}}. Ntuyihe uwundi muntu.")
	p.press("verification.try.do", "+257"+number)
	p.sees("flash.verification.sent")
	p.look("verifications-tried")
	p.submit("verification.check", "flash.verification.approved", "code", p.w.code("+257"+number))
	p.look("verifications")
}

// sendsMessages sends a message and finds it and a batch.
func (p *person) sendsMessages(email string, company int64) {
	p.open("/messages/new")
	p.filled("compose.send", "number", "79000301", "message", "Merci ! « Votre commande » est prête ✅ "+
		strings.Repeat("à bientôt ", 4))
	p.sees("compose.foreign.text") // measured while it is typed
	p.look("compose-unicode")
	p.tap("compose.replace")
	p.do("waiting for the text",
		chromedp.Poll(`document.querySelector("textarea").value.startsWith('Merci ! " Votre commande " est prete ✅')`, nil))
	p.submit("compose.send", "error.number", "number", "22 00 00 00")
	p.look("compose-wrong")
	p.submit("compose.send", "flash.sent", "number", "79000301")
	p.w.exec(`insert into segments (message_id, segment, total, carrier, link, carrier_id, key, submitted_at, state,
		receipt, error, receipt_at)
		select id, 1, 2, 'leo', 'leo-1', id::text, id::text, now(), 1, 'DELIVRD', '000', now() from messages
			where phone_number = '+25779000301' and company_id = $1`, company)
	p.open(p.where())
	p.sees("life.receipt", 1)
	p.look("message-pending")

	user, err := p.w.people.UserByEmail(p.Context(), email)
	if err != nil {
		p.Fatal(err)
	}
	principal, err := p.w.holders.PrincipalOf(p.Context(), user.ID)
	if err != nil {
		p.Fatal(err)
	}
	bulk := intake.Batch{Sender: "ISOKO"}
	for i := range 30 {
		bulk.Recipients = append(bulk.Recipients, intake.Recipient{Number: sms.Number(fmt.Sprintf("+2577901%04d", i)),
			Message: fmt.Sprintf("Amahoro %d, ibicuruzwa vyawe birageze.", i+1)})
	}
	answer, err := p.w.d.deps.Intake.SendBatch(p.Context(), principal, bulk)
	if err != nil {
		p.Fatal(err)
	}
	p.open("/batches/" + regexp.MustCompile(`[0-9A-Z]{26}`).FindString(string(answer.Body)))
	p.sees("batch.far")
	p.look("batch-pending")
	p.w.settle()
	p.reads(p.lang.T("status.sent") + "30") // the page follows the batch
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
func (p *person) readsHandsets(company int64) {
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
	if _, err := handsets.New(p.w.pool).OptOut(p.Context(), sms.CompanyID(company),
		[]handsets.OptOut{{Number: "+25771234500", Sender: "ISOKO", Source: handsets.ByHandset}}); err != nil {
		p.Fatal(err)
	}
	p.open("/opt-outs")
	p.sees("optouts.by.handset")
	p.look("optouts")
	p.fill("q", "79 12 34 00")
	p.press("messages.do")
	p.press("optouts.remove.do", "+25779123400")
	p.sees("flash.optout.removed")
}

// answersPeople reads and answers conversations, on a desk and on a small phone.
func (p *person) answersPeople(company int64) {
	answers := func(name string) {
		p.Helper()
		p.press("nav.conversations")
		p.sees("conversations.unread.other", 3)
		p.look("conversations" + name)
		p.fill("q", "riz")
		p.press("messages.do")
		p.reads("Le riz, c’est combien ?")
		s := p.find("a conversation", "press("+quoted("+25771000055", p.lang.T("deliveries.filter"))+")")
		p.click(s)
		p.turns(s.Doc, "a conversation")
		p.reads("Muraho", "Le riz, c’est combien ?")
		p.look("conversation" + name)
		p.submit("conversation.send", "error.required", "message", " ")
		p.look("conversation-wrong" + name)
		p.submit("conversation.send", "flash.sent", "message", "3000 FBu le kilo"+name)
		p.reads("3000 FBu le kilo" + name)
		p.press("conversation.all")
	}
	writes := func() {
		p.Helper()
		p.w.writes(accounts.Company{ID: company}, "+25771000055", "Muraho", "", "Le riz, c’est combien ?")
	}
	writes()
	p.open("/conversations")
	answers("")
	writes()
	p.size(360)
	p.open("/conversations")
	answers("-phone")
	p.press("conversations.read")
	p.sees("flash.read")
	if strings.Contains(p.read(), "non lu") || strings.Contains(p.read(), "unread\n") {
		p.Errorf("not all are read:\n%s", p.read())
	}
	p.submit("messages.do", "conversations.silent", "q", "79 55 55 55")
	p.look("conversations-silent")
	p.press("conversations.open", "+25779555555")
	p.sees("conversation.none")
	p.look("conversation-none")
	p.size(1280)
}

// sendsCampaigns sends a campaign from a CSV file without its wrong lines and an opted-out recipient, and one from a
// workbook with an empty cell.
func (p *person) sendsCampaigns() {
	const template = "Bonjour {{prenom}}, votre facture de {{montant}} FBu est prête. Merci, ISOKO"
	p.press("nav.campaigns")
	p.look("campaigns-new")
	p.submit("campaign.check", "campaign.wrong", "template", template, "file",
		p.file("empty.csv", "phone_number;Prénom;Montant\n"))
	p.look("campaigns-wrong")
	p.submit("campaign.check", "draft.faults.text", "template", template,
		"file", p.file("clients.csv", "phone_number;Prénom;Montant\n+257 79 12 34;Aline;25 000\n=1+1;Éric;18 500\n71 "+
			"234 567;Jean\n"))
	p.look("draft-wrong")

	// A guessed encoding is shown, and the person can choose another.
	old, err := charmap.Windows1252.NewEncoder().String(
		"Téléphone;Prénom;Montant\n+257 79 12 34 00;Aline;25 000\n71 234 " +
			"500;Hélène;18 500\n79 12 35 01;Jean-Bosco;7 000\n61 000 000;;1 250\n")
	if err != nil {
		p.Fatal(err)
	}
	fields := []string{"name", "Factures", "template", template, "file", p.file("clients.csv", old)}
	p.press("nav.campaigns")
	p.submit("campaign.check", "draft.title.hindered", fields...)
	p.sees("draft.guessed", "Windows-1252")
	p.look("draft-guessed")
	p.press("draft.again")
	p.look("campaigns-again")
	p.submit("campaign.check", "draft.title.hindered", append(fields, "encoding", "Windows-1252")...)
	p.sees("draft.optedout.text")
	p.look("draft-optedout")
	p.press("draft.without")
	p.sees("flash.campaign.without")
	p.look("draft")
	p.press("draft.send.other", 3)
	p.sees("flash.campaign")
	p.look("campaign")
	p.w.settle()
	p.sees("batch.finished")
	p.look("campaign-finished")

	book := excelize.NewFile()
	for i, row := range [][]any{{"Téléphone", "Prénom", "Montant"}, {"79 12 35 01", "Łucja", 25000},
		{61000000, "", "18\u202f500"}} {
		if err := book.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &row); err != nil {
			p.Fatal(err)
		}
	}
	var file bytes.Buffer
	if err := book.Write(&file); err != nil {
		p.Fatal(err)
	}
	p.press("nav.campaigns")
	p.submit("campaign.check", "draft.title", "template", template, "file", p.file("clients.xlsx", file.String()))
	p.reads("Bonjour Łucja, votre facture de 25000 FBu", "Bonjour , votre facture", "U+202F")
	p.sees("draft.blank.one", 1)
	p.look("draft-book")
	p.press("draft.send.other", 2)
	p.sees("flash.campaign")
	p.w.settle()
	p.sees("batch.finished")
	p.press("nav.campaigns")
	p.look("campaigns")
}

// keepsContacts makes a group, imports a spreadsheet, adds a contact, sends a campaign to a group without another, and
// deletes contacts.
func (p *person) keepsContacts() {
	p.press("nav.contacts")
	p.sees("contact.none")
	p.look("contacts-none")
	p.press("group.title")
	p.sees("group.none")
	p.look("groups-none")
	p.submit("group.make", "flash.group.made", "name", "Parents 3A")
	p.fillIn(p.lang.T("group.make"), "name", "parents 3a")
	p.press("group.make")
	p.sees("contact.wrong.group.taken", "parents 3a")
	p.look("groups-wrong")
	p.press("contact.title")
	p.press("import.title")
	p.look("import-none")
	p.submit("import.check", "import.wrong", "file", p.file("vide.csv", "Nom;Classe\nAline;3A\n"))
	p.look("import-wrong")
	p.submit("import.check", "imported.preview", "file", p.file("parents.xlsx", schoolList(p.T)), "new_group",
		"Tous les parents")
	p.sees("imported.faults.one", 1)
	p.reads("Hakizimana Zoé", "+25779000401")
	p.look("imported-checked")
	p.judge("imported-checked", false, 360)
	p.press("imported.confirm.other", 5)
	p.sees("import.state.done") // the page follows the import
	p.look("imported-done")
	p.press("imported.see")
	p.sees("group.members.other", 5)
	p.look("contacts-group")
	p.judge("contacts-group", false, 360)
	p.press("group.title")
	p.look("groups")
	p.press("contact.title")
	p.press("contact.new")
	p.look("contact-new")
	p.submit("contact.add", "error.number", "phone_number", "79 00")
	p.look("contact-wrong")
	p.tick("groups", "Parents 3A")
	p.submit("contact.add", "flash.contact.added", "phone_number", "79 00 04 08", "name", "Mugisha Joël "+hostile,
		"fields.classe", "3A", "consent_source", "Réunion des parents", "consented_at", "2026-01-15")
	p.reads("Mugisha Joël")
	p.look("contact")
	p.judge("contact", false, 360)
	p.submit("contact.save", "flash.contact.changed", "name", "Mugisha Joël")

	// A campaign to a group minus another, with their names and fields in the text.
	p.press("nav.campaigns")
	p.tick("groups", "Parents 3A (4)")
	p.tick("without", "Comité (2)")
	p.look("campaigns-groups")
	p.submit("campaign.check", "draft.title", "name", "Réunion", "template",
		"Bonjour {{nom}}, réunion des parents de {{classe}} samedi à 9 h. Solde : {{solde_fbu}}")
	p.reads("Bonjour NDAYISHIMIYE Aline, réunion des parents de 3A", "Parents 3A", "Comité")
	p.sees("draft.blank.one", 1)
	p.look("draft-groups")
	p.press("draft.without.blank")
	p.press("draft.send.other", 2)
	p.sees("flash.campaign")
	p.w.settle()
	p.sees("batch.finished")

	p.press("nav.contacts")
	if file := p.download("contact.xlsx"); !strings.HasPrefix(file, "PK") {
		p.Errorf("the workbook: %.100q", file)
	}
	p.fill("q", "hakizimana z")
	p.press("messages.do")
	p.reads("Hakizimana Zoé")
	p.look("contacts-found")
	p.submit("messages.do", "messages.nothing", "q", "personne")
	p.look("contacts-nothing")
	p.press("nav.contacts")
	p.tick("id", p.lang.T("contact.tick.one", "Ndayizeye Ange"))
	p.tick("id", p.lang.T("contact.tick.one", "Hakizimana Zoé"))
	p.fill("to", strconv.Itoa(p.w.count(`select max(id) from contact_groups where name = 'Parents 3A'`)))
	p.press("contact.ticked.join")
	p.sees("flash.contacts.joined")
	p.tick("id", p.lang.T("contact.tick.one", "Ndayizeye Ange"))
	p.tick("id", p.lang.T("contact.tick.one", "Hakizimana Zoé"))
	p.press("contact.ticked.delete")
	p.sees("flash.contacts.deleted")
	p.sees("contact.all.other", 4)
	p.look("contacts")
	p.follow("Mugisha Joël")
	p.press("contact.delete.do")
	p.sees("flash.contact.deleted")
	p.press("group.title")
	p.follow("Comité")
	p.press("group.delete.do")
	p.sees("flash.group.deleted")
}

// readsFigures opens the charts and the statement.
func (p *person) readsFigures(company int64) {
	fillMessages(p.T, p.w.pool, company, 2_000, 88)
	p.w.tally("the messages are counted", func() bool {
		p.open("/charts")
		return strings.Contains(p.source(), "<rect")
	})
	p.press("charts.days", 90)
	p.look("charts-90")
	p.press("charts.days", 7)
	p.look("charts-7")
	p.press("nav.quality")
	p.look("quality")
	p.submit("quality.do", "quality.months", "from", time.Now().AddDate(0, -6, 0).Format(time.DateOnly), "kind", "single")
	p.look("quality-months")
	if file := p.download("statement.csv"); !strings.Contains(file, p.lang.T("csv.sender")) {
		p.Errorf("the file of the quality: %.200s", file)
	}
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
	p.sees("statement.threshold.wrong", 1_000_000_000)
	p.look("statement-wrong")
	p.submit("statement.threshold.save", "flash.threshold", "threshold", "100000")
	p.look("statement-low")
	p.press("month.link")
	p.look("month")
	p.fill("month", time.Now().AddDate(0, -1, 0).Format("2006-01"))
	p.press("statement.show")
	p.sees("month.net")
	p.download("statement.csv")
	p.open("/statement?from=2001-01-01&to=2001-01-31")
	p.sees("statement.none")
	p.look("statement-none")
	p.press("statement.print")
	p.open("/statement/print?from=2026-01-01")
	p.look("sheet")
}

// buys orders credits, which the administrator a sells.
func (p *person) buys(a *person) {
	p.open("/orders")
	p.look("orders")
	p.submit("order.calculate", "order.credits.wrong", "credits", "many")
	p.look("orders-wrong")
	p.submit("order.calculate", "order.place", "credits", "1000")
	p.look("orders-sum")
	p.press("order.place")
	p.sees("flash.order")
	p.look("order")
	p.press("order.proforma")
	p.reads("BANCOBU", "Lumicash")
	p.look("proforma")
	p.press("sheet.back")
	p.submit("order.reference.save", "flash.order.reference", "reference", "VIR 77 "+hostile)
	p.submit("facts.upload", "flash.order.slip", "file", p.file("bordereau.pdf", "%PDF-1.7\n"))
	p.look("order-told")

	a.open("/admin")
	a.press("nav.orders")
	a.look("admin-orders")
	a.press("order.name", 1)
	a.look("admin-order")
	a.submit("order.record.button", "flash.order.part", "amount", "5000", "way", "mobile", "reference", "VIR 77")
	a.submit("order.record.button", "order.again", "amount", "9000", "reference", "vir-77")
	a.look("admin-order-again")
	a.submit("order.record.button", "order.more", "again", "yes")
	a.look("admin-order-more")
	a.submit("order.record.button", "flash.order.paid", "amount", "6800", "again", "yes")
	a.look("admin-order-paid")
	a.submit("order.credit.button", "flash.credited", "credits", "100", "why", "typed wrong "+hostile)
	a.look("admin-order-credited")
	a.press("nav.invoices")
	a.look("admin-invoices")
	if file := a.download("statement.csv"); !strings.Contains(file, "F000001") || !strings.Contains(file, "A000001") {
		a.Errorf("the file of the invoices: %s", file)
	}
	a.open("/admin/invoices/F000001")
	a.look("admin-invoice")

	p.open("/orders")
	p.look("orders-paid")
	p.press("order.name", 1)
	p.look("order-paid")
	p.w.until("the tax office has both", func() bool {
		return p.w.count(`SELECT count(*) FROM ebms_reports WHERE finished_at IS NOT NULL`) == 2
	})
	p.open("/invoices/F000001")
	p.sees("ebms.received")
	p.look("invoice")
	p.open("/invoices/A000001")
	p.look("credit-note")
	p.open("/orders?credits=5")
	p.press("order.place")
	p.press("order.cancel")
	p.sees("flash.order.cancelled")
	p.look("order-cancelled")
}

// takesFiles exports a month's messages.
func (p *person) takesFiles() {
	p.open("/messages/exports")
	p.look("exports-none")
	p.submit("exports.do", "flash.export", "month", time.Now().In(texts.Bujumbura).Format("2006-01"))
	p.w.export()
	p.sees("exports.download") // the page follows the file
	p.look("exports")
	if file := p.download("exports.download"); !strings.Contains(file, "25779000301") {
		p.Errorf("the file of the messages: %.400s", file)
	}
}

// worksWithOthers invites a person, who opens every page of every role.
func (p *person) worksWithOthers(jean *person, email string) {
	p.press("nav.people")
	p.submit("people.invite.do", "flash.invited", "name", "Jean", "email", email, "role", string(accounts.RoleReader))
	p.look("people")
	jean.open(linkInMail.FindString(p.w.mail(email, 0).Text))
	jean.look("invitation-new")
	jean.submit("finish.button", "flash.welcome", "password", testPassword)
	for _, role := range []accounts.Role{accounts.RoleReader, accounts.RoleSender, accounts.RoleDeveloper,
		accounts.RoleFinance} {
		if role != accounts.RoleReader {
			p.press("nav.people")
			p.fillIn(p.lang.T("people.change.do", "Jean"), "role", string(role))
			p.press("people.change.do", "Jean")
			p.sees("flash.role")
		}
		jean.open("/")
		var paths []string
		jean.glance(`[...new Set([...document.querySelectorAll("nav a[href^='/']")].map((a) => a.pathname))]`, &paths)
		if len(paths) < 2 {
			p.Errorf("a %s has the pages %q", role, paths)
		}
		for _, path := range paths {
			jean.open(path)
			jean.glanceAt(string(role) + " " + path)
		}
	}
	p.look("people-joined")
	p.press("people.remove.do", "Jean")
	p.sees("flash.removed")
	p.submit("people.invite.do", "flash.invited", "name", "Jean", "email", email)
	jean.open("/")
	jean.open(linkInMail.FindString(p.w.mail(email, 1).Text))
	if strings.Contains(jean.where(), "sign-in") { // a person who was removed is signed out
		jean.signsIn(email)
	}
	jean.look("invitation")
	jean.press("invitation.join")
	jean.sees("flash.joined")
}

// guardsAccount turns the second factor on, signs in with it, and changes the password.
func (p *person) guardsAccount(email string) {
	p.open("/account")
	p.look("account")
	p.press("account.twostep.open")
	p.look("twostep")
	secret := totpSecret.FindString(p.read())
	p.submit("twostep.turnon", "code.wrong", "present", testPassword, "code", "000000")
	p.submit("twostep.turnon", "twostep.codes", "present", testPassword, "code", codeOf(p.T, secret))
	p.look("twostep-codes")
	recovery := recoveryKey.FindString(p.read())
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

// entersAdministration signs an administrator in, with a second factor.
func (p *person) entersAdministration() {
	email := p.administrator()
	p.w.user(email, true)
	p.open("/admin")
	p.signsIn(email)
	p.sees("admin.enter.setup")
	p.look("admin-setup")
	p.press("account.twostep.open")
	p.submit("twostep.turnon", "twostep.codes", "present", testPassword, "code",
		codeOf(p.T, totpSecret.FindString(p.read())))
	recovery := recoveryKey.FindString(p.read())
	p.open("/admin")
	p.look("admin-enter")
	p.submit("admin.enter.button", "admin.title", "proof", recovery)
	p.look("admin")
}

func (p *person) administrator() string { return "root-" + p.lang.Tag + "@example.com" }

// approves approves and verifies a customer, approves a sender ID, refuses another, registers it at a carrier with a
// letter, and books credits.
func (p *person) approves(company int64) {
	p.press("admin.approve")
	p.sees("flash.approved")
	p.press("admin.verify")
	p.sees("flash.verified")
	p.look("admin-none")
	p.open("/admin/senders")
	p.look("admin-senders-asked")
	p.press("waiting.senders.approve", "ISOKO")
	p.sees("flash.sender.approved")
	p.submit("waiting.senders.refuse", "flash.sender.refused", "reason", "This name reads like another company’s.")
	p.open(senderPath(int64(p.w.count(`select id from senders where name = 'ISOKO' and company_id = $1`, company))))
	p.look("admin-sender-new")
	for _, state := range []string{senders.RegistrationSent, senders.RegistrationApproved} {
		fields := []string{"state", state, "reason", "Their reference 12"}
		if state == senders.RegistrationSent {
			fields = append(fields, "sent_on", time.Now().Format(time.DateOnly))
		}
		for i := 0; i < len(fields); i += 2 {
			p.fillIn(p.lang.T("registration.record", "lumitel"), fields[i], fields[i+1])
		}
		p.press("registration.record", "lumitel")
		p.sees("flash.registration")
	}
	p.press("registration.letter", "lumitel")
	p.reads("ISOKO")
	p.look("admin-letter")
	p.press("registration.title", "ISOKO")
	p.fillIn(p.lang.T("registration.upload", "lumitel"), "file", p.file("letter.pdf", "%PDF-1.7\n"))
	p.press("registration.upload", "lumitel")
	p.sees("flash.document")
	p.open(web.CompanyPath(company))
	p.submit("credits.book", "flash.credits", "amount", "5000", "note", "invoice 7")
}

// administers approves a waiting customer as an administrator.
func (p *person) administers(other int64) {
	w, language := p.w, p.lang.Tag
	owner := "owner-" + language + "@example.com"
	customer, name := w.user(owner, false), "LUMICASH"+strings.ToUpper(language)
	company := w.company(owner, "Isoko "+language+" "+hostile)
	if _, _, err := w.keys.CreateToken(p.Context(), owner, "Web shop", accounts.TokenLimits{}); err != nil {
		p.Fatal(err)
	}
	if _, err := w.senders.CreateSender(p.Context(), company.ID, name, "BI", false); err != nil {
		p.Fatal(err)
	}
	w.exec(`INSERT INTO webhook_endpoints (company_id, url, secret) VALUES ($1, 'https://isoko.example/hook?key=canary',
		'sealed')`, company.ID)
	number := sms.Number("+257610001" + map[string]string{"fr": "01", "en": "02"}[language])
	message := w.accept(company.ID, customer.ID, number, "lumitel")
	w.settle()

	p.open("/admin")
	p.sees("facts.missing")
	p.look("admin")
	p.press("admin.approve")
	p.sees("flash.approved")
	p.press("admin.verify")
	p.sees("flash.verified")
	p.open("/admin/senders")
	p.sees("likeness.text", "Lumicash", p.lang.T("likeness.wallet"))
	p.look("admin-senders")
	p.press("waiting.senders.approve", name)
	p.sees("flash.sender.approved")
	var sender int64
	if err := w.pool.QueryRow(p.Context(), `SELECT id FROM senders WHERE name = $1`, name).Scan(&sender); err != nil {
		p.Fatal(err)
	}
	_, at, err := w.senders.SetRegistration(p.Context(), sender, "lumitel",
		senders.RegistrationChange{State: senders.RegistrationSent, Reason: hostile})
	if err != nil {
		p.Fatal(err)
	}
	if err := w.senders.SetRegistrationDocument(p.Context(), at.ID, strings.Repeat("lettre", 16)+".pdf",
		[]byte("%PDF-1.7\n")); err != nil {
		p.Fatal(err)
	}
	w.exec(`UPDATE sender_carriers SET changed_at = now() - interval '8 days'`)
	p.open("/admin/senders")
	p.look("admin-senders-late")
	p.open("/admin/senders/late")
	p.look("admin-late")
	p.open(senderPath(sender))
	p.look("admin-sender")
	p.open("/admin/users")
	p.look("admin-users")
	p.open("/admin/verifications")
	p.look("admin-verifications")
	p.open("/admin/companies?q=Isoko")
	p.look("admin-companies")
	p.open(web.CompanyPath(company.ID))
	p.reads("https://isoko.example/hook")
	if strings.Contains(p.source(), "canary") || strings.Contains(p.source(), "sealed") {
		p.Errorf("the endpoint's secrets are shown:\n%s", p.read())
	}
	p.look("admin-company")
	p.submit("credits.book", "credits.negative", "amount", "-5", "note", "correction")
	p.look("admin-company-wrong")
	if _, _, err := w.companies.SetFacts(p.Context(), sms.CompanyID(company.ID),
		companies.Facts{NIF: "4000123456", TradeRegister: "RC 12345/21", Address: strings.Repeat("Rohero ", 40),
			Phone: "+257 22 21 00 00", Contact: "Éric " + hostile}); err != nil {
		p.Fatal(err)
	}
	if _, _, err := w.companies.SetDocument(p.Context(), sms.CompanyID(company.ID), strings.Repeat("certificat", 9)+".pdf",
		[]byte("%PDF-1.7\n")); err != nil {
		p.Fatal(err)
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
	p.pressSlowly("links.resume", "lumitel-1")
	p.sees("flash.resumed")
	p.open("/admin/money")
	p.look("adminmoney")
	today := time.Now().In(texts.Bujumbura).Format(time.DateOnly)
	p.fill("valid_from", today)
	p.fill("bif", "12.5")
	p.press("money.set")
	p.sees("flash.price")
	p.fill("carrier", "leo")
	p.fill("tariff_from", today)
	p.fill("tariff", "9")
	p.enter(kb.Enter)
	p.sees("flash.tariff")
	p.look("adminmoney-set")
	p.open(web.CompanyPath(other) + "/month")
	p.look("admin-month")
	p.open(web.CompanyPath(other) + "/exports")
	p.look("admin-exports")
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

	w.exec(`insert into segments (message_id, segment, total, carrier, link, key, submitted_at)
		select id, 1, 1, 'lumitel', 'lumitel-1', '?' || id, now() from messages where ulid = $1`, message.Bytes())
	p.submit("search.button", "message.life", "q", message.String())
	p.sees("life.unanswered")
	p.reads(number.Masked())
	p.look("admin-message")
	w.exec(`update segments set carrier_id = $2, key = lower($2) from messages m where message_id = m.id and ulid = $1`,
		message.Bytes(), "9F-"+language)
	p.open("/admin/search?q=9F-" + language)
	if p.where() != "/admin/messages/"+message.String() {
		p.Errorf("a carrier's id leads to %s", p.where())
	}
	p.reads(p.lang.T("life.carrierid", "9F-"+language))
	p.open("/admin/search?q=" + number.National())
	p.sees("search.messages")
	p.look("admin-search")
	p.open("/admin/search?q=" + owner)
	if p.where() != web.CompanyPath(company.ID) {
		p.Errorf("an e-mail leads to %s", p.where())
	}
	p.open("/admin/search?q=nothing+of+the+kind")
	p.look("admin-search-none")
	p.open("/admin/acts?actor=" + p.administrator())
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
		('lumitel-1', 'lumitel', 'bound', 20, 5, 200, ''), ('econet-1', 'econet', 'connecting', 10, 0, 0,
		'connection refused')`)
	w.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, status, error, outcome)
		VALUES ('lumitel', 'lumitel-1', 'k', $1, '25761000000', 'DELIVRD', 1, '000', 'unmatched')`, "7f\x1b[2J"+hostile)
	w.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets, outcome) VALUES
		('lumitel', 'lumitel-1', '25761000001', '8080', 0, 0, $1, '', 'unrouted'), ('lumitel', 'lumitel-2', '25761000002',
		'8080', 4, 0, NULL, '\x0102', 'unrouted')`,
		"STOP\x1b[2J\u202e"+hostile)
	w.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets, outcome)
		SELECT 'lumitel', 'lumitel-1', '25761000003', 'INTUMWATEST', 0, 0, repeat('Ndabikeneye ejo mu gitondo. ', 40), '',
			'unrouted' FROM generate_series(1, 40)`)
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
			CASE WHEN kind <> 'adjustment' THEN gen_random_uuid() END, CASE WHEN kind = 'adjustment'
			THEN 'Facture 2026-0147, payée par virement' ELSE '' END, now()
		FROM (SELECT i, CASE WHEN i % 20 = 0 THEN 'adjustment' WHEN i % 7 = 0 THEN 'refund' ELSE 'send' END AS kind,
			CASE WHEN i % 20 = 0 THEN 1000 WHEN i % 7 = 0 THEN 1 ELSE -(i % 30) - 1 END AS amount
			FROM generate_series(1, 90) i) x`, company)
	w.exec(`UPDATE balances SET credits = (SELECT balance_after FROM ledger WHERE company_id = $1 ORDER BY id DESC LIMIT 1)
		WHERE company_id = $1`, company)
}

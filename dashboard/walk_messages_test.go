package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
	"intumwa/webhooks"
)

var sixDigits = regexp.MustCompile(`\d{6}`)

// becomes wants the page to say a text in time: by itself with JavaScript, by the button that looks again without.
func (p *person) becomes(key string, args ...any) {
	p.Helper()
	text := p.lang.T(key, args...)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if strings.Contains(p.read(), text) {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("%s: %s never says %q:\n%s", p.name, p.where(), text, p.read())
		}
		if !p.script {
			p.press("life.again")
		}
	}
}

// firstMessage verifies a test number, sends the first message to it and follows it to the handset; then the company is
// approved, and a message with a webhook goes out, and a batch.
func (p *person) firstMessage(email string) {
	n := map[string]int{"fr": 1, "en": 2, "fr-noscript": 3, "en-noscript": 4}[p.name]
	number := fmt.Sprintf("+2577900010%d", n)
	p.open("/first")
	p.look("first-none")
	p.press("home.number.open")
	p.look("testnumber-none")
	p.fill("number", "22 22 22 22")
	p.press("testnumber.send")
	p.sees("error.number")
	p.look("testnumber-wrong")
	p.fill("number", strings.TrimPrefix(number, "+257"))
	p.press("testnumber.send")
	p.sees("flash.code")
	p.look("testnumber-code")
	code := sixDigits.FindString(p.w.gateway.heard(number, 1)[0])
	p.fill("code", map[bool]string{true: "111111", false: "000000"}[code == "000000"])
	p.press("testnumber.confirm")
	p.sees("testnumber.code.wrong", 4)
	p.fill("code", code[:3]+" "+code[3:])
	p.press("testnumber.confirm")
	p.sees("flash.verifiednumber")
	p.look("testnumber")
	p.fill("number", "79 00 02 00")
	p.press("testnumber.send")
	p.sees("testnumber.number")
	p.look("testnumber-soon")

	p.press("home.first")
	p.look("first")
	p.press("first.send")
	p.sees("first.sent")
	p.sees("first.answer")
	p.becomes("life.sent")
	p.look("first-sent")
	if texts := p.w.gateway.heard(number, 2); texts[1] != p.lang.T("first.example") {
		p.Errorf("the handset got %q", texts)
	}
	p.press("first.open")
	p.look("message-test")

	ctx, yes := p.Context(), true
	user, err := p.w.accounts.UserByEmail(ctx, email)
	if err != nil {
		p.Fatal(err)
	}
	company, err := p.w.accounts.CompanyOf(ctx, user.ID)
	if err != nil {
		p.Fatal(err)
	}
	p.open("/messages/new")
	p.sees("compose.unapproved", testSender)
	p.look("compose-unapproved")
	answers := make(chan struct{}) // the customer's server keeps its answer back until then
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-answers:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	p.Cleanup(hook.Close)
	_, err = p.w.accounts.SetCompany(ctx, company.ID, accounts.CompanyChange{Approved: &yes, Verified: &yes})
	if err == nil {
		_, err = p.w.accounts.CreateSender(ctx, company.ID, "ISOKO", "BI", true)
	}
	if err == nil {
		err = p.w.grant(company.ID, 100, "for a test")
	}
	if err == nil {
		_, err = p.w.gateway.hooks.SetEndpoint(ctx, company.ID, webhooks.Setting{URL: hook.URL, Active: &yes})
	}
	if err != nil {
		p.Fatal(err)
	}
	p.composes(fmt.Sprintf("7900030%d", n), answers)

	principal, err := p.w.accounts.PrincipalOf(ctx, user.ID)
	if err != nil {
		p.Fatal(err)
	}
	bulk := intake.Batch{Sender: "ISOKO"}
	for i := range 30 {
		bulk.Recipients = append(bulk.Recipients, intake.Recipient{Number: sms.Number(fmt.Sprintf("+257790%d04%02d", n, i)), Message: fmt.Sprintf("Amahoro %d, ibicuruzwa vyawe birageze.", i+1)})
	}
	answer, err := p.w.d.rooms.Intake.SendBatch(ctx, principal, bulk)
	if err != nil {
		p.Fatal(err)
	}
	p.open("/batches/" + regexp.MustCompile(`[0-9A-Z]{26}`).FindString(string(answer.Body)))
	p.sees("batch.far")
	for deadline := time.Now().Add(patience); !strings.Contains(p.read(), p.lang.T("status.sent")+"\n30"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("%s: the batch is not sent:\n%s", p.name, p.read())
		}
		if !p.script {
			p.open(p.where())
		}
	}
	p.look("batch")
	p.press("batch.more")
	p.look("batch-more")

	p.open("/messages")
	p.look("messages")
	p.press("messages.older")
	p.look("messages-older")
	p.open("/messages")
	p.fill("q", strings.TrimPrefix(number, "+257"))
	p.press("messages.do")
	p.sees("first.example")
	p.look("messages-found")
	p.fill("q", "79 99 99 99")
	p.press("messages.do")
	p.sees("messages.nothing")
	p.look("messages-nothing")
}

// composes writes a message of two segments, sends it, and sees on the same page how it goes on.
func (p *person) composes(number string, answers chan struct{}) {
	p.open("/messages/new")
	p.look("compose")
	p.fill("number", number)
	p.fill("message", "Merci ! « Votre commande » est prête ✅ "+strings.Repeat("à bientôt ", 4))
	if p.script {
		p.becomesMeasured("compose.encoding", "encoding.ucs")
	} else {
		p.press("compose.check")
	}
	p.sees("compose.foreign.text")
	p.look("compose-unicode")
	p.fill("number", "22 00 00 00")
	p.press("compose.send")
	p.sees("error.number")
	p.look("compose-wrong")
	p.fill("number", number)
	p.press("compose.send")
	p.sees("flash.sent")
	p.becomes("life.webhookwait", "sms.sent")
	close(answers)
	p.becomes("life.answered", 204)
	p.look("message")
}

func (p *person) becomesMeasured(key, value string) {
	p.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		text := p.read()
		if strings.Contains(text, p.lang.T(key)+"\n"+p.lang.T(value)) {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("%s: nothing is measured:\n%s", p.name, text)
		}
	}
}

package dashboard

import (
	"regexp"
	"strings"
	"testing"

	"intumwa/accounts"
)

// TestFirstDay: a customer's first day from the sign-up on, in two languages, with and without JavaScript.
func TestFirstDay(t *testing.T) {
	t.Parallel() // with the other walks: a browser waits more than it computes
	w := newWorld(t, nil)
	w.gateway.carry()
	chromium := startChromium(t)
	for _, try := range []struct {
		language string
		script   bool
	}{{"fr", true}, {"en", false}} {
		p := newPerson(chromium, t, w, try.language, try.script)
		p.firstDay()
	}
}

var linkInMail = regexp.MustCompile(`http://\S+`)

func (p *person) firstDay() {
	email := p.name + "@example.com"
	p.open("/")
	p.sees("signin.title")
	p.look("signin")
	p.press("signin.signup")
	p.look("signup")
	p.fill("name", "Aline Ndayishimiye")
	p.fill("email", email)
	p.press("signup.button")
	p.sees("sent.title")
	p.look("sent")
	p.open(linkInMail.FindString(p.w.mail(email, 0).Text))
	p.look("choose")
	p.fill("password", "too short")
	p.press("finish.button")
	p.sees("finish.short", accounts.MinPassword)
	p.look("choose-wrong")
	p.fill("password", testPassword)
	p.press("finish.button")
	p.sees("flash.welcome")
	p.look("home-new")

	p.press("nav.signout")
	p.open("/keys")
	p.sees("signin.title")
	p.fill("email", email)
	p.fill("password", "not the password")
	p.press("signin.button")
	p.sees("signin.wrong")
	p.look("signin-wrong")
	p.fill("password", testPassword)
	p.press("signin.button")
	if p.where() != "/keys" {
		p.Errorf("after signing in: %s", p.where())
	}
	p.look("keys-none")

	p.open("/company")
	p.sees("company.new")
	p.look("newcompany")
	p.fill("name", "Isoko & Fils <SARL>")
	p.press("company.create")
	p.sees("flash.company")
	p.look("company")

	p.open("/keys")
	p.fill("name", "Web shop")
	p.press("keys.create")
	p.sees("keys.made", "Web shop")
	p.look("keys-made")
	key := regexp.MustCompile(`\d+\|\w{40}`).FindString(p.read())
	if _, err := p.w.accounts.Authenticate(p.Context(), key); err != nil {
		p.Errorf("the key %q does not work: %v", key, err)
	}
	p.open("/keys")
	if strings.Contains(p.read(), key) {
		p.Error("the key is shown twice")
	}
	p.unfold("keys.revoke")
	p.look("keys-revoke")
	p.press("keys.revoke.do", "Web shop")
	p.sees("flash.revoked")
	p.senderAndWebhook(email)
	p.open("/")
	p.look("home")

	p.firstMessage(email)
	p.twoStep(email)
	p.open("/nowhere")
	p.look("notfound")
	p.open("/")
	p.press("nav.signout")
	p.sees("signin.title")
}

// twoStep turns the second factor on, signs in with it and with a recovery code, and changes the password.
func (p *person) twoStep(email string) {
	p.open("/account")
	p.look("account")
	p.press("account.twostep.open")
	p.look("twostep")
	secret := regexp.MustCompile(`[A-Z2-7]{32}`).FindString(p.read())
	p.fill("code", "000000")
	p.press("twostep.turnon")
	p.sees("code.wrong")
	p.fill("code", codeOf(p.T, secret))
	p.press("twostep.turnon")
	p.sees("twostep.codes")
	p.look("twostep-codes")
	recovery := regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`).FindString(p.read())
	p.press("twostep.kept")
	p.press("account.twostep.manage")
	p.look("twostep-on")
	p.press("nav.signout")
	p.fill("email", email)
	p.fill("password", testPassword)
	p.press("signin.button")
	p.sees("code.lead")
	p.look("code")
	p.fill("code", recovery)
	p.press("code.button")
	p.sees("home.steps")
	p.open("/account")
	p.sees("account.twostep.on")
	p.fill("present", testPassword)
	p.fill("new", testPassword+"!")
	p.press("account.change")
	p.sees("flash.password")
}

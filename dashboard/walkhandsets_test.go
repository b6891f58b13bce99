package dashboard

import (
	"strings"
	"testing"

	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// TestHandsetsWalk: a company reads what handsets sent to it, enters a number into its opt-out list and takes it off, and
// sends a campaign without those who have opted out, in two languages, with and without JavaScript.
func TestHandsetsWalk(t *testing.T) {
	t.Parallel() // with the other walks: a browser waits more than it computes
	r := newRig(t, false)
	chromium := startChromium(t)
	for _, try := range []struct {
		language string
		script   bool
	}{{"fr", true}, {"en", false}} {
		p := newPerson(chromium, t, r.world, try.language, try.script)
		p.handsets(r)
	}
}

func (p *person) handsets(r *rig) {
	email := p.name + "-handsets@example.com"
	r.user(email, false)
	company := r.company(email, "Isoko & Fils SARL")
	r.ready(company, 100)
	p.open("/received")
	p.fill("email", email)
	p.fill("password", testPassword)
	p.press("signin.button")
	p.sees("received.none")
	p.look("received-none")
	texts := []string{"Yego, ndabikeneye ✅\nMurakoze", "", strings.Repeat("Amakuru y’ibicuruzwa? ", 20)}
	for range 30 {
		texts = append(texts, "STOP")
	}
	r.writes(company, "+25779123400", texts...)
	r.writes(company, "LEO INFO", "Promo <b>2</b>")
	p.open("/received")
	p.sees("messages.older")
	p.look("received")
	p.press("messages.older")
	p.sees("received.notext")
	p.look("received-older")
	p.fill("number", "79 12 34")
	p.press("messages.do")
	p.sees("error.number")
	p.look("received-wrong")
	p.fill("number", "69 00 00 00")
	p.press("messages.do")
	p.sees("messages.nothing")
	p.look("received-nothing")

	p.press("nav.optouts")
	p.sees("optouts.none")
	p.look("optouts-none")
	p.fill("number", "12")
	p.press("optouts.add")
	p.sees("error.number")
	p.look("optouts-wrong")
	p.fill("number", "79 12 34 00")
	p.press("optouts.add")
	p.sees("flash.optout.added")
	if _, err := handsets.New(r.pool).OptOut(p.Context(), sms.CompanyID(company.ID), []handsets.OptOut{{Number: "+25771234500", Sender: "DEMO", Source: handsets.ByHandset}}); err != nil {
		p.Fatal(err)
	}
	p.open("/opt-outs")
	p.sees("optouts.by.handset")
	p.look("optouts")
	p.fill("q", "79 12 34 00")
	p.press("messages.do")
	p.sees("optouts.all")
	p.unfold("optouts.remove")
	p.look("optouts-remove")
	p.press("optouts.remove.do", "+25779123400")
	p.sees("flash.optout.removed")

	p.open("/campaigns")
	p.fill("template", "Bonjour {{prenom}}, votre facture est prête. Merci, ISOKO")
	p.attach("phone_number;Prénom\n+257 79 12 34 00;Aline\n71 234 500;Éric\n79 12 35 01;Jean-Bosco\n")
	p.press("campaign.check")
	p.sees("draft.title.optedout")
	p.sees("draft.optedout.place", 2)
	p.look("draft-optedout")
	p.press("draft.without")
	p.sees("flash.campaign.without")
	p.sees("draft.title")
	p.look("draft-without")
	p.press("draft.send.other", 2)
	p.sees("flash.campaign")
}

package dashboard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"intumwa/sms"
)

// TestMoneyWalk: a company's campaign from a file to its delivery, its volume, its statement on the screen and on paper,
// in two languages, with and without JavaScript.
func TestMoneyWalk(t *testing.T) {
	t.Parallel() // with the other walks: a browser waits more than it computes
	r := newRig(t, true)
	chromium := startChromium(t)
	for _, try := range []struct {
		language string
		script   bool
	}{{"fr", true}, {"en", false}} {
		p := newPerson(chromium, t, r.world, try.language, try.script)
		p.campaignDay(r)
	}
}

func (p *person) campaignDay(r *rig) {
	email := p.name + "-money@example.com"
	r.user(email, false)
	company := r.company(email, "Isoko & Fils SARL")
	p.open("/campaigns")
	p.fill("email", email)
	p.fill("password", testPassword)
	p.press("signin.button")
	p.sees("campaign.nosender")
	p.look("campaigns-none")
	p.open("/charts")
	p.look("charts-none")
	r.ready(company, 5000)
	p.open("/campaigns")
	p.unfold("campaign.example")
	p.look("campaigns-new")
	p.fill("template", "Bonjour {{prenom}}, votre facture de {{montant}} FBu est prête. Merci, ISOKO")
	p.attach("phone_number;Prénom;Montant\n+257 79 12 34;Aline;25 000\n=1+1;Éric;18 500\n71 234 567;Jean\n")
	p.press("campaign.check")
	p.sees("campaign.wrong")
	p.sees("campaign.line", 3)
	p.look("campaigns-wrong")
	p.attach("Téléphone;Prénom;Montant\n+257 79 12 34 00;Aline;25 000\n71 234 500;Łucja;18 500\n79 12 35 01;Jean-Bosco;7 000\n61 000 000;Éric;1 250\n71 234 500;Łucja;18 500\n")
	p.press("campaign.check")
	p.sees("draft.title")
	p.look("draft")
	p.press("draft.send.other", 5)
	p.sees("flash.campaign")
	for deadline := time.Now().Add(patience); !strings.Contains(p.read(), p.lang.T("status.pending")+"\n0"); {
		if time.Now().After(deadline) {
			p.Fatalf("%s: the campaign does not end:\n%s", p.name, p.read())
		}
		if p.script { // the page changes by itself
			time.Sleep(50 * time.Millisecond)
		} else {
			p.open(p.where())
		}
	}
	p.look("campaign")
	p.open("/campaigns")
	p.look("campaigns")

	fillMessages(p.T, r.pool, company.ID, 2_000, 88)
	p.history(r, company.ID)
	r.until("it happens", func() bool {
		days, err := r.d.rooms.Messages.Daily(p.Context(), sms.CompanyID(company.ID), time.Now().AddDate(0, 0, -90), time.Now().AddDate(0, 0, 1))
		n := int64(0)
		for i := range days {
			n += days[i].Sent + days[i].Failed
		}
		return err == nil && n == 2_005
	})
	p.open("/charts")
	p.sees("charts.byday")
	p.look("charts")
	p.press("charts.days", 90)
	p.look("charts-90")
	p.press("charts.days", 7)
	p.look("charts-7")

	p.open("/statement")
	p.look("statement")
	p.fill("threshold", "a few")
	p.press("statement.threshold.save")
	p.sees("statement.threshold.wrong", maxThreshold)
	p.look("statement-wrong")
	p.fill("threshold", "100000")
	p.press("statement.threshold.save")
	p.sees("flash.threshold")
	p.look("statement-low")
	if m := r.mailAbout(email, p.w.d.words.Languages[0].T("mail.low.subject"), 0); !strings.Contains(m.Text, r.url+"/statement") {
		p.Errorf("the warning: %+v", m)
	}
	p.open("/statement?from=2001-01-01&to=2001-01-31")
	p.sees("statement.none")
	p.look("statement-none")
	p.press("statement.print")
	p.open("/statement/print?from=2026-01-01")
	p.look("sheet")
	p.paper("sheet")
}

// history gives a company a month of entries before today's.
func (p *person) history(r *rig, company int64) {
	p.Helper()
	if _, err := r.pool.Exec(p.Context(), `
		INSERT INTO ledger (company_id, kind, amount, balance_after, ref, note, created_at)
		SELECT $1, kind, amount, (SELECT credits FROM balances WHERE company_id = $1) + sum(amount) OVER (ORDER BY i),
			CASE WHEN kind <> 'adjustment' THEN gen_random_uuid() END, CASE WHEN kind = 'adjustment' THEN 'Facture 2026-0147' ELSE '' END, now()
		FROM (SELECT i, CASE WHEN i % 20 = 0 THEN 'adjustment' WHEN i % 7 = 0 THEN 'refund' ELSE 'send' END AS kind,
			CASE WHEN i % 20 = 0 THEN 1000 WHEN i % 7 = 0 THEN 1 ELSE -(i % 30) - 1 END AS amount FROM generate_series(1, 90) i) x`, company); err != nil {
		p.Fatal(err)
	}
	if _, err := r.pool.Exec(p.Context(), `UPDATE balances SET credits = (SELECT balance_after FROM ledger WHERE company_id = $1 ORDER BY id DESC LIMIT 1)
		WHERE company_id = $1`, company); err != nil {
		p.Fatal(err)
	}
}

// attach chooses a file with that text.
func (p *person) attach(text string) {
	p.Helper()
	file := filepath.Join(p.TempDir(), "people.csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	p.do("choosing a file", chromedp.SetUploadFiles(`main input[type=file]`, []string{file}, chromedp.ByQuery))
}

// paper takes a picture of the page as it is printed, and the PDF of it.
func (p *person) paper(name string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.ArtifactDir(), name+"-"+p.name+".pdf"), p.print(), 0o644); err != nil {
		p.Fatal(err)
	}
	p.size(794)
	p.do("looking at the paper", emulation.SetEmulatedMedia().WithMedia("print"))
	p.shoot(name + "-" + p.name + "-paper.png")
	p.do("back to the screen", emulation.SetEmulatedMedia().WithMedia(""))
	p.size(1280)
}

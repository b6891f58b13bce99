package dashboard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// print is the page that is open on A4, as Chromium prints it.
func (p *person) print() (pdf []byte) {
	p.Helper()
	p.do("printing", chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPaperWidth(8.27).WithPaperHeight(11.69).WithPreferCSSPageSize(true).Do(ctx)
		return err
	}))
	return pdf
}

// TestPaper: a statement is readable on paper: whose it is, every row with its amount, the heads of the columns on each
// page, nothing of the navigation, nothing cut off at the right.
func TestPaper(t *testing.T) {
	t.Parallel() // with the other walks: a browser waits more than it computes
	w := newWorld(t, nil)
	u := w.user("aline@example.com", false)
	company := w.company(u.Email, "Isoko & Fils SARL, Bujumbura")
	w.exec(`insert into ledger (company_id, kind, amount, balance_after, ref, note)
		select $1, case when i % 20 = 0 then 'adjustment' else 'send' end, case when i % 20 = 0 then 100000 + i else -1000 - i end, 9000000 + i * 1001,
			case when i % 20 <> 0 then gen_random_uuid() end, case when i % 20 = 0 then 'Facture 2026-0147, payée par virement bancaire le lendemain' else '' end
		from generate_series(1, 120) i`, company.ID)
	p := newPerson(startChromium(t), t, w, "fr", true)
	p.open("/")
	p.fill("email", u.Email)
	p.fill("password", testPassword)
	p.press("signin.button")
	for _, try := range []struct {
		path  string
		first int // row
	}{{"/statement/print?from=2026-01-01", 1}, {"/statement", 71}} {
		p.open(try.path)
		pdf := p.print()
		if err := os.WriteFile(filepath.Join(p.ArtifactDir(), "paper"+strings.ReplaceAll(strings.Split(try.path, "?")[0], "/", "-")+".pdf"), pdf, 0o600); err != nil {
			t.Fatal(err)
		}
		pages := pdfPages(t, pdf)
		all := strings.Join(pages, "")
		if len(pages) < 2 || len(pages) > 8 {
			t.Errorf("%s: %d pages", try.path, len(pages))
		}
		if !strings.Contains(pages[0], dense(company.Name)) {
			t.Errorf("%s does not say whose it is: %q", try.path, pages[0])
		}
		for _, key := range []string{"nav.keys", "nav.signout", "frame.menu", "frame.skip", "frame.foot", "statement.csv", "statement.show", "sheet.print"} {
			if strings.Contains(all, dense(p.lang.T(key))) {
				t.Errorf("%s: on paper stands %q", try.path, p.lang.T(key))
			}
		}
		for i := try.first; i <= 120; i++ {
			amount, balance := "−"+p.lang.Number(int64(1000+i)), p.lang.Number(int64(9_000_000+i*1001))
			if i%20 == 0 {
				amount = "+" + p.lang.Number(int64(100_000+i))
			}
			if !strings.Contains(all, dense(amount+balance)) {
				t.Errorf("%s lacks row %d, %s and %s", try.path, i, amount, balance)
			}
		}
		heads := dense(p.lang.T("statement.time") + p.lang.T("statement.what") + p.lang.T("statement.amount") + p.lang.T("statement.balance"))
		for i, text := range pages {
			rows := strings.Count(text, dense(p.lang.T("statement.kind.send")))
			if n := strings.Count(text, heads); rows > 2 && n != 1 {
				t.Errorf("%s, page %d: the heads of the columns stand there %d times:\n%s", try.path, i+1, n, text)
			}
		}
		p.narrow()
	}
}

// narrow wants the page that is open to fit on paper: A4 without its margins, or everything would be printed smaller.
func (p *person) narrow() {
	p.Helper()
	p.size(680) // 180 mm
	p.do("looking at the paper", emulation.SetEmulatedMedia().WithMedia("print"))
	var over []string
	p.do("measuring", chromedp.Evaluate(`[...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() &&
		(e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible")).map((e) => e.outerHTML.slice(0, 100))`, &over))
	if len(over) > 0 {
		p.Errorf("%s: cut off on paper: %s", p.where(), fmt.Sprint(over))
	}
	p.do("back to the screen", emulation.SetEmulatedMedia().WithMedia(""))
	p.size(1280)
}

package money

import (
	"errors"
	"strings"

	"intumwa/accounts"
	"intumwa/billing/ebms"
	"intumwa/dashboard/web"
)

// unreportedOnPage bounds the page; the oldest come first.
const unreportedOnPage = 100

// unreportedPage is what the tax office does not have.
type unreportedPage struct {
	Reports []ebms.Report
	More    bool
}

// Unreported is GET /admin/ebms.
func (ps *Pages) Unreported(v *web.Visit) error {
	all, err := ps.Unsent(v.Ctx(), unreportedOnPage+1)
	p := unreportedPage{all, len(all) > unreportedOnPage}
	if p.More {
		p.Reports = all[:unreportedOnPage]
	}
	return v.Page(err, "adminebms", p)
}

// ReportInvoice is POST /admin/ebms: report it again, without the customer's NIF, or not at all.
func (ps *Pages) ReportInvoice(v *web.Visit) error {
	f := v.Form()
	to, flash := ebms.Retry{}, "flash.ebms.again"
	switch f.Value("do") {
	case "without":
		to.WithoutNIF = true
	case "settled":
		if to.Settled, flash = strings.TrimSpace(f.Required("note")), "flash.ebms.settled"; !f.OK() {
			return ps.Unreported(v)
		}
	}
	_, err := ps.By(v).ReportInvoice(v.Ctx(), f.Value("invoice"), to)
	if errors.Is(err, ebms.ErrNote) {
		f.Fail("ebms.note.wrong", ebms.MaxNote)
		return ps.Unreported(v)
	}
	if errors.Is(err, ebms.ErrClaimed) {
		return v.Redirect("/admin/ebms", "flash.ebms.claimed")
	}
	if accounts.ForUser(err) { // it was received or settled meanwhile, or the form was not ours
		return v.Redirect("/admin/ebms", "flash.ebms.late")
	}
	return v.Done(err, "/admin/ebms", flash)
}

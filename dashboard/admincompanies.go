package dashboard

import (
	"net/http"
	"strconv"

	"intumwa/accounts"
)

const companiesOnPage = 50

type awaitingPage struct {
	Companies []accounts.Applicant
	Next      int64 // the last one's id, when there are more
}

// awaiting is GET /admin: the companies that wait for approval or verification.
func (d *Dashboard) awaiting(v *visit, _ operator) {
	after, err := strconv.ParseInt(v.c.DefaultQuery("after", "0"), 10, 64)
	if err != nil || after < 0 {
		after = 0
	}
	list, err := d.rooms.Accounts.Awaiting(v.ctx(), after, companiesOnPage+1)
	if err != nil {
		v.fail("listing companies", err)
		return
	}
	data := awaitingPage{Companies: list}
	if len(list) > companiesOnPage {
		data.Companies = list[:companiesOnPage]
		data.Next = data.Companies[companiesOnPage-1].Company.ID
	}
	v.render(http.StatusOK, "admin", data)
}

// approve is POST /admin/companies/:id/approve.
func (d *Dashboard) approve(v *visit, o operator) {
	yes := true
	d.change(v, o, accounts.CompanyChange{Approved: &yes}, "flash.approved")
}

// verify is POST /admin/companies/:id/verify.
func (d *Dashboard) verify(v *visit, o operator) {
	yes := true
	d.change(v, o, accounts.CompanyChange{Verified: &yes}, "flash.verified")
}

func (d *Dashboard) change(v *visit, o operator, change accounts.CompanyChange, flash string) {
	company, err := d.rooms.Accounts.SetCompany(v.ctx(), v.id(), change)
	if err != nil {
		v.fail("changing a company", err)
		return
	}
	d.log.Info("a company was changed by an administrator", "user_id", o.User.ID, "company_id", company.ID,
		"approved", company.Approved, "verified", company.Verified)
	v.redirect("/admin", flash)
}

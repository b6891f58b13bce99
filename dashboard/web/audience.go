package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/sms"
)

// Plain is the handler of pages that are the same for every visitor and need no database.
func (s *Site) Plain(page func(*Visit) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		v := s.visit(c)
		if err := page(v); err != nil {
			v.fail(err)
		}
	}
}

// Open is the handler of a page that needs no session. The page has a turn at the database. A page whose form has a
// file reads the file first and takes the turn itself.
func (s *Site) Open(page func(*Visit) error) gin.HandlerFunc {
	return s.Plain(func(v *Visit) error {
		defer v.Leave()
		err := loadSession(v)
		if _, upload := s.opts.Uploads[v.C.Request.Method+" "+v.C.FullPath()]; err == nil && !upload {
			if err = readForm(v); err == nil {
				err = v.TakeTurn()
			}
		}
		if err != nil {
			return err
		}
		return page(v)
	})
}

// SignedIn is the handler of a page for signed-in users whose role has a right, with the second factor if they have
// one. Every page for signed-in users passes here.
func (s *Site) SignedIn(right accounts.Right, page func(*Visit, *people.Session) error) gin.HandlerFunc {
	return s.Open(func(v *Visit) error {
		switch {
		case v.Session == nil:
			return v.RedirectToSignIn("/sign-in")
		case !v.Session.Passed:
			return v.RedirectToSignIn("/sign-in/code")
		case !v.Session.May(right):
			return errRole
		}
		if company := v.Session.Company; company != nil && company.Approved && v.C.Request.Method == http.MethodGet {
			credits, err := s.opts.Balance(v.Ctx(), company.ID)
			if err != nil {
				return err
			}
			v.broke = credits == 0
		}
		return page(v, v.Session)
	})
}

// Tenant is the company of the signed-in user: the only source of a company's id on a customer's page.
type Tenant struct {
	User    people.User
	Company accounts.Company
}

// CompanyID returns the id for look-ups.
func (t Tenant) CompanyID() sms.CompanyID { return sms.CompanyID(t.Company.ID) }

// InCompany is SignedIn for users with a company. Users without one are redirected to create it.
func (s *Site) InCompany(right accounts.Right, page func(*Visit, Tenant) error) gin.HandlerFunc {
	return s.SignedIn(right, func(v *Visit, in *people.Session) error {
		if in.Company == nil {
			return v.Redirect("/company/new", "")
		}
		return page(v, Tenant{in.User, *in.Company})
	})
}

// Admin is the handler of a page for administrators with an open administrator scope. Others get 404.
func (s *Site) Admin(page func(*Visit) error) gin.HandlerFunc {
	return s.SignedIn(accounts.MayUse, func(v *Visit, in *people.Session) error {
		switch {
		case !in.User.Administrator:
			return ErrNotFound
		case !v.AdminOpen():
			return v.Redirect("/admin/enter", "")
		}
		v.administers = true
		return page(v)
	})
}

package dashboard

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/sms"
)

func (d *Dashboard) routes() (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	if err := r.SetTrustedProxies(d.opts.TrustedProxies); err != nil {
		return nil, fmt.Errorf("trusted proxies: %w", err)
	}
	r.Use(d.metrics.observe, d.harden, d.recover, bound, d.sameOrigin)
	r.NoRoute(d.open(func(*visit) error { return errNotFound }))
	r.NoMethod(d.open(func(*visit) error { return failures[http.StatusMethodNotAllowed] }))

	r.GET("/assets/:name", d.plain(d.asset))
	r.GET("/robots.txt", d.plain(d.robots))
	r.POST("/language", d.open(d.chooseLanguage))

	r.GET("/sign-up", d.open(d.signUp))
	r.POST("/sign-up", d.open(d.askSignUp))
	r.GET("/sign-up/:token", d.open(d.finishSignUp))
	r.POST("/sign-up/:token", d.open(d.doSignUp))
	r.GET("/sent", d.open(d.sent))
	r.GET("/sign-in", d.open(d.signIn))
	r.POST("/sign-in", d.open(d.doSignIn))
	r.GET("/sign-in/code", d.open(d.code))
	r.POST("/sign-in/code", d.open(d.doCode))
	r.POST("/sign-out", d.open(d.signOut))
	r.GET("/password", d.open(d.forgotten))
	r.POST("/password", d.open(d.askReset))
	r.GET("/password/:token", d.open(d.reset))
	r.POST("/password/:token", d.open(d.doReset))

	r.GET("/", d.signedIn(d.home))
	r.GET("/account", d.signedIn(d.account))
	r.POST("/account/password", d.signedIn(d.changePassword))
	r.POST("/account/sessions/:id/end", d.signedIn(d.endSession))
	r.POST("/account/sign-out", d.signedIn(d.signOutEverywhere))
	r.GET("/account/two-step", d.signedIn(d.twoStep))
	r.POST("/account/two-step", d.signedIn(d.turnTwoStepOn))
	r.POST("/account/two-step/codes", d.signedIn(d.renewCodes))
	r.POST("/account/two-step/off", d.signedIn(d.turnTwoStepOff))
	r.GET("/company/new", d.signedIn(d.newCompany))
	r.POST("/company/new", d.signedIn(d.createCompany))
	r.GET("/company", d.owner(d.company))
	r.POST("/company/facts", d.owner(d.stateFacts))
	r.GET("/company/document", d.owner(d.document))
	r.POST("/company/document", d.owner(d.uploadDocument))
	r.GET("/keys", d.signedIn(d.keys))
	r.POST("/keys", d.signedIn(d.createKey))
	r.POST("/keys/run", d.signedIn(d.runExample))
	r.POST("/keys/:id/revoke", d.signedIn(d.revokeKey))
	r.GET("/senders", d.owner(d.senders))
	r.POST("/senders", d.owner(d.askSender))
	r.POST("/webhook", d.owner(d.setWebhook))
	r.POST("/webhook/active", d.owner(d.switchWebhook))
	r.POST("/webhook/events", d.owner(d.askEvent))
	r.POST("/webhook/rotate", d.owner(d.rotateSecret))
	r.POST("/webhook/rotate/end", d.owner(d.endRotation))
	r.POST("/webhook/test", d.owner(d.testWebhook))
	r.GET("/deliveries", d.owner(d.deliveries))
	r.POST("/deliveries/recovery", d.owner(d.recoverDeliveries))
	r.GET("/deliveries/of/:id", d.owner(d.delivery))
	r.POST("/deliveries/of/:id/resend", d.owner(d.resend))
	r.GET("/statement", d.owner(d.statement))
	r.GET("/statement/print", d.owner(d.printStatement))
	r.GET("/statement.csv", d.owner(d.exportStatement))
	r.POST("/statement/threshold", d.owner(d.setThreshold))
	r.GET("/campaigns", d.owner(d.campaigns))
	r.POST("/campaigns", d.owner(d.checkCampaign))
	r.GET("/campaigns/drafts/:draft", d.owner(d.unsent(d.checked)))
	r.POST("/campaigns/drafts/:draft/send", d.owner(d.sendCampaign))
	r.POST("/campaigns/drafts/:draft/without", d.owner(d.unsent(d.leaveOut)))
	r.POST("/campaigns/drafts/:draft/drop", d.owner(d.unsent(d.dropCampaign)))
	r.GET("/charts", d.owner(d.charts))
	r.GET("/messages.csv", d.owner(d.exportMessages))

	r.GET("/test-number", d.owner(d.testNumber))
	r.POST("/test-number", d.owner(d.sendCode))
	r.POST("/test-number/verify", d.owner(d.verifyTestNumber))
	r.GET("/first", d.owner(d.first))
	r.POST("/first", d.owner(d.sendFirst))
	r.GET("/first/:id", d.owner(d.firstSent))
	r.GET("/messages", d.owner(d.messages))
	r.GET("/messages/new", d.owner(d.compose))
	r.POST("/messages/new", d.owner(d.doCompose))
	r.GET("/messages/:id", d.owner(d.message))
	r.GET("/batches/:id", d.owner(d.batch))
	r.POST("/batches/:id/cancel", d.owner(d.cancelBatch))
	r.GET("/received", d.owner(d.received))
	r.GET("/received.csv", d.owner(d.exportReceived))
	r.GET("/opt-outs", d.owner(d.optOuts))
	r.POST("/opt-outs", d.owner(d.addOptOut))
	r.POST("/opt-outs/remove", d.owner(d.removeOptOut))
	r.GET("/opt-outs.csv", d.owner(d.exportOptOuts))

	r.GET("/admin/enter", d.signedIn(d.enterAdmin))
	r.POST("/admin/enter", d.signedIn(d.doEnterAdmin))
	r.POST("/admin/leave", d.signedIn(d.leaveAdmin))
	r.GET("/admin", d.admin(d.awaiting))
	r.GET("/admin/search", d.admin(d.search))
	r.GET("/admin/companies", d.admin(d.companies))
	r.GET("/admin/companies/:id", d.admin(d.adminCompany))
	r.POST("/admin/companies/:id/approve", d.admin(d.approve))
	r.POST("/admin/companies/:id/verify", d.admin(d.verify))
	r.POST("/admin/companies/:id/withdraw", d.admin(d.withdraw))
	r.POST("/admin/companies/:id/credits", d.admin(d.addCredits))
	r.GET("/admin/companies/:id/document", d.admin(d.adminDocument))
	r.POST("/admin/companies/:id/document/delete", d.admin(d.deleteDocument))
	r.POST("/admin/keys/:id/revoke", d.admin(d.revokeAnyKey))
	r.GET("/admin/senders", d.admin(d.waitingSenders))
	r.POST("/admin/senders/:id/approve", d.admin(d.approveSender))
	r.POST("/admin/senders/:id/withdraw", d.admin(d.withdrawSender))
	r.GET("/admin/messages/:id", d.admin(d.adminMessage))
	r.GET("/admin/links", d.admin(d.showLinks))
	r.POST("/admin/links/:name/pause", d.admin(d.pauseLink))
	r.POST("/admin/links/:name/resume", d.admin(d.resumeLink))
	r.GET("/admin/receipts", d.admin(d.unmatchedReceipts))
	r.GET("/admin/inbound", d.admin(d.inbound))
	r.GET("/admin/acts", d.admin(d.acts))
	r.GET("/admin/users", d.admin(d.administrators))
	for path, act := range userActs {
		r.POST("/admin/users/:id/"+path, d.admin(d.setUser(act)))
	}
	return r, nil
}

// plain is the handler of what is the same for everybody and asks no database.
func (d *Dashboard) plain(page func(*visit) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		v := d.visit(c)
		if err := page(v); err != nil {
			v.fail(err)
		}
	}
}

// open is the handler of a page that needs no session. The page has a turn at the database; one whose form has a file reads
// it first, and takes the turn itself.
func (d *Dashboard) open(page func(*visit) error) gin.HandlerFunc {
	return d.plain(func(v *visit) error {
		defer v.leave()
		err := v.loadSession()
		if _, upload := uploadRoutes[v.c.Request.Method+" "+v.c.FullPath()]; err == nil && !upload {
			if err = v.readForm(); err == nil {
				err = v.takeTurn()
			}
		}
		if err != nil {
			return err
		}
		return page(v)
	})
}

// signedIn is the handler of a page for signed-in users, with the second factor if they have one.
func (d *Dashboard) signedIn(page func(*visit, *accounts.Session) error) gin.HandlerFunc {
	return d.open(func(v *visit) error {
		switch {
		case v.session == nil:
			return v.redirectToSignIn("/sign-in")
		case !v.session.Passed:
			return v.redirectToSignIn("/sign-in/code")
		}
		if company := v.session.Company; company != nil && company.Approved && v.c.Request.Method == http.MethodGet {
			credits, err := d.rooms.Ledger.Balance(v.ctx(), company.ID)
			if err != nil {
				return err
			}
			v.broke = credits == 0
		}
		return page(v, v.session)
	})
}

// tenant is the company of the signed-in user: the only source of a company's id on a customer's page.
type tenant struct {
	User    accounts.User
	Company accounts.Company
}

// company returns the id for look-ups.
func (t tenant) company() sms.CompanyID { return sms.CompanyID(t.Company.ID) }

// owner is the handler of a page for users with a company. Users without one are redirected to create it.
func (d *Dashboard) owner(page func(*visit, tenant) error) gin.HandlerFunc {
	return d.signedIn(func(v *visit, s *accounts.Session) error {
		if s.Company == nil {
			return v.redirect("/company/new", "")
		}
		return page(v, tenant{s.User, *s.Company})
	})
}

// admin is the handler of a page for administrators with an open administrator scope. For others it responds with 404.
func (d *Dashboard) admin(page func(*visit) error) gin.HandlerFunc {
	return d.signedIn(func(v *visit, s *accounts.Session) error {
		switch {
		case !s.User.Administrator:
			return errNotFound
		case !v.adminOpen():
			return v.redirect("/admin/enter", "")
		}
		v.administers = true
		return page(v)
	})
}

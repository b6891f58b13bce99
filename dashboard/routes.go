package dashboard

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/operations"
	"intumwa/sms"
)

func (d *Dashboard) routes() (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	r.RemoteIPHeaders = []string{"X-Forwarded-For"} // a proxy may forward a client's X-Real-IP
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
	r.POST("/sign-up", d.open(d.requestSignUp))
	r.GET("/sign-up/:token", d.open(d.finishSignUp))
	r.POST("/sign-up/:token", d.open(d.doSignUp))
	r.GET("/sent", d.open(d.sent))
	r.GET("/invitation/:token", d.open(d.invitation))
	r.POST("/invitation/:token", d.open(d.doInvitation))
	r.GET("/sign-in", d.open(d.signIn))
	r.POST("/sign-in", d.open(d.doSignIn))
	r.GET("/sign-in/code", d.open(d.code))
	r.POST("/sign-in/code", d.open(d.doCode))
	r.POST("/sign-out", d.open(d.signOut))
	r.GET("/password", d.open(d.forgotten))
	r.POST("/password", d.open(d.requestReset))
	r.GET("/password/:token", d.open(d.reset))
	r.POST("/password/:token", d.open(d.doReset))

	r.GET("/", d.signedIn(accounts.MayUse, d.home))
	r.GET("/account", d.signedIn(accounts.MayUse, d.account))
	r.POST("/account/password", d.signedIn(accounts.MayUse, d.changePassword))
	r.POST("/account/sessions/:id/end", d.signedIn(accounts.MayUse, d.endSession))
	r.POST("/account/sign-out", d.signedIn(accounts.MayUse, d.signOutEverywhere))
	r.GET("/account/two-step", d.signedIn(accounts.MayUse, d.twoStep))
	r.POST("/account/two-step", d.signedIn(accounts.MayUse, d.turnTwoStepOn))
	r.POST("/account/two-step/codes", d.signedIn(accounts.MayUse, d.renewCodes))
	r.POST("/account/two-step/off", d.signedIn(accounts.MayUse, d.turnTwoStepOff))
	r.GET("/company/new", d.signedIn(accounts.MayManage, d.newCompany))
	r.POST("/company/new", d.signedIn(accounts.MayManage, d.createCompany))
	r.GET("/company", d.inCompany(accounts.MayManage, d.company))
	r.POST("/company/facts", d.inCompany(accounts.MayManage, d.stateFacts))
	r.GET("/company/document", d.inCompany(accounts.MayManage, d.document))
	r.POST("/company/document", d.inCompany(accounts.MayManage, d.uploadDocument))
	r.GET("/people", d.inCompany(accounts.MayManage, d.people))
	r.POST("/people", d.inCompany(accounts.MayManage, d.invite))
	r.POST("/people/:id/role", d.inCompany(accounts.MayManage, d.setRole))
	r.POST("/people/:id/remove", d.inCompany(accounts.MayManage, d.removePerson))
	r.POST("/invitations/:id/withdraw", d.inCompany(accounts.MayManage, d.withdrawInvitation))
	r.GET("/keys", d.signedIn(accounts.MayDevelop, d.keys))
	r.POST("/keys", d.signedIn(accounts.MayDevelop, d.createKey))
	r.POST("/keys/run", d.signedIn(accounts.MayDevelop, d.runExample))
	r.POST("/keys/:id/revoke", d.signedIn(accounts.MayDevelop, d.revokeKey))
	if d.opts.SMPP {
		r.GET("/smpp", d.inCompany(accounts.MayDevelop, d.smpp))
		r.POST("/smpp", d.inCompany(accounts.MayDevelop, d.createSMPPKey))
		r.POST("/smpp/:id/revoke", d.inCompany(accounts.MayDevelop, d.revokeSMPPKey))
		r.POST("/smpp/:id/unbind", d.inCompany(accounts.MayDevelop, d.unbind))
		r.GET("/admin/smpp", d.admin(d.adminSMPP))
		r.POST("/admin/smpp/:id", d.admin(d.setSMPPKey))
		r.POST("/admin/smpp/:id/unbind", d.admin(d.unbindAny))
	}
	r.GET("/senders", d.inCompany(accounts.MayRead, d.senders))
	r.POST("/senders", d.inCompany(accounts.MayManage, d.requestSender))
	r.POST("/webhook", d.inCompany(accounts.MayDevelop, d.setWebhook))
	r.POST("/webhook/active", d.inCompany(accounts.MayDevelop, d.switchWebhook))
	r.POST("/webhook/events", d.inCompany(accounts.MayDevelop, d.setEvent))
	r.POST("/webhook/pulled", d.inCompany(accounts.MayDevelop, d.setPulled))
	r.POST("/webhook/rotate", d.inCompany(accounts.MayDevelop, d.rotateSecret))
	r.POST("/webhook/rotate/end", d.inCompany(accounts.MayDevelop, d.endRotation))
	r.POST("/webhook/test", d.inCompany(accounts.MayDevelop, d.testWebhook))
	r.GET("/deliveries", d.inCompany(accounts.MayDevelop, d.deliveries))
	r.POST("/deliveries/recovery", d.inCompany(accounts.MayDevelop, d.recoverDeliveries))
	r.GET("/deliveries/of/:id", d.inCompany(accounts.MayDevelop, d.delivery))
	r.POST("/deliveries/of/:id/resend", d.inCompany(accounts.MayDevelop, d.resend))
	r.GET("/statement", d.inCompany(accounts.MayPay, d.statement))
	r.GET("/statement/print", d.inCompany(accounts.MayPay, d.printStatement))
	r.GET("/statement/month", d.inCompany(accounts.MayPay, d.monthly))
	r.GET("/statement/month.csv", d.inCompany(accounts.MayPay, d.exportMonth))
	r.GET("/statement.csv", d.inCompany(accounts.MayPay, d.exportStatement))
	r.POST("/statement/threshold", d.inCompany(accounts.MayPay, d.setThreshold))
	r.GET("/campaigns", d.inCompany(accounts.MayRead, d.campaigns))
	r.POST("/campaigns", d.inCompany(accounts.MaySend, d.checkCampaign))
	r.GET("/campaigns/drafts/:draft", d.inCompany(accounts.MaySend, d.unsent(d.checked)))
	r.GET("/campaigns/drafts/:draft/lines.csv", d.inCompany(accounts.MaySend, d.unsent(d.exportLines)))
	r.POST("/campaigns/drafts/:draft/send", d.inCompany(accounts.MaySend, d.unsent(d.sendCampaign)))
	r.POST("/campaigns/drafts/:draft/without", d.inCompany(accounts.MaySend, d.unsent(d.leaveOut)))
	r.POST("/campaigns/drafts/:draft/drop", d.inCompany(accounts.MaySend, d.unsent(d.dropCampaign)))
	r.GET("/charts", d.inCompany(accounts.MayUse, d.charts))
	r.GET("/quality", d.inCompany(accounts.MayRead, d.quality))
	r.GET("/quality.csv", d.inCompany(accounts.MayRead, d.exportQuality))
	r.GET("/messages.csv", d.inCompany(accounts.MayRead, d.exportMessages))

	r.GET("/test-number", d.inCompany(accounts.MayDevelop, d.testNumber))
	r.POST("/test-number", d.inCompany(accounts.MayDevelop, d.sendCode))
	r.POST("/test-number/verify", d.inCompany(accounts.MayDevelop, d.verifyTestNumber))
	r.GET("/first", d.inCompany(accounts.MayDevelop, d.first))
	r.POST("/first", d.inCompany(accounts.MayDevelop, d.sendFirst))
	r.GET("/first/:id", d.inCompany(accounts.MayDevelop, d.firstSent))
	r.GET("/messages", d.inCompany(accounts.MayRead, d.messages))
	r.GET("/messages/exports", d.inCompany(accounts.MayRead, d.exports))
	r.POST("/messages/exports", d.inCompany(accounts.MayRead, d.askExport))
	r.GET("/messages/exports/:export/messages.csv", d.inCompany(accounts.MayRead, d.exportFile))
	r.GET("/messages/new", d.inCompany(accounts.MaySend, d.compose))
	r.POST("/messages/new", d.inCompany(accounts.MaySend, d.doCompose))
	r.GET("/messages/:id", d.inCompany(accounts.MayRead, d.message))
	r.GET("/batches/:id", d.inCompany(accounts.MayRead, d.batch))
	r.GET("/batches/:id/left-out.csv", d.inCompany(accounts.MaySend, d.exportLeftOut))
	r.POST("/batches/:id/cancel", d.inCompany(accounts.MaySend, d.cancelBatch))
	r.POST("/batches/:id/continue", d.inCompany(accounts.MaySend, d.continueCampaign))
	r.GET("/received", d.inCompany(accounts.MayRead, d.received))
	r.GET("/received.csv", d.inCompany(accounts.MayRead, d.exportReceived))
	r.GET("/opt-outs", d.inCompany(accounts.MayRead, d.optOuts))
	r.POST("/opt-outs", d.inCompany(accounts.MaySend, d.addOptOut))
	r.POST("/opt-outs/remove", d.inCompany(accounts.MaySend, d.removeOptOut))
	r.GET("/opt-outs.csv", d.inCompany(accounts.MayRead, d.exportOptOuts))

	r.GET("/verifications", d.inCompany(accounts.MayRead, d.verifications))
	r.POST("/verifications", d.inCompany(accounts.MaySend, d.tryVerification))
	r.POST("/verifications/:id/check", d.inCompany(accounts.MaySend, d.checkVerification))
	r.POST("/verifications/text", d.inCompany(accounts.MayManage, d.askForText))

	r.GET("/admin/enter", d.signedIn(accounts.MayUse, d.enterAdmin))
	r.POST("/admin/enter", d.signedIn(accounts.MayUse, d.doEnterAdmin))
	r.POST("/admin/leave", d.signedIn(accounts.MayUse, d.leaveAdmin))
	r.GET("/admin", d.admin(d.awaiting))
	r.GET("/admin/search", d.admin(d.search))
	r.GET("/admin/companies", d.admin(d.companies))
	r.GET("/admin/companies/:id", d.admin(d.adminCompany))
	r.POST("/admin/companies/:id/approve", d.admin(d.approve))
	r.POST("/admin/companies/:id/verify", d.admin(d.verify))
	r.POST("/admin/companies/:id/withdraw", d.admin(d.withdraw))
	r.POST("/admin/companies/:id/credits", d.admin(d.addCredits))
	r.GET("/admin/companies/:id/month", d.admin(d.adminMonth))
	r.GET("/admin/companies/:id/month.csv", d.admin(d.exportAdminMonth))
	r.GET("/admin/money", d.admin(d.money))
	r.GET("/admin/money.csv", d.admin(d.exportDifference))
	r.POST("/admin/prices", d.admin(d.setPrice))
	r.POST("/admin/tariffs", d.admin(d.setTariff))
	r.GET("/admin/companies/:id/document", d.admin(d.adminDocument))
	r.POST("/admin/companies/:id/document/delete", d.admin(d.deleteDocument))
	r.GET("/admin/companies/:id/exports", d.admin(d.adminExports))
	r.POST("/admin/companies/:id/exports", d.admin(d.adminAskExport))
	r.GET("/admin/companies/:id/exports/:export/messages.csv", d.admin(d.adminExportFile))
	r.POST("/admin/keys/:id/revoke", d.admin(d.revokeAnyKey))
	r.GET("/admin/senders", d.admin(d.waitingSenders))
	r.GET("/admin/senders/late", d.admin(d.lateRegistrations))
	r.GET("/admin/senders/:id", d.admin(d.adminSender))
	r.POST("/admin/senders/:id/carriers", d.admin(d.setRegistration))
	r.GET("/admin/senders/:id/letter", d.admin(d.registrationLetter))
	r.GET("/admin/registrations/:id/document", d.admin(d.registrationDocument))
	r.POST("/admin/registrations/:id/document", d.admin(d.uploadRegistrationDocument))
	r.POST("/admin/senders/:id/approve", d.admin(d.approveSender))
	r.POST("/admin/senders/:id/withdraw", d.admin(d.withdrawSender))
	r.GET("/admin/verifications", d.admin(d.adminVerifications))
	r.POST("/admin/verifications/:id/approve", d.admin(d.approveText))
	r.POST("/admin/verifications/:id/refuse", d.admin(d.refuseText))
	r.GET("/admin/messages/:id", d.admin(d.adminMessage))
	r.GET("/admin/links", d.admin(d.showLinks))
	r.POST("/admin/links/:name/pause", d.admin(d.pauseLink))
	r.POST("/admin/links/:name/resume", d.admin(d.resumeLink))
	r.GET("/admin/quality", d.admin(d.adminQuality))
	r.GET("/admin/quality.csv", d.admin(d.exportAdminQuality))
	r.GET("/admin/receipts", d.admin(d.unmatchedReceipts))
	r.GET("/admin/inbound", d.admin(d.inbound))
	r.GET("/admin/acts", d.admin(d.acts))
	r.GET("/admin/users", d.admin(d.administrators))
	for change := range operations.UserChanges {
		r.POST("/admin/users/:id/"+change, d.admin(d.setUser(change)))
	}
	return r, nil
}

// plain is the handler of pages that are the same for every visitor and need no database.
func (d *Dashboard) plain(page func(*visit) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		v := d.visit(c)
		if err := page(v); err != nil {
			v.fail(err)
		}
	}
}

// open is the handler of a page that needs no session. The page has a turn at the database. A page whose form has a
// file reads the file first and takes the turn itself.
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

// signedIn is the handler of a page for signed-in users whose role has a right, with the second factor if they have
// one. Every page for signed-in users passes here.
func (d *Dashboard) signedIn(right accounts.Right, page func(*visit, *people.Session) error) gin.HandlerFunc {
	return d.open(func(v *visit) error {
		switch {
		case v.session == nil:
			return v.redirectToSignIn("/sign-in")
		case !v.session.Passed:
			return v.redirectToSignIn("/sign-in/code")
		case !v.session.May(right):
			return errRole
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
	User    people.User
	Company accounts.Company
}

// company returns the id for look-ups.
func (t tenant) company() sms.CompanyID { return sms.CompanyID(t.Company.ID) }

// inCompany is signedIn for users with a company. Users without one are redirected to create it.
func (d *Dashboard) inCompany(right accounts.Right, page func(*visit, tenant) error) gin.HandlerFunc {
	return d.signedIn(right, func(v *visit, s *people.Session) error {
		if s.Company == nil {
			return v.redirect("/company/new", "")
		}
		return page(v, tenant{s.User, *s.Company})
	})
}

// admin is the handler of a page for administrators with an open administrator scope. Others get 404.
func (d *Dashboard) admin(page func(*visit) error) gin.HandlerFunc {
	return d.signedIn(accounts.MayUse, func(v *visit, s *people.Session) error {
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

package dashboard

import (
	"slices"
	"strings"

	"intumwa/accounts"
	"intumwa/dashboard/web"
)

// nav returns the side navigation of the signed-in user. Administrators without a company have that of the
// administration, others on its pages.
func (d *Dashboard) nav(v *web.Visit) []web.NavGroup {
	path := v.C.Request.URL.Path
	if v.Session.User.Administrator && (v.Session.Company == nil || path == "/admin" ||
		strings.HasPrefix(path, "/admin/")) {
		return d.adminNav(v)
	}
	if strings.HasPrefix(path, "/batches/") { // batches belong to the messages item
		path = "/messages"
	}
	var groups []web.NavGroup
	group := func(title string) { groups = append(groups, web.NavGroup{Title: title}) }
	item := func(right accounts.Right, to, text, icon string) {
		if here := path == to || to != "/" && strings.HasPrefix(path, to+"/"); v.Session.May(right) && to != "" {
			last := &groups[len(groups)-1]
			last.Items = append(last.Items, web.NavItem{Path: to, Text: v.Lang.T(text), Icon: icon, Here: here})
		}
	}
	group("")
	item(accounts.MayUse, "/", "nav.home", "home")
	group(v.Lang.T("nav.send"))
	item(accounts.MayRead, "/messages", "nav.messages", "message")
	item(accounts.MayRead, "/campaigns", "nav.campaigns", "campaign")
	item(accounts.MayRead, "/contacts", "nav.contacts", "contact")
	item(accounts.MayRead, "/conversations", "nav.conversations", "conversation")
	item(accounts.MayRead, "/received", "nav.received", "received")
	item(accounts.MayRead, "/opt-outs", "nav.optouts", "optout")
	item(accounts.MayRead, "/verifications", "nav.verifications", "verification")
	item(accounts.MayUse, "/charts", "nav.charts", "chart")
	item(accounts.MayRead, "/quality", "nav.quality", "quality")
	group(v.Lang.T("nav.develop"))
	item(accounts.MayDevelop, "/keys", "nav.keys", "key")
	if d.opts.SMPP {
		item(accounts.MayDevelop, "/smpp", "nav.smpp", "smpp")
	}
	item(accounts.MayDevelop, "/deliveries", "nav.deliveries", "hook")
	item(accounts.MayDevelop, "/test-number", "nav.testnumber", "phone")
	item(accounts.MayDevelop, d.opts.DocsURL, "nav.docs", "docs")
	group(v.Lang.T("nav.business"))
	item(accounts.MayManage, "/company", "nav.company", "company")
	if v.Session.Company != nil {
		item(accounts.MayManage, "/people", "nav.people", "people")
	}
	item(accounts.MayRead, "/senders", "nav.senders", "sender")
	item(accounts.MayPay, "/orders", "nav.orders", "done")
	item(accounts.MayPay, "/statement", "nav.statement", "statement")
	item(accounts.MayUse, "/account", "nav.account", "account")
	if d.opts.DocsURL != "" {
		item(accounts.MayUse, d.opts.DocsURL+"/guide", "nav.guide", "docs")
	}
	if v.Session.User.Administrator {
		group("")
		item(accounts.MayUse, "/admin", "nav.admin", "admin")
	}
	return slices.DeleteFunc(groups, func(g web.NavGroup) bool { return len(g.Items) == 0 })
}

// adminNav returns the side navigation of the administration.
func (d *Dashboard) adminNav(v *web.Visit) []web.NavGroup {
	route := v.C.FullPath()
	group := func(title string, of ...web.NavItem) web.NavGroup {
		for i := range of {
			of[i].Text = v.Lang.T(of[i].Text)
			of[i].Here = route == of[i].Path || of[i].Path != "/admin" && strings.HasPrefix(route, of[i].Path+"/")
		}
		if title != "" {
			title = v.Lang.T(title)
		}
		return web.NavGroup{Title: title, Items: of}
	}
	customers := group("nav.customers", web.NavItem{Path: "/admin", Text: "tab.waiting", Icon: "done"},
		web.NavItem{Path: "/admin/companies", Text: "tab.companies", Icon: "company"},
		web.NavItem{Path: "/admin/senders", Text: "tab.senders", Icon: "sender"},
		web.NavItem{Path: "/admin/verifications", Text: "tab.verifications", Icon: "verification"})
	if d.opts.SMPP {
		customers.Items = append(customers.Items, group(
			"", web.NavItem{Path: "/admin/smpp", Text: "tab.smpp", Icon: "smpp"}).Items...)
	}
	money := group("tab.money", web.NavItem{Path: "/admin/orders", Text: "nav.orders", Icon: "done"},
		web.NavItem{Path: "/admin/invoices", Text: "nav.invoices", Icon: "docs"},
		web.NavItem{Path: "/admin/money", Text: "money.title", Icon: "statement"})
	if d.deps.TaxOffice != nil {
		money.Items = append(money.Items,
			group("", web.NavItem{Path: "/admin/ebms", Text: "nav.ebms", Icon: "docs"}).Items...)
	}
	return []web.NavGroup{
		group("", web.NavItem{Path: "/", Text: "nav.home", Icon: "home"}),
		group("nav.carriers", web.NavItem{Path: "/admin/links", Text: "tab.links", Icon: "hook"},
			web.NavItem{Path: "/admin/quality", Text: "nav.quality", Icon: "quality"},
			web.NavItem{Path: "/admin/receipts", Text: "tab.receipts", Icon: "message"},
			web.NavItem{Path: "/admin/inbound", Text: "tab.inbound", Icon: "received"}),
		customers,
		money,
		group("nav.security", web.NavItem{Path: "/admin/users", Text: "tab.users", Icon: "people"},
			web.NavItem{Path: "/admin/acts", Text: "tab.acts", Icon: "docs"}),
		group("", web.NavItem{Path: "/account", Text: "nav.account", Icon: "account"}),
	}
}

package dashboard

import (
	"slices"
	"strings"

	"intumwa/accounts"
)

// navItem is a line of the side navigation.
type navItem struct {
	Path, Text, Icon string
	Here             bool
}

// navGroup is a part of the side navigation.
type navGroup struct {
	Title string // empty: none
	Items []navItem
}

// nav returns the side navigation of the signed-in user. Administrators without a company have that of the
// administration, others on its pages.
func (v *visit) nav() []navGroup {
	path := v.c.Request.URL.Path
	if v.session.User.Administrator && (v.session.Company == nil || path == "/admin" || strings.HasPrefix(path, "/admin/")) {
		return v.adminNav()
	}
	if strings.HasPrefix(path, "/batches/") { // batches belong to the messages item
		path = "/messages"
	}
	var groups []navGroup
	group := func(title string) { groups = append(groups, navGroup{Title: title}) }
	item := func(right accounts.Right, to, text, icon string) {
		if here := path == to || to != "/" && strings.HasPrefix(path, to+"/"); v.session.May(right) && to != "" {
			last := &groups[len(groups)-1]
			last.Items = append(last.Items, navItem{to, v.lang.T(text), icon, here})
		}
	}
	group("")
	item(accounts.MayUse, "/", "nav.home", "home")
	group(v.lang.T("nav.send"))
	item(accounts.MayRead, "/messages", "nav.messages", "message")
	item(accounts.MayRead, "/campaigns", "nav.campaigns", "campaign")
	item(accounts.MayRead, "/received", "nav.received", "received")
	item(accounts.MayRead, "/opt-outs", "nav.optouts", "optout")
	item(accounts.MayRead, "/verifications", "nav.verifications", "verification")
	item(accounts.MayUse, "/charts", "nav.charts", "chart")
	item(accounts.MayRead, "/quality", "nav.quality", "quality")
	group(v.lang.T("nav.develop"))
	item(accounts.MayDevelop, "/keys", "nav.keys", "key")
	if v.d.opts.SMPP {
		item(accounts.MayDevelop, "/smpp", "nav.smpp", "smpp")
	}
	item(accounts.MayDevelop, "/deliveries", "nav.deliveries", "hook")
	item(accounts.MayDevelop, "/test-number", "nav.testnumber", "phone")
	item(accounts.MayDevelop, v.d.opts.DocsURL, "nav.docs", "docs")
	group(v.lang.T("nav.business"))
	item(accounts.MayManage, "/company", "nav.company", "company")
	if v.session.Company != nil {
		item(accounts.MayManage, "/people", "nav.people", "people")
	}
	item(accounts.MayRead, "/senders", "nav.senders", "sender")
	item(accounts.MayPay, "/statement", "nav.statement", "statement")
	item(accounts.MayUse, "/account", "nav.account", "account")
	if v.d.opts.DocsURL != "" {
		item(accounts.MayUse, v.d.opts.DocsURL+"/guide", "nav.guide", "docs")
	}
	if v.session.User.Administrator {
		group("")
		item(accounts.MayUse, "/admin", "nav.admin", "admin")
	}
	return slices.DeleteFunc(groups, func(g navGroup) bool { return len(g.Items) == 0 })
}

// adminNav returns the side navigation of the administration.
func (v *visit) adminNav() []navGroup {
	route := v.c.FullPath()
	group := func(title string, of ...navItem) navGroup {
		for i := range of {
			of[i].Text = v.lang.T(of[i].Text)
			of[i].Here = route == of[i].Path || of[i].Path != "/admin" && strings.HasPrefix(route, of[i].Path+"/")
		}
		if title != "" {
			title = v.lang.T(title)
		}
		return navGroup{title, of}
	}
	customers := group("nav.customers", navItem{Path: "/admin", Text: "tab.waiting", Icon: "done"}, navItem{Path: "/admin/companies", Text: "tab.companies", Icon: "company"},
		navItem{Path: "/admin/senders", Text: "tab.senders", Icon: "sender"}, navItem{Path: "/admin/verifications", Text: "tab.verifications", Icon: "verification"})
	if v.d.opts.SMPP {
		customers.Items = append(customers.Items, group("", navItem{Path: "/admin/smpp", Text: "tab.smpp", Icon: "smpp"}).Items...)
	}
	return []navGroup{
		group("", navItem{Path: "/", Text: "nav.home", Icon: "home"}),
		group("nav.carriers", navItem{Path: "/admin/links", Text: "tab.links", Icon: "hook"}, navItem{Path: "/admin/quality", Text: "nav.quality", Icon: "quality"},
			navItem{Path: "/admin/receipts", Text: "tab.receipts", Icon: "message"}, navItem{Path: "/admin/inbound", Text: "tab.inbound", Icon: "received"}),
		customers,
		group("tab.money", navItem{Path: "/admin/money", Text: "money.title", Icon: "statement"}),
		group("nav.security", navItem{Path: "/admin/users", Text: "tab.users", Icon: "people"}, navItem{Path: "/admin/acts", Text: "tab.acts", Icon: "docs"}),
		group("", navItem{Path: "/account", Text: "nav.account", Icon: "account"}),
	}
}

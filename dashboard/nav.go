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

// nav returns the side navigation of the signed-in user.
func (v *visit) nav() []navGroup {
	path := v.c.Request.URL.Path
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

// AdminTabs returns the tabs of the administration.
func (p *view) AdminTabs() []navItem {
	tabs := []navItem{
		{Path: "/admin/links", Text: p.T("tab.links")},
		{Path: "/admin", Text: p.T("tab.waiting")},
		{Path: "/admin/senders", Text: p.T("tab.senders")},
		{Path: "/admin/companies", Text: p.T("tab.companies")},
		{Path: "/admin/verifications", Text: p.T("tab.verifications")},
		{Path: "/admin/money", Text: p.T("tab.money")},
		{Path: "/admin/quality", Text: p.T("nav.quality")},
		{Path: "/admin/receipts", Text: p.T("tab.receipts")},
		{Path: "/admin/inbound", Text: p.T("tab.inbound")},
		{Path: "/admin/users", Text: p.T("tab.users")},
		{Path: "/admin/acts", Text: p.T("tab.acts")},
	}
	if p.SMPP {
		tabs = slices.Insert(tabs, 4, navItem{Path: "/admin/smpp", Text: p.T("tab.smpp")})
	}
	for i := range tabs {
		tabs[i].Here = p.Route == tabs[i].Path || tabs[i].Path != "/admin" && strings.HasPrefix(p.Route, tabs[i].Path+"/")
	}
	return tabs
}

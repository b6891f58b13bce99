package dashboard

import "strings"

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
	if strings.HasPrefix(path, "/batches/") { // batches belong to the item of messages
		path = "/messages"
	}
	item := func(to, text, icon string) navItem {
		return navItem{to, v.lang.T(text), icon, path == to || to != "/" && strings.HasPrefix(path, to+"/")}
	}
	develop := []navItem{item("/keys", "nav.keys", "key"), item("/deliveries", "nav.deliveries", "hook"), item("/test-number", "nav.testnumber", "phone")}
	if v.d.opts.DocsURL != "" {
		develop = append(develop, item(v.d.opts.DocsURL, "nav.docs", "docs"))
	}
	groups := []navGroup{
		{"", []navItem{item("/", "nav.home", "home")}},
		{v.lang.T("nav.send"), []navItem{item("/messages", "nav.messages", "message"), item("/campaigns", "nav.campaigns", "campaign"),
			item("/received", "nav.received", "received"), item("/opt-outs", "nav.optouts", "optout"), item("/charts", "nav.charts", "chart")}},
		{v.lang.T("nav.develop"), develop},
		{v.lang.T("nav.business"), []navItem{item("/company", "nav.company", "company"), item("/senders", "nav.senders", "sender"),
			item("/statement", "nav.statement", "statement"), item("/account", "nav.account", "account")}},
	}
	if v.session.User.Administrator {
		groups = append(groups, navGroup{"", []navItem{item("/admin", "nav.admin", "admin")}})
	}
	return groups
}

// AdminTabs returns the tabs of the administration.
func (p *view) AdminTabs() []navItem {
	tabs := []navItem{
		{Path: "/admin/links", Text: p.T("tab.links")},
		{Path: "/admin", Text: p.T("tab.waiting")},
		{Path: "/admin/senders", Text: p.T("tab.senders")},
		{Path: "/admin/companies", Text: p.T("tab.companies")},
		{Path: "/admin/receipts", Text: p.T("tab.receipts")},
		{Path: "/admin/inbound", Text: p.T("tab.inbound")},
		{Path: "/admin/users", Text: p.T("tab.users")},
		{Path: "/admin/acts", Text: p.T("tab.acts")},
	}
	for i := range tabs {
		tabs[i].Here = p.Route == tabs[i].Path || tabs[i].Path != "/admin" && strings.HasPrefix(p.Route, tabs[i].Path+"/")
	}
	return tabs
}

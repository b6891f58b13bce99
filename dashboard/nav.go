package dashboard

import "strings"

// navItem is a line of the side navigation.
type navItem struct {
	Path, Text, Icon string
	Here             bool
}

// nav returns the side navigation of the signed-in user.
func (v *visit) nav() []navItem {
	items := []navItem{
		{Path: "/", Text: v.lang.T("nav.home"), Icon: "home"},
		{Path: "/messages", Text: v.lang.T("nav.messages"), Icon: "message"},
		{Path: "/received", Text: v.lang.T("nav.received"), Icon: "received"},
		{Path: "/test-number", Text: v.lang.T("nav.testnumber"), Icon: "phone"},
		{Path: "/campaigns", Text: v.lang.T("nav.campaigns"), Icon: "campaign"},
		{Path: "/opt-outs", Text: v.lang.T("nav.optouts"), Icon: "optout"},
		{Path: "/charts", Text: v.lang.T("nav.charts"), Icon: "chart"},
		{Path: "/statement", Text: v.lang.T("nav.statement"), Icon: "statement"},
		{Path: "/keys", Text: v.lang.T("nav.keys"), Icon: "key"},
		{Path: "/senders", Text: v.lang.T("nav.senders"), Icon: "sender"},
		{Path: "/deliveries", Text: v.lang.T("nav.deliveries"), Icon: "hook"},
		{Path: "/company", Text: v.lang.T("nav.company"), Icon: "company"},
		{Path: "/account", Text: v.lang.T("nav.account"), Icon: "account"},
	}
	if v.session.User.Administrator {
		items = append(items, navItem{Path: "/admin", Text: v.lang.T("nav.admin"), Icon: "admin"})
	}
	for i := range items {
		path := v.c.Request.URL.Path
		if strings.HasPrefix(path, "/batches/") { // batches belong to the item of messages
			path = "/messages"
		}
		items[i].Here = path == items[i].Path || items[i].Path != "/" && strings.HasPrefix(path, items[i].Path+"/")
	}
	return items
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

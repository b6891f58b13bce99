package administration

import (
	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/messages/receipts"
)

// UnmatchedReceipts is GET /admin/receipts: the receipts that match no message.
func (ps *Pages) UnmatchedReceipts(v *web.Visit) error {
	rows, err := web.List(v, "/admin/receipts", web.RowsOnPage,
		func(before int64, limit int) ([]receipts.InboxReceipt, int64, error) {
			return receipts.Inbox(v.Ctx(), ps.Deps.Pool, before, limit)
		})
	return v.Page(err, "adminreceipts", rows)
}

// Inbound is GET /admin/inbound: MO messages.
func (ps *Pages) Inbound(v *web.Visit) error {
	store := handsets.New(ps.Deps.Pool)
	rows, err := web.List(v, "/admin/inbound", web.RowsOnPage, func(before int64, limit int) ([]handsets.Inbound, int64,
		error) {
		found, err := store.Inbounds(v.Ctx(), before, limit+1)
		return web.ByID(limit, func(m *handsets.Inbound) int64 { return m.ID }, found, err)
	})
	return v.Page(err, "admininbound", rows)
}

// became returns the outcome of an MO message.
func became(p *web.View, o handsets.Outcome) string { return p.T(outcomeTexts[o]) }

var outcomeTexts = map[handsets.Outcome]string{
	"": "inbound.new", handsets.Routed: "inbound.routed", handsets.Unrouted: "inbound.unrouted",
	handsets.Waiting:    "inbound.waiting",
	handsets.Incomplete: "inbound.incomplete", handsets.Duplicate: "inbound.duplicate",
	handsets.TooLong: "inbound.toolong",
}

package dashboard

import (
	"intumwa/inbound/handsets"
	"intumwa/messages/receipts"
)

// unmatchedReceipts is GET /admin/receipts: the receipts that match no message.
func (d *Dashboard) unmatchedReceipts(v *visit) error {
	rows, err := list(v, "/admin/receipts", rowsOnPage, func(before int64, limit int) ([]receipts.InboxReceipt, int64, error) {
		return receipts.Inbox(v.ctx(), d.rooms.Pool, before, limit)
	})
	return v.page(err, "adminreceipts", rows)
}

// inbound is GET /admin/inbound: MO messages.
func (d *Dashboard) inbound(v *visit) error {
	store := handsets.New(d.rooms.Pool)
	rows, err := list(v, "/admin/inbound", rowsOnPage, func(before int64, limit int) ([]handsets.Inbound, int64, error) {
		found, err := store.Inbounds(v.ctx(), before, limit+1)
		return byID(limit, func(m *handsets.Inbound) int64 { return m.ID }, found, err)
	})
	return v.page(err, "admininbound", rows)
}

// Became returns the outcome of an MO message.
func (p *view) Became(o handsets.Outcome) string { return p.T(outcomeTexts[o]) }

var outcomeTexts = map[handsets.Outcome]string{
	"": "inbound.new", handsets.Routed: "inbound.routed", handsets.Unrouted: "inbound.unrouted", handsets.Waiting: "inbound.waiting",
	handsets.Incomplete: "inbound.incomplete", handsets.Duplicate: "inbound.duplicate", handsets.TooLong: "inbound.toolong",
}

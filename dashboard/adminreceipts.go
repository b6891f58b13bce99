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

// inboundRow is a message from a handset as shown on a page.
type inboundRow struct{ handsets.Inbound }

// Text returns the text; empty when data_coding is not a text that can be decoded.
func (r inboundRow) Text() string { return textIn(r.Body) }

// Became returns the key of the text for what became of it.
func (r inboundRow) Became() string { return outcomeTexts[r.Outcome] }

var outcomeTexts = map[handsets.Outcome]string{
	"": "inbound.new", handsets.Routed: "inbound.routed", handsets.Unrouted: "inbound.unrouted", handsets.Waiting: "inbound.waiting",
	handsets.Incomplete: "inbound.incomplete", handsets.Duplicate: "inbound.duplicate", handsets.TooLong: "inbound.toolong",
}

// Length returns the length in octets, including the user data header.
func (r inboundRow) Length() int { return len(r.Octets) }

// inbound is GET /admin/inbound: the messages from handsets.
func (d *Dashboard) inbound(v *visit) error {
	store := handsets.New(d.rooms.Pool)
	rows, err := list(v, "/admin/inbound", rowsOnPage, func(before int64, limit int) (rows []inboundRow, next int64, err error) {
		found, err := store.Inbounds(v.ctx(), before, limit+1)
		found, next, err = byID(limit, func(m *handsets.Inbound) int64 { return m.ID }, found, err)
		for _, m := range found {
			rows = append(rows, inboundRow{m})
		}
		return rows, next, err
	})
	return v.page(err, "admininbound", rows)
}

package dashboard

import (
	"net/http"

	"intumwa/inbound/handsets"
	"intumwa/messages/receipts"
)

const receiptsOnPage = 50

type unmatchedReceiptsPage struct {
	Receipts []receipts.InboxReceipt
	Next     string
}

// unmatchedReceipts is GET /admin/receipts: the receipts that match no message.
func (d *Dashboard) unmatchedReceipts(v *visit, _ operator) {
	var data unmatchedReceiptsPage
	var next int64
	var err error
	data.Receipts, next, err = receipts.Inbox(v.ctx(), d.rooms.Pool, v.after("before"), receiptsOnPage)
	if err != nil {
		v.handleError("listing receipts", err)
		return
	}
	data.Next = v.newForm().older("/admin/receipts", next)
	v.render(http.StatusOK, "adminreceipts", data)
}

// inboundRow is a message from a handset as shown on a page.
type inboundRow struct{ handsets.Inbound }

// Text returns the text; empty when data_coding is not a text that can be decoded.
func (r inboundRow) Text() string {
	if r.Body == nil {
		return ""
	}
	return *r.Body
}

// Became returns the key of the text for what became of it.
func (r inboundRow) Became() string { return outcomeTexts[r.Outcome] }

var outcomeTexts = map[handsets.Outcome]string{
	"": "inbound.new", handsets.Routed: "inbound.routed", handsets.Unrouted: "inbound.unrouted", handsets.Waiting: "inbound.waiting",
	handsets.Incomplete: "inbound.incomplete", handsets.Duplicate: "inbound.duplicate", handsets.TooLong: "inbound.toolong",
}

// Length returns the length in octets, including the user data header.
func (r inboundRow) Length() int { return len(r.Octets) }

type inboundPage struct {
	Messages []inboundRow
	Next     string
}

// inbound is GET /admin/inbound: the messages from handsets.
func (d *Dashboard) inbound(v *visit, _ operator) {
	list, err := handsets.New(d.rooms.Pool).Inbounds(v.ctx(), v.after("before"), receiptsOnPage+1)
	if err != nil {
		v.handleError("listing messages from handsets", err)
		return
	}
	var data inboundPage
	list, more := cut(list, receiptsOnPage)
	if more {
		data.Next = v.newForm().older("/admin/inbound", list[receiptsOnPage-1].ID)
	}
	for _, m := range list {
		data.Messages = append(data.Messages, inboundRow{m})
	}
	v.render(http.StatusOK, "admininbound", data)
}

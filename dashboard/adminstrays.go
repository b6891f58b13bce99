package dashboard

import (
	"net/http"
	"strconv"

	"intumwa/messages"
)

const straysOnPage = 50

type straysPage struct {
	Receipts []messages.UnmatchedReceipt
	Next     string
}

// strays is GET /admin/receipts: those that no message was found for.
func (d *Dashboard) strays(v *visit, _ operator) {
	var data straysPage
	var next int64
	var err error
	data.Receipts, next, err = messages.New(d.rooms.Pool).UnmatchedReceipts(v.ctx(), v.after("before"), straysOnPage)
	if err != nil {
		v.fail("listing receipts", err)
		return
	}
	if next > 0 {
		data.Next = "/admin/receipts?before=" + strconv.FormatInt(next, 10)
	}
	v.render(http.StatusOK, "adminreceipts", data)
}

// handsetRow is a handset's message as a line of a page.
type handsetRow struct{ messages.Inbound }

// Text is what it says; empty when it is not text in a coding that is read.
func (r handsetRow) Text() string {
	if r.Body == nil {
		return ""
	}
	return *r.Body
}

// Length is in octets, header included.
func (r handsetRow) Length() int { return len(r.Octets) }

type handsetsPage struct {
	Messages []handsetRow
	Next     string
}

// handsets is GET /admin/inbound: what handsets sent us.
func (d *Dashboard) handsets(v *visit, _ operator) {
	list, err := messages.New(d.rooms.Pool).Inbounds(v.ctx(), v.after("before"), straysOnPage+1)
	if err != nil {
		v.fail("listing messages from handsets", err)
		return
	}
	var data handsetsPage
	if len(list) > straysOnPage {
		list = list[:straysOnPage]
		data.Next = "/admin/inbound?before=" + strconv.FormatInt(list[straysOnPage-1].ID, 10)
	}
	for _, m := range list {
		data.Messages = append(data.Messages, handsetRow{m})
	}
	v.render(http.StatusOK, "admininbound", data)
}

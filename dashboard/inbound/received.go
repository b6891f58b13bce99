package inbound

import (
	"errors"
	"strconv"
	"strings"

	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/texts"
)

// Received is GET /received: MO messages to the company.
func (ps *Pages) Received(v *web.Visit, t web.Tenant) error {
	rows, err := web.List(v, "/received", web.MessagesOnPage, ps.listReceived(v, t))
	return v.Page(err, "received", rows)
}

// listReceived reads the filter and returns the function that reads a part of the list.
func (ps *Pages) listReceived(v *web.Visit, t web.Tenant) func(before int64, limit int) ([]handsets.Message, int64,
	error) {
	f := v.Parameters("number", "from", "to")
	var filter handsets.Filter
	if text := f.Value("number"); text != "" {
		if filter.Senders = handsets.Foreign(text); filter.Senders == nil {
			filter.Senders = []string{string(f.Number(ps.Plan, "number"))}
		}
	}
	filter.From, filter.To = f.Days()
	return func(before int64, limit int) ([]handsets.Message, int64, error) {
		rows, next, err := ps.Deps.Handsets.List(v.Ctx(), t.CompanyID(), filter, before, limit)
		if errors.Is(err, handsets.ErrNotFound) { // the previous page's last message and all older ones were purged
			return nil, 0, nil
		}
		return rows, next, err
	}
}

// ExportReceived is GET /received.csv: the messages of the list's filter, newest first.
func (ps *Pages) ExportReceived(v *web.Visit, t web.Tenant) error {
	list := ps.listReceived(v, t)
	if !v.Form().OK() {
		return ps.Received(v, t)
	}
	heads := v.Lang.Texts("csv.id", "csv.time", "received.from", "received.to", "csv.carrier", "csv.text")
	return web.Export(v, t, "received", heads, list, func(m *handsets.Message) []string {
		text := ""
		if m.Body != nil {
			text = texts.Cell(*m.Body)
		}
		return []string{strconv.FormatInt(m.ID, 10), texts.CellTime(&m.At), texts.Cell(strings.TrimPrefix(m.From, "+")),
			texts.Cell(strings.TrimPrefix(m.To, "+")),
			texts.Cell(m.Carrier), text}
	})
}

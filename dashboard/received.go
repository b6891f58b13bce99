package dashboard

import (
	"errors"
	"strconv"
	"strings"

	"intumwa/inbound/handsets"
)

// received is GET /received: MO messages to the company.
func (d *Dashboard) received(v *visit, t tenant) error {
	rows, err := list(v, "/received", messagesOnPage, v.listReceived(t))
	return v.page(err, "received", rows)
}

// listReceived reads the filter and returns the function that reads a part of the list.
func (v *visit) listReceived(t tenant) func(before int64, limit int) ([]handsets.Message, int64, error) {
	f := v.parameters("number", "from", "to")
	var filter handsets.Filter
	if text := f.Value("number"); text != "" {
		if filter.Senders = handsets.Foreign(text); filter.Senders == nil {
			filter.Senders = []string{string(f.number("number"))}
		}
	}
	filter.From, filter.To = f.days()
	return func(before int64, limit int) ([]handsets.Message, int64, error) {
		rows, next, err := v.d.rooms.Handsets.List(v.ctx(), t.company(), filter, before, limit)
		if errors.Is(err, handsets.ErrNotFound) { // the previous page's last message and all older ones were purged
			return nil, 0, nil
		}
		return rows, next, err
	}
}

// exportReceived is GET /received.csv: the messages of the list's filter, newest first.
func (d *Dashboard) exportReceived(v *visit, t tenant) error {
	list := v.listReceived(t)
	if !v.form().ok() {
		return d.received(v, t)
	}
	heads := v.texts("csv.id", "csv.time", "received.from", "received.to", "csv.carrier", "csv.text")
	return export(v, t, "received", heads, list, func(m *handsets.Message) []string {
		text := ""
		if m.Body != nil {
			text = cell(*m.Body)
		}
		return []string{strconv.FormatInt(m.ID, 10), cellTime(&m.At), cell(strings.TrimPrefix(m.From, "+")), cell(strings.TrimPrefix(m.To, "+")),
			cell(m.Carrier), text}
	})
}

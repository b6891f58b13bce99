package dashboard

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"intumwa/inbound/handsets"
)

// ofAll selects, in the filter, the entries for all senders of the company.
const ofAll = "*"

// optOutsPage is a company's opt-out list.
type optOutsPage struct {
	listing[handsets.OptOut]

	Choices []option // of the filter
	Senders []option // of a new entry
}

// optOuts is GET /opt-outs.
func (d *Dashboard) optOuts(v *visit, t tenant) (err error) {
	p := optOutsPage{Choices: v.options("", "optouts.any", ofAll, "optouts.all")}
	if p.Senders, err = v.optOutSenders(t); err != nil {
		return err
	}
	p.Choices = append(p.Choices, p.Senders[1:]...)
	p.listing, err = list(v, "/opt-outs", messagesOnPage, v.listOptOuts(t))
	return v.page(err, "optouts", p)
}

// optOutSenders returns the options of an entry's scope: all senders of the company, or one of them.
func (v *visit) optOutSenders(t tenant) ([]option, error) {
	senders, err := v.d.rooms.Senders.SendersOf(v.ctx(), t.Company.ID)
	list := v.options("", "optouts.all")
	for _, s := range senders {
		list = append(list, option{s.Name, s.Name})
	}
	return list, err
}

// listOptOuts reads the filter (q: a number; of: a sender ID) and returns the function that reads a part of the list.
func (v *visit) listOptOuts(t tenant) func(before int64, limit int) ([]handsets.OptOut, int64, error) {
	f := v.parameters("q", "of")
	var filter handsets.OptOutFilter
	if f.Value("q") != "" {
		filter.Number = f.number("q")
	}
	switch of := f.Value("of"); of {
	case "":
	case ofAll:
		filter.Sender = new(string)
	default:
		filter.Sender = &of
	}
	return func(before int64, limit int) ([]handsets.OptOut, int64, error) {
		return v.d.rooms.Handsets.OptOuts(v.ctx(), t.company(), filter, before, limit)
	}
}

// addOptOut is POST /opt-outs.
func (d *Dashboard) addOptOut(v *visit, t tenant) error {
	f := v.form()
	entry := handsets.OptOut{Number: f.number("number"), Sender: f.Value("sender"), Source: handsets.ByAPI}
	senders, err := v.optOutSenders(t)
	if err != nil {
		return err
	}
	if !among(senders, entry.Sender) {
		f.notice("optouts.sender.wrong")
	}
	if !f.ok() {
		return d.optOuts(v, t)
	}
	added, err := v.by().AddOptOut(v.ctx(), t.company(), entry)
	switch {
	case errors.Is(err, handsets.ErrListFull):
		f.notice("optouts.full", handsets.MaxOptOuts)
		return d.optOuts(v, t)
	case err != nil:
		return err
	case !added:
		return v.redirect("/opt-outs", "flash.optout.there")
	}
	return v.redirect("/opt-outs", "flash.optout.added")
}

// removeOptOut is POST /opt-outs/remove.
func (d *Dashboard) removeOptOut(v *visit, t tenant) error {
	f := v.form()
	number, sender := f.number("number"), f.Value("sender")
	if !f.ok() || !utf8.ValidString(sender) || strings.ContainsFunc(sender, unicode.IsControl) {
		return errNotFound
	}
	removed, err := v.by().RemoveOptOut(v.ctx(), t.company(), number, sender)
	switch {
	case err != nil:
		return err
	case !removed: // another user has removed it
		return v.redirect("/opt-outs", "flash.optout.gone")
	}
	return v.redirect("/opt-outs", "flash.optout.removed")
}

// exportOptOuts is GET /opt-outs.csv: the entries of the list's filter, newest first.
func (d *Dashboard) exportOptOuts(v *visit, t tenant) error {
	list := v.listOptOuts(t)
	if !v.form().ok() {
		return d.optOuts(v, t)
	}
	heads := v.texts("csv.number", "csv.sender", "optouts.by", "csv.time")
	return export(v, t, "opt-outs", heads, list, func(e *handsets.OptOut) []string {
		return []string{e.Number.Digits(), cell(e.Sender), v.lang.T(sourceTexts[e.Source]), cellTime(&e.CreatedAt)}
	})
}

// sourceTexts maps the sources of entries to the keys of their texts.
var sourceTexts = map[handsets.Source]string{handsets.ByHandset: "optouts.by.handset", handsets.ByAPI: "optouts.by.company"}

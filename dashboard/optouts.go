package dashboard

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
)

// ofAll selects, in the filter, the entries for all senders of the company.
const ofAll = "*"

// optOutsPage is a company's opt-out list.
type optOutsPage struct {
	web.Listing[handsets.OptOut]

	Choices []web.Option // of the filter
	Senders []web.Option // of a new entry
}

// optOuts is GET /opt-outs.
func (d *Dashboard) optOuts(v *web.Visit, t web.Tenant) (err error) {
	p := optOutsPage{Choices: v.Options("", "optouts.any", ofAll, "optouts.all")}
	if p.Senders, err = d.optOutSenders(v, t); err != nil {
		return err
	}
	p.Choices = append(p.Choices, p.Senders[1:]...)
	p.Listing, err = web.List(v, "/opt-outs", web.MessagesOnPage, d.listOptOuts(v, t))
	return v.Page(err, "optouts", p)
}

// optOutSenders returns the options of an entry's scope: all senders of the company, or one of them.
func (d *Dashboard) optOutSenders(v *web.Visit, t web.Tenant) ([]web.Option, error) {
	senders, err := d.rooms.Senders.SendersOf(v.Ctx(), t.Company.ID)
	list := v.Options("", "optouts.all")
	for _, s := range senders {
		list = append(list, web.Option{Value: s.Name, Text: s.Name})
	}
	return list, err
}

// listOptOuts reads the filter (q: a number; of: a sender ID) and returns the function that reads a part of the list.
func (d *Dashboard) listOptOuts(v *web.Visit, t web.Tenant) func(before int64, limit int) ([]handsets.OptOut, int64, error) {
	f := v.Parameters("q", "of")
	var filter handsets.OptOutFilter
	if f.Value("q") != "" {
		filter.Number = f.Number(d.opts.Plan, "q")
	}
	switch of := f.Value("of"); of {
	case "":
	case ofAll:
		filter.Sender = new(string)
	default:
		filter.Sender = &of
	}
	return func(before int64, limit int) ([]handsets.OptOut, int64, error) {
		return d.rooms.Handsets.OptOuts(v.Ctx(), t.CompanyID(), filter, before, limit)
	}
}

// addOptOut is POST /opt-outs.
func (d *Dashboard) addOptOut(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	entry := handsets.OptOut{Number: f.Number(d.opts.Plan, "number"), Sender: f.Value("sender"), Source: handsets.ByAPI}
	senders, err := d.optOutSenders(v, t)
	if err != nil {
		return err
	}
	if !web.Among(senders, entry.Sender) {
		f.Fail("optouts.sender.wrong")
	}
	if !f.OK() {
		return d.optOuts(v, t)
	}
	added, err := d.by(v).AddOptOut(v.Ctx(), t.CompanyID(), entry)
	switch {
	case errors.Is(err, handsets.ErrListFull):
		f.Fail("optouts.full", handsets.MaxOptOuts)
		return d.optOuts(v, t)
	case err != nil:
		return err
	case !added:
		return v.Redirect("/opt-outs", "flash.optout.there")
	}
	return v.Redirect("/opt-outs", "flash.optout.added")
}

// removeOptOut is POST /opt-outs/remove.
func (d *Dashboard) removeOptOut(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	number, sender := f.Number(d.opts.Plan, "number"), f.Value("sender")
	if !f.OK() || !utf8.ValidString(sender) || strings.ContainsFunc(sender, unicode.IsControl) {
		return web.ErrNotFound
	}
	removed, err := d.by(v).RemoveOptOut(v.Ctx(), t.CompanyID(), number, sender)
	switch {
	case err != nil:
		return err
	case !removed: // another user has removed it
		return v.Redirect("/opt-outs", "flash.optout.gone")
	}
	return v.Redirect("/opt-outs", "flash.optout.removed")
}

// exportOptOuts is GET /opt-outs.csv: the entries of the list's filter, newest first.
func (d *Dashboard) exportOptOuts(v *web.Visit, t web.Tenant) error {
	list := d.listOptOuts(v, t)
	if !v.Form().OK() {
		return d.optOuts(v, t)
	}
	heads := v.Lang.Texts("csv.number", "csv.sender", "optouts.by", "csv.time")
	return web.Export(v, t, "opt-outs", heads, list, func(e *handsets.OptOut) []string {
		return []string{e.Number.Digits(), web.Cell(e.Sender), v.Lang.T(sourceTexts[e.Source]), web.CellTime(&e.CreatedAt)}
	})
}

// sourceTexts maps the sources of entries to the keys of their texts.
var sourceTexts = map[handsets.Source]string{handsets.ByHandset: "optouts.by.handset", handsets.ByAPI: "optouts.by.company"}

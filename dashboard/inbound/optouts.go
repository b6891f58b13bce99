package inbound

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/texts"
)

// ofAll selects, in the filter, the entries for all senders of the company.
const ofAll = "*"

// optOutsPage is a company's opt-out list.
type optOutsPage struct {
	web.Listing[handsets.OptOut]

	Choices []web.Option // of the filter
	Senders []web.Option // of a new entry
}

// OptOuts is GET /opt-outs.
func (ps *Pages) OptOuts(v *web.Visit, t web.Tenant) (err error) {
	p := optOutsPage{Choices: v.Options("", "optouts.any", ofAll, "optouts.all")}
	if p.Senders, err = ps.optOutSenders(v, t); err != nil {
		return err
	}
	p.Choices = append(p.Choices, p.Senders[1:]...)
	p.Listing, err = web.List(v, "/opt-outs", web.MessagesOnPage, ps.listOptOuts(v, t))
	return v.Page(err, "optouts", p)
}

// optOutSenders returns the options of an entry's scope: all senders of the company, or one of them.
func (ps *Pages) optOutSenders(v *web.Visit, t web.Tenant) ([]web.Option, error) {
	senders, err := ps.Deps.Senders.SendersOf(v.Ctx(), t.Company.ID)
	list := v.Options("", "optouts.all")
	for _, s := range senders {
		list = append(list, web.Option{Value: s.Name, Text: s.Name})
	}
	return list, err
}

// listOptOuts reads the filter (q: a number; of: a sender ID) and returns the function that reads a part of the list.
func (ps *Pages) listOptOuts(v *web.Visit, t web.Tenant) func(before int64, limit int) ([]handsets.OptOut, int64,
	error) {
	f := v.Parameters("q", "of")
	var filter handsets.OptOutFilter
	if f.Value("q") != "" {
		filter.Number = f.Number(ps.Plan, "q")
	}
	switch of := f.Value("of"); of {
	case "":
	case ofAll:
		filter.Sender = new(string)
	default:
		filter.Sender = &of
	}
	return func(before int64, limit int) ([]handsets.OptOut, int64, error) {
		return ps.Deps.Handsets.OptOuts(v.Ctx(), t.CompanyID(), filter, before, limit)
	}
}

// AddOptOut is POST /opt-outs.
func (ps *Pages) AddOptOut(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	entry := handsets.OptOut{Number: f.Number(ps.Plan, "number"), Sender: f.Value("sender"), Source: handsets.ByAPI}
	senders, err := ps.optOutSenders(v, t)
	if err != nil {
		return err
	}
	if !web.Among(senders, entry.Sender) {
		f.Fail("optouts.sender.wrong")
	}
	if !f.OK() {
		return ps.OptOuts(v, t)
	}
	added, err := ps.By(v).AddOptOut(v.Ctx(), t.CompanyID(), entry)
	switch {
	case errors.Is(err, handsets.ErrListFull):
		f.Fail("optouts.full", handsets.MaxOptOuts)
		return ps.OptOuts(v, t)
	case err != nil:
		return err
	case !added:
		return v.Redirect("/opt-outs", "flash.optout.there")
	}
	return v.Redirect("/opt-outs", "flash.optout.added")
}

// RemoveOptOut is POST /opt-outs/remove.
func (ps *Pages) RemoveOptOut(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	number, sender := f.Number(ps.Plan, "number"), f.Value("sender")
	if !f.OK() || !utf8.ValidString(sender) || strings.ContainsFunc(sender, unicode.IsControl) {
		return web.ErrNotFound
	}
	removed, err := ps.By(v).RemoveOptOut(v.Ctx(), t.CompanyID(), number, sender)
	switch {
	case err != nil:
		return err
	case !removed: // another user has removed it
		return v.Redirect("/opt-outs", "flash.optout.gone")
	}
	return v.Redirect("/opt-outs", "flash.optout.removed")
}

// ExportOptOuts is GET /opt-outs.csv: the entries of the list's filter, newest first.
func (ps *Pages) ExportOptOuts(v *web.Visit, t web.Tenant) error {
	list := ps.listOptOuts(v, t)
	if !v.Form().OK() {
		return ps.OptOuts(v, t)
	}
	heads := v.Lang.Texts("csv.number", "csv.sender", "optouts.by", "csv.time")
	return web.Export(v, t, "opt-outs", heads, list, func(e *handsets.OptOut) []string {
		return []string{e.Number.Digits(), texts.Cell(e.Sender), v.Lang.T(sourceTexts[e.Source]),
			texts.CellTime(&e.CreatedAt)}
	})
}

// sourceTexts maps the sources of entries to the keys of their texts.
var sourceTexts = map[handsets.Source]string{handsets.ByHandset: "optouts.by.handset",
	handsets.ByAPI: "optouts.by.company"}

package dashboard

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"intumwa/inbound/handsets"
	"intumwa/internal/audit"
)

// ofAll stands in the filter for the entries that hold for all senders of the company.
const ofAll = "*"

// What is recorded.
const (
	actOptOut = "optout.add"
	actOptIn  = "optout.remove"
)

// optOutsPage is a company's opt-out list.
type optOutsPage struct {
	Rows        []handsets.OptOut
	Of          string   // the filter's sender ID
	Choices     []option // of the filter
	Senders     []option // of a new entry
	Filtered    bool
	Later       bool   // this is not the first page
	First, Next string // addresses; Next is empty on the last page
	Export      string // address of all results, as a file
}

// optOuts is GET /opt-outs.
func (d *Dashboard) optOuts(v *visit, t tenant) {
	f := v.parameters("q", "of")
	if p, ok := v.optOutsPage(t, f); ok {
		status := http.StatusOK
		if !f.ok() {
			status = http.StatusUnprocessableEntity
		}
		v.renderPage(status, "optouts", p, f)
	}
}

// optOutsPage reads the page's data by the filter of a form: q, a number, and of, a sender ID. On an error it writes the
// response and returns false.
func (v *visit) optOutsPage(t tenant, f *form) (p optOutsPage, ok bool) {
	senders, err := v.d.rooms.Accounts.SendersOf(v.ctx(), t.Company.ID)
	if err != nil {
		v.handleError("listing sender IDs", err)
		return p, false
	}
	p.Choices = v.options("", "optouts.any", ofAll, "optouts.all")
	p.Senders = v.options("", "optouts.all")
	for _, s := range senders {
		p.Choices, p.Senders = append(p.Choices, option{s.Name, s.Name}), append(p.Senders, option{s.Name, s.Name})
	}
	p.Of = f.Value("of")
	filter := v.optOutFilter(f)
	p.Filtered = f.Value("q") != "" || p.Of != ""
	if !f.ok() {
		return p, true
	}
	before := v.after("before")
	var next int64
	if p.Rows, next, err = fill(before, messagesOnPage, v.listOptOuts(t, filter)); err != nil {
		v.handleError("listing opt-outs", err)
		return p, false
	}
	p.Later, p.First, p.Export = before > 0, f.address("/opt-outs"), f.address("/opt-outs.csv")
	p.Next = f.older("/opt-outs", next)
	return p, true
}

// optOutFilter reads the filter.
func (v *visit) optOutFilter(f *form) (filter handsets.OptOutFilter) {
	if text := f.Value("q"); text != "" {
		var ok bool
		if filter.Number, ok = v.d.opts.Plan.Parse(text); !ok {
			f.refuse("q", "error.number")
		}
	}
	switch of := f.Value("of"); of {
	case "":
	case ofAll:
		filter.Sender = new(string)
	default:
		filter.Sender = &of
	}
	return filter
}

// listOptOuts returns the function that reads a part of the list.
func (v *visit) listOptOuts(t tenant, filter handsets.OptOutFilter) func(before int64, limit int) ([]handsets.OptOut, int64, error) {
	return func(before int64, limit int) ([]handsets.OptOut, int64, error) {
		return v.d.rooms.Handsets.OptOuts(v.ctx(), t.company(), filter, before, limit)
	}
}

// addOptOut is POST /opt-outs: the company enters a number.
func (d *Dashboard) addOptOut(v *visit, t tenant) {
	f := v.form()
	p, ok := v.optOutsPage(t, v.parameters())
	if !ok {
		return
	}
	entry := handsets.OptOut{Sender: f.Value("sender"), Source: handsets.ByAPI}
	if entry.Number, ok = d.opts.Plan.Parse(f.required("number")); !ok {
		f.refuse("number", "error.number")
	}
	if !among(p.Senders, entry.Sender) {
		f.notice("optouts.sender.wrong")
	}
	if !f.ok() {
		v.renderForm("optouts", p, f)
		return
	}
	added, err := d.changeOptOut(v.ctx(), t, actOptOut, entry, func(store *handsets.Store) (int64, error) {
		return store.OptOutWithin(v.ctx(), t.company(), []handsets.OptOut{entry})
	})
	switch {
	case errors.Is(err, handsets.ErrListFull):
		f.notice("optouts.full", handsets.MaxOptOuts)
		v.renderForm("optouts", p, f)
	case err != nil:
		v.handleError("adding an opt-out", err)
	case added == 0:
		v.redirect("/opt-outs", "flash.optout.there")
	default:
		v.redirect("/opt-outs", "flash.optout.added")
	}
}

// removeOptOut is POST /opt-outs/remove: the company takes an entry off its list.
func (d *Dashboard) removeOptOut(v *visit, t tenant) {
	f := v.form()
	number, ok := d.opts.Plan.Parse(f.Value("number"))
	sender, text := referenceIn(f.Value("sender"))
	if !ok || !text {
		v.renderError(http.StatusNotFound)
		return
	}
	entry := handsets.OptOut{Number: number, Sender: sender}
	removed, err := d.changeOptOut(v.ctx(), t, actOptIn, entry, func(store *handsets.Store) (int64, error) {
		return store.OptIn(v.ctx(), t.company(), entry.Number, &entry.Sender)
	})
	switch {
	case err != nil:
		v.handleError("removing an opt-out", err)
	case removed == 0: // somebody else was faster
		v.redirect("/opt-outs", "flash.optout.gone")
	default:
		v.redirect("/opt-outs", "flash.optout.removed")
	}
}

// changeOptOut changes the list and records it, with the number masked, in one transaction. It returns how many entries
// were changed.
func (d *Dashboard) changeOptOut(ctx context.Context, t tenant, act string, entry handsets.OptOut, change func(*handsets.Store) (int64, error)) (changed int64, err error) {
	err = pgx.BeginFunc(ctx, d.rooms.Pool, func(tx pgx.Tx) error {
		if act == actOptOut {
			if err := d.rooms.Accounts.In(tx).NoteOptOuts(ctx, t.Company.ID); err != nil {
				return err
			}
		}
		if changed, err = change(d.rooms.Handsets.In(tx)); err != nil || changed == 0 {
			return err
		}
		record := audit.Entry{Actor: audit.User(t.User.ID), Act: act, Subject: "number " + entry.Number.Masked(), Company: t.company()}
		if state := map[string]any{"sender": entry.Sender}; act == actOptOut {
			record.After = state
		} else {
			record.Before = state
		}
		return audit.Record(ctx, tx, record)
	})
	return changed, err
}

// exportOptOuts is GET /opt-outs.csv: the entries that the parameters q and of ask for, the latest first.
func (d *Dashboard) exportOptOuts(v *visit, t tenant) {
	f := v.parameters("q", "of")
	filter := v.optOutFilter(f)
	heads := []string{v.lang.T("csv.number"), v.lang.T("csv.sender"), v.lang.T("optouts.by"), v.lang.T("csv.time")}
	v.export(t, "opt-outs", heads, func(row func(...string) error) error {
		if !f.ok() {
			return nil
		}
		return eachRow(v, v.listOptOuts(t, filter), func(e *handsets.OptOut) error {
			return row(e.Number.Digits(), cell(e.Sender), v.lang.T(sourceTexts[e.Source]), cellTime(&e.CreatedAt))
		})
	})
}

// sourceTexts maps who made an entry to the keys of their texts.
var sourceTexts = map[handsets.Source]string{handsets.ByHandset: "optouts.by.handset", handsets.ByAPI: "optouts.by.company"}

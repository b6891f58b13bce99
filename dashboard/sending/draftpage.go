package sending

import (
	"errors"
	"strconv"
	"strings"

	"intumwa/campaigns"
	"intumwa/campaigns/sheets"
	"intumwa/dashboard/web"
	"intumwa/intake"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/texts"
)

type previewMessage struct {
	Number   sms.Number
	Text     string
	Size     sms.Size
	Encoding string
	Why      []character // that make it UCS-2
}

// draftPage is a checked campaign.
type draftPage struct {
	campaigns.Sums

	ID         string
	Reading    sheets.Reading
	Name       string
	Sender     string
	CostCenter string
	Credits    int64
	Enough     bool
	Ready      bool // the company may send it
	Clear      bool // no line blocks it
	First      []previewMessage

	// invalid lines, opted-out recipients, repeated numbers, empty cells
	Wrong, Barred, Again, Gaps web.Firsts[campaigns.Row]
}

// Checked is GET /campaigns/drafts/:draft.
func (ps *Pages) Checked(v *web.Visit, t web.Tenant, made *campaigns.Campaign) (err error) {
	data := draftPage{ID: made.ID.String(), Reading: made.Reading, Name: made.Name, Sender: made.Sender,
		CostCenter: made.CostCenter, Ready: campaigns.MaySend(&t.Company)}
	if data.Sums, err = ps.Deps.Campaigns.Sums(v.Ctx(), made); err != nil {
		return err
	}
	for _, list := range []struct {
		to    *web.Firsts[campaigns.Row]
		which string
		all   int
	}{{&data.Wrong, campaigns.Faults, data.Faults}, {&data.Barred, campaigns.OptedOut, data.OptedOut},
		{&data.Again, campaigns.Repeated, data.Repeated},
		{&data.Gaps, campaigns.Blank, data.Blank}} {
		if list.all == 0 {
			continue
		}
		if list.to.List, err = ps.Deps.Campaigns.Rows(v.Ctx(), made, list.which, 0, web.FirstsOnPage); err != nil {
			return err
		}
		list.to.More = list.all - len(list.to.List)
	}
	data.Clear = data.Faults+data.OptedOut == 0
	first, err := ps.Deps.Campaigns.Preview(v.Ctx(), made)
	if err != nil {
		return err
	}
	template := sms.ParseColumns(made.Template)
	for _, r := range first {
		text := intake.Preview(&t.Company, template.Render(r.Variables))
		m := previewMessage{Number: r.Number, Text: text, Size: sms.Measure(text), Encoding: "GSM-7"}
		if r.UCS2 {
			m.Encoding, m.Why = "UCS-2", charactersOf(text)
		}
		data.First = append(data.First, m)
	}
	if data.Credits, err = ps.Deps.Ledger.Balance(v.Ctx(), t.Company.ID); err != nil {
		return err
	}
	data.Enough = data.Credits >= int64(data.Segments)
	return v.Render("draft", data)
}

// ExportLines is GET /campaigns/drafts/:draft/lines.csv: all lines that the page shows in part.
func (ps *Pages) ExportLines(v *web.Visit, t web.Tenant, made *campaigns.Campaign) error {
	return ps.exportRows(v, t, made, campaigns.Any, func(r *campaigns.Row) string {
		switch {
		case r.OptedOut:
			return v.Lang.T("draft.line.optedout")
		case r.Repeated:
			return v.Lang.T("draft.line.repeated")
		case r.Fault == "":
			return texts.Cell(v.Lang.T("draft.line.blank", strings.Join(r.Blanks(), ", ")))
		}
		return texts.Cell(r.Fault)
	})
}

// exportRows responds with a campaign's rows that have a problem, and why.
func (ps *Pages) exportRows(v *web.Visit, t web.Tenant, made *campaigns.Campaign, problem string,
	why func(*campaigns.Row) string) error {
	return v.Export(t, "lines", v.Lang.Texts("csv.line", "csv.number", "draft.why.line"),
		func(row func(...string) error) error {
			for after, more := 0, true; more; {
				var rows []campaigns.Row
				if err := v.InTurn(func() (err error) {
					rows, err = ps.Deps.Campaigns.Rows(v.Ctx(), made, problem, after, web.RowsAtOnce)
					return err
				}); err != nil {
					return err
				}
				for _, r := range rows {
					if err := row(strconv.Itoa(r.Line), r.Number.Digits(), why(&r)); err != nil {
						return err
					}
				}
				if more = len(rows) == web.RowsAtOnce; more {
					after = rows[len(rows)-1].N
				}
			}
			return nil
		})
}

func draftPath(made *campaigns.Campaign) string { return "/campaigns/drafts/" + made.ID.String() }

// Unsent is the handler of a page for an unsent campaign. A campaign that has begun redirects to its batch.
func (ps *Pages) Unsent(page func(*web.Visit, web.Tenant, *campaigns.Campaign) error) func(
	*web.Visit, web.Tenant) error {
	return func(v *web.Visit, t web.Tenant) error {
		id := v.ULID("draft")
		made, missing := ps.Deps.Campaigns.Get(v.Ctx(), t.CompanyID(), id)
		if missing != nil && !errors.Is(missing, campaigns.ErrNotFound) {
			return missing
		}
		_, err := ps.Deps.Messages.Uncounted(v.Ctx(), t.CompanyID(), id)
		switch {
		case err != nil && !errors.Is(err, messages.ErrNotFound):
			return err
		case err == nil:
			return v.Redirect("/batches/"+id.String(), "")
		case missing != nil:
			return missing
		}
		return page(v, t, &made)
	}
}

package dashboard

import (
	"errors"
	"strconv"
	"strings"

	"intumwa/campaigns"
	"intumwa/intake"
	"intumwa/messages"
	"intumwa/sms"
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
	Reading    campaigns.Reading
	Name       string
	Sender     string
	CostCenter string
	Credits    int64
	Enough     bool
	Ready      bool // the company may send it
	Clear      bool // no line blocks it
	First      []previewMessage

	Wrong, Barred, Again, Gaps firsts[campaigns.Row] // invalid lines, opted-out recipients, repeated numbers, empty cells
}

// checked is GET /campaigns/drafts/:draft.
func (d *Dashboard) checked(v *visit, t tenant, made *campaigns.Campaign) (err error) {
	data := draftPage{ID: made.ID.String(), Reading: made.Reading, Name: made.Name, Sender: made.Sender, CostCenter: made.CostCenter, Ready: campaigns.MaySend(&t.Company)}
	if data.Sums, err = d.rooms.Campaigns.Sums(v.ctx(), made); err != nil {
		return err
	}
	for _, list := range []struct {
		to    *firsts[campaigns.Row]
		which string
		all   int
	}{{&data.Wrong, campaigns.Faults, data.Faults}, {&data.Barred, campaigns.OptedOut, data.OptedOut}, {&data.Again, campaigns.Repeated, data.Repeated},
		{&data.Gaps, campaigns.Blank, data.Blank}} {
		if list.all == 0 {
			continue
		}
		if list.to.List, err = d.rooms.Campaigns.Rows(v.ctx(), made, list.which, 0, firstsOnPage); err != nil {
			return err
		}
		list.to.More = list.all - len(list.to.List)
	}
	data.Clear = data.Faults+data.OptedOut == 0
	first, err := d.rooms.Campaigns.Preview(v.ctx(), made)
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
	if data.Credits, err = d.rooms.Ledger.Balance(v.ctx(), t.Company.ID); err != nil {
		return err
	}
	data.Enough = data.Credits >= int64(data.Segments)
	return v.render("draft", data)
}

// exportLines is GET /campaigns/drafts/:draft/lines.csv: all lines that the page shows in part.
func (d *Dashboard) exportLines(v *visit, t tenant, made *campaigns.Campaign) error {
	return v.exportRows(t, made, campaigns.Any, func(r *campaigns.Row) string {
		switch {
		case r.OptedOut:
			return v.lang.T("draft.line.optedout")
		case r.Repeated:
			return v.lang.T("draft.line.repeated")
		case r.Fault == "":
			return cell(v.lang.T("draft.line.blank", strings.Join(r.Blanks(), ", ")))
		}
		return cell(r.Fault)
	})
}

// exportRows responds with a campaign's rows that have a problem, and why.
func (v *visit) exportRows(t tenant, made *campaigns.Campaign, problem string, why func(*campaigns.Row) string) error {
	return v.export(t, "lines", v.texts("csv.line", "csv.number", "draft.why.line"), func(row func(...string) error) error {
		for after, more := 0, true; more; {
			var rows []campaigns.Row
			if err := v.inTurn(func() (err error) {
				rows, err = v.d.rooms.Campaigns.Rows(v.ctx(), made, problem, after, rowsAtOnce)
				return err
			}); err != nil {
				return err
			}
			for _, r := range rows {
				if err := row(strconv.Itoa(r.Line), r.Number.Digits(), why(&r)); err != nil {
					return err
				}
			}
			if more = len(rows) == rowsAtOnce; more {
				after = rows[len(rows)-1].N
			}
		}
		return nil
	})
}

func draftPath(made *campaigns.Campaign) string { return "/campaigns/drafts/" + made.ID.String() }

// unsent is the handler of a page for an unsent campaign. A campaign that has begun redirects to its batch.
func (d *Dashboard) unsent(page func(*visit, tenant, *campaigns.Campaign) error) func(*visit, tenant) error {
	return func(v *visit, t tenant) error {
		id := v.ulid("draft")
		made, missing := d.rooms.Campaigns.Get(v.ctx(), t.company(), id)
		if missing != nil && !errors.Is(missing, campaigns.ErrNotFound) {
			return missing
		}
		_, err := d.rooms.Messages.Uncounted(v.ctx(), t.company(), id)
		switch {
		case err != nil && !errors.Is(err, messages.ErrNotFound):
			return err
		case err == nil:
			return v.redirect("/batches/"+id.String(), "")
		case missing != nil:
			return missing
		}
		return page(v, t, &made)
	}
}

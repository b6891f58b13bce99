package dashboard

import (
	"context"
	"slices"
	"strconv"

	"intumwa/intake"
	"intumwa/sms"
)

const (
	previewed = 5 // messages that a page shows
	accented  = 3 // of them with accents, if there are as many
)

// reading is how a campaign's file was read, or what its user wants.
type reading struct {
	Encoding string `json:"encoding,omitempty"` // "": guess it; of a workbook
	Sure     bool   `json:"sure,omitempty"`     // the encoding is not a guess
	Sheet    string `json:"sheet,omitempty"`    // of a workbook
	Numbers  string `json:"numbers,omitempty"`  // the column's name
}

type previewMessage struct {
	Number   sms.Number
	Text     string
	Size     sms.Size
	Encoding string
	Why      []string // characters that make it UCS-2
}

// draftPage is a checked campaign.
type draftPage struct {
	draftSums

	ID      string
	Reading reading
	Name    string
	Sender  string
	Credits int64
	Enough  bool
	Ready   bool // the company may send it
	Clear   bool // no line blocks it
	First   []previewMessage

	Wrong, Barred, Again firsts[draftRow] // invalid lines, opted-out recipients, repeated numbers
}

// checked is GET /campaigns/drafts/:draft.
func (d *Dashboard) checked(v *visit, t tenant, made *draft) (err error) {
	data := draftPage{ID: made.ID.String(), Reading: made.Reading, Name: made.Name, Sender: made.Sender, Ready: sends(&t.Company)}
	if data.draftSums, err = d.sumsOf(v.ctx(), made); err != nil {
		return err
	}
	for _, list := range []struct {
		to    *firsts[draftRow]
		which string
		all   int
	}{{&data.Wrong, "faults", data.Faults}, {&data.Barred, "optedout", data.OptedOut}, {&data.Again, "repeated", data.Repeated}} {
		if list.all == 0 {
			continue
		}
		if list.to.List, err = rowsOf(v.ctx(), d.rooms.Pool, made, hindrances[list.which], 0, firstsOnPage); err != nil {
			return err
		}
		list.to.More = list.all - len(list.to.List)
	}
	data.Clear = data.Faults+data.OptedOut == 0
	first, err := d.previewRows(v.ctx(), made)
	if err != nil {
		return err
	}
	template := sms.ParseColumns(made.Template)
	for _, r := range first {
		text := intake.Preview(&t.Company, template.Render(r.Variables))
		m := previewMessage{Number: r.Number, Text: text, Size: sms.Measure(text), Encoding: "GSM-7"}
		if r.UCS2 {
			m.Encoding, m.Why = "UCS-2", sms.UnicodeCharacters(text)
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
func (d *Dashboard) exportLines(v *visit, t tenant, made *draft) error {
	return v.export(t, "lines", v.texts("csv.line", "csv.number", "draft.why.line"), func(row func(...string) error) error {
		for after, more := 0, true; more; {
			var rows []draftRow
			if err := v.inTurn(func() (err error) {
				rows, err = rowsOf(v.ctx(), d.rooms.Pool, made, `(fault is not null or opted_out or repeated)`, after, rowsAtOnce)
				return err
			}); err != nil {
				return err
			}
			for _, r := range rows {
				why := cell(r.Fault)
				switch {
				case r.OptedOut:
					why = v.lang.T("draft.line.optedout")
				case r.Repeated:
					why = v.lang.T("draft.line.repeated")
				}
				if err := row(strconv.Itoa(r.Line), r.Number.Digits(), why); err != nil {
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

// previewRows returns the rows of the messages that the page shows, some with accents: a wrong encoding shows in them.
func (d *Dashboard) previewRows(ctx context.Context, c *draft) ([]draftRow, error) {
	rows, err := rowsOf(ctx, d.rooms.Pool, c, sendable+` and octet_length(variables::text) > length(variables::text)`, 0, accented)
	if err != nil {
		return nil, err
	}
	first, err := rowsOf(ctx, d.rooms.Pool, c, sendable, 0, previewed)
	for _, r := range first {
		if len(rows) < previewed && !slices.ContainsFunc(rows, func(other draftRow) bool { return other.N == r.N }) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b draftRow) int { return a.N - b.N })
	return rows, err
}

package dashboard

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

const (
	maxRecipients = 500 // rule api 4.3
	maxTemplate   = 600 // characters
	maxVariable   = 255 // characters
	maxShown      = 40  // characters of a cell that a page shows
)

// lineError is an error in a line of a file.
type lineError struct {
	Line int // 0: the file as a whole
	Text string
}

// lineErrors are the errors in a file.
type lineErrors struct{ firsts[lineError] }

func (e *lineErrors) add(line int, text string) { e.firsts.add(lineError{line, text}) }

// numberColumns are the names of the column of numbers, as columnName returns them. Without such a column it is the first.
var numberColumns = []string{"phone_number", "phone", "number", "telephone", "tel", "numero", "numero_de_telephone", "mobile", "msisdn", "gsm", "inomero", "telefone"}

// columnName returns a column's name in the form of placeholders: without accents, in lower case, with underscores.
func columnName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-' || r == '.':
			return '_'
		case r >= 0x300 && r < 0x370: // a combining accent
			return -1
		}
		return r
	}, norm.NFD.String(strings.ToLower(strings.TrimSpace(name))))
}

// readRecipients reads the recipients of a campaign from a file. It checks each line as the send would, so that the send
// accepts a file without errors.
func (v *visit) readRecipients(company *accounts.Company, template *sms.Template, file []byte) (all []intake.Recipient, wrong lineErrors) {
	rows, err := readSheet(file, maxRecipients+1)
	if err != nil {
		e := err.(*sheetError) //nolint:errorlint,forcetypeassert // readSheet returns no other error
		wrong.add(e.Line, v.lang.T(e.Key, e.Args...))
		return nil, wrong
	}
	if len(rows) < 2 {
		wrong.add(0, v.lang.T("campaign.file.empty"))
		return nil, wrong
	}
	if len(rows) > maxRecipients+1 {
		wrong.add(0, v.lang.T("campaign.file.many", maxRecipients))
		return nil, wrong
	}
	head, rows := rows[0], rows[1:]
	numberAt, columns, ok := v.columns(head, template, &wrong)
	if !ok {
		return nil, wrong
	}
	for _, row := range rows {
		if r, fault := v.readRecipient(company, template, row, len(head.Cells), numberAt, columns); fault != "" {
			wrong.add(row.Line, fault)
		} else {
			all = append(all, r)
		}
	}
	return all, wrong
}

// columns finds the columns of the numbers and of the placeholders' values.
func (v *visit) columns(head sheetRow, template *sms.Template, wrong *lineErrors) (numberAt int, columns map[string]int, ok bool) {
	for _, name := range head.Cells {
		if _, isNumber := v.d.opts.Plan.Parse(name); isNumber {
			wrong.add(head.Line, v.lang.T("campaign.file.head"))
			return 0, nil, false
		}
	}
	numberAt = max(slices.IndexFunc(head.Cells, func(name string) bool { return slices.Contains(numberColumns, columnName(name)) }), 0)
	columns = map[string]int{}
	for _, name := range template.Names() {
		at := slices.Index(head.Cells, name)
		if at < 0 {
			at = slices.IndexFunc(head.Cells, func(column string) bool { return columnName(column) == columnName(name) })
		}
		if at < 0 {
			wrong.add(head.Line, v.lang.T("campaign.file.column", shorten(name)))
			continue
		}
		columns[name] = at
	}
	return numberAt, columns, len(wrong.List) == 0
}

// readRecipient reads one line; the second result is the text of its error, empty when there is none.
func (v *visit) readRecipient(company *accounts.Company, template *sms.Template, row sheetRow, cells, numberAt int, columns map[string]int) (r intake.Recipient, wrong string) {
	if len(row.Cells) > cells || len(row.Cells) <= numberAt {
		return r, v.lang.T("campaign.line.cells", len(row.Cells), cells)
	}
	var ok bool
	if r.Number, ok = v.d.opts.Plan.Parse(row.Cells[numberAt]); !ok {
		return r, v.lang.T("campaign.line.number", shorten(row.Cells[numberAt]))
	}
	if _, carried := v.d.rooms.Intake.Route(r.Number); !carried {
		return r, v.lang.T("campaign.line.carrier", shorten(row.Cells[numberAt]))
	}
	r.Variables = make(map[string]*string, len(columns))
	for name, at := range columns {
		if at >= len(row.Cells) {
			return r, v.lang.T("campaign.line.cells", len(row.Cells), cells)
		}
		value := row.Cells[at]
		if utf8.RuneCountInString(value) > maxVariable {
			return r, v.lang.T("campaign.line.long", shorten(name), maxVariable)
		}
		r.Variables[name] = &value
	}
	_, err := v.d.rooms.Intake.Render(company, template, r.Variables)
	if refusal, refused := errors.AsType[sms.Refusal](err); refused {
		return r, v.refusal(refusal)
	}
	return r, ""
}

// shorten returns as much of a cell's text as a page shows.
func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxShown {
		return text
	}
	return string(runes[:maxShown]) + "…"
}

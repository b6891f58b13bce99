package dashboard

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"intumwa/accounts"
	"intumwa/sms"
)

const (
	maxRecipients = 500 // rule api 4.3
	maxTemplate   = 600 // characters
	maxVariable   = 255 // characters
	maxFaults     = 20  // that a page lists
	maxShown      = 40  // characters of a cell that a page shows
)

// recipient is one of a campaign.
type recipient struct {
	Number    sms.Number         `json:"number"`
	Variables map[string]*string `json:"variables"`
}

// fault is what is wrong with a line of a file.
type fault struct {
	Line int // 0: the file as a whole
	Text string
}

// faults are listed up to maxFaults, and all counted.
type faults struct {
	List []fault
	More int
}

func (f *faults) add(line int, text string) {
	if len(f.List) == maxFaults {
		f.More++
		return
	}
	f.List = append(f.List, fault{line, text})
}

// numberColumns are what a column of numbers may be called, as plain writes them; else it is the first.
var numberColumns = []string{"phone_number", "phone", "number", "telephone", "tel", "numero", "numero_de_telephone", "mobile", "msisdn", "gsm", "inomero", "telefone"}

// plain is a column's name as placeholders may write it: without accents, in lower case, with underscores.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-' || r == '.':
			return '_'
		case r >= 0x300 && r < 0x370: // an accent of the letter before
			return -1
		}
		return r
	}, norm.NFD.String(strings.ToLower(strings.TrimSpace(name))))
}

// readRecipients makes the recipients of a campaign of a file, and checks each line as a send would: what it lists as
// wrong is all that a send would refuse of it.
func (v *visit) readRecipients(company *accounts.Company, template *sms.Template, file []byte) (all []recipient, wrong faults) {
	rows, err := readSheet(file, maxRecipients+1)
	if err != nil {
		e := err.(*sheetError) //nolint:errorlint,forcetypeassert // it is nothing else
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

// columns finds where the numbers and the placeholders' values stand.
func (v *visit) columns(head sheetRow, template *sms.Template, wrong *faults) (numberAt int, columns map[string]int, ok bool) {
	for _, name := range head.Cells {
		if _, isNumber := v.d.opts.Plan.Parse(name); isNumber {
			wrong.add(head.Line, v.lang.T("campaign.file.head"))
			return 0, nil, false
		}
	}
	numberAt = max(slices.IndexFunc(head.Cells, func(name string) bool { return slices.Contains(numberColumns, plain(name)) }), 0)
	columns = map[string]int{}
	for _, name := range template.Names() {
		at := slices.Index(head.Cells, name)
		if at < 0 {
			at = slices.IndexFunc(head.Cells, func(column string) bool { return plain(column) == plain(name) })
		}
		if at < 0 {
			wrong.add(head.Line, v.lang.T("campaign.file.column", beginning(name)))
			continue
		}
		columns[name] = at
	}
	return numberAt, columns, len(wrong.List) == 0
}

// readRecipient reads one line; the second result says what is wrong with it.
func (v *visit) readRecipient(company *accounts.Company, template *sms.Template, row sheetRow, cells, numberAt int, columns map[string]int) (r recipient, wrong string) {
	if len(row.Cells) > cells || len(row.Cells) <= numberAt {
		return r, v.lang.T("campaign.line.cells", len(row.Cells), cells)
	}
	var ok bool
	if r.Number, ok = v.d.opts.Plan.Parse(row.Cells[numberAt]); !ok {
		return r, v.lang.T("campaign.line.number", beginning(row.Cells[numberAt]))
	}
	if _, carried := v.d.rooms.Intake.Route(r.Number); !carried {
		return r, v.lang.T("campaign.line.carrier", beginning(row.Cells[numberAt]))
	}
	r.Variables = make(map[string]*string, len(columns))
	for name, at := range columns {
		if at >= len(row.Cells) {
			return r, v.lang.T("campaign.line.cells", len(row.Cells), cells)
		}
		value := row.Cells[at]
		if utf8.RuneCountInString(value) > maxVariable {
			return r, v.lang.T("campaign.line.long", beginning(name), maxVariable)
		}
		r.Variables[name] = &value
	}
	if _, err := v.d.rooms.Intake.Render(company, template, r.Variables); err != nil {
		return r, v.refusal(err)
	}
	return r, ""
}

// beginning is as much of what stands in a cell as a page shows.
func beginning(text string) string {
	runes := []rune(text)
	if len(runes) <= maxShown {
		return text
	}
	return string(runes[:maxShown]) + "…"
}

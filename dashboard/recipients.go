package dashboard

import (
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

const (
	maxRecipients = 100_000 // of a campaign
	maxTried      = 500     // of a company that cannot send yet
	maxTemplate   = 600     // characters
	maxVariable   = 255     // characters
	maxShown      = 40      // characters of a cell that a page shows
)

// lineError is an error in a line of a file.
type lineError struct {
	Line int // 0: the file as a whole
	Text string
}

// lineErrors are the errors that make a file unreadable.
type lineErrors = firsts[lineError]

// maxRecipientsOf returns the maximum number of recipients in a campaign. Anyone can create a company.
func maxRecipientsOf(company *accounts.Company) int {
	if sends(company) {
		return maxRecipients
	}
	return maxTried
}

// sends reports whether a company may send campaigns.
func sends(company *accounts.Company) bool { return company.Approved && company.Verified }

// numberColumns are the possible names of the number column, as columnName returns them. Without one, the first column
// has the numbers.
var numberColumns = []string{"phone_number", "phone", "number", "telephone", "tel", "numero", "numero_de_telephone", "mobile", "msisdn", "gsm", "inomero", "telefone"}

// columnName returns a column's name as a placeholder has it: without accents, in lower case, with underscores.
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

// rowReader reads the rows of a campaign's file. It checks each line as the send does, so the send accepts every line
// without a fault.
type rowReader struct {
	v        *visit
	company  *accounts.Company
	template *sms.Template
	next     func() (sheetRow, error)
	most     int // rows
	read     int

	cells, numberAt int
	columns         map[string]int
}

// readRows reads a file up to its header line.
func (v *visit) readRows(company *accounts.Company, template *sms.Template, file []byte) (*rowReader, lineErrors) {
	var wrong lineErrors
	r := &rowReader{v: v, company: company, template: template, most: maxRecipientsOf(company)}
	var err error
	if r.next, err = readSheet(file); err == nil {
		var head sheetRow
		if head, err = r.next(); err == nil {
			r.cells = len(head.Cells)
			r.numberAt, r.columns = v.columns(head, template, &wrong)
			return r, wrong
		}
	}
	wrong.add(v.fileError(err))
	return nil, wrong
}

// fileError returns the text of a file's error.
func (v *visit) fileError(err error) lineError {
	if e, ok := errors.AsType[*sheetError](err); ok {
		return lineError{e.Line, v.lang.T(e.Key, e.Args...)}
	}
	return lineError{0, v.lang.T("campaign.file.empty")} // the file has ended
}

// row returns the next row, and io.EOF at the end of the file; other errors are a *sheetError.
func (r *rowReader) row() (row draftRow, err error) {
	line, err := r.next()
	switch {
	case errors.Is(err, io.EOF) && r.read == 0:
		return row, &sheetError{0, "campaign.file.empty", nil}
	case err != nil:
		return row, err
	case r.read == r.most:
		return row, &sheetError{0, "campaign.file.many", []any{r.most}}
	}
	r.read++
	row.Line = line.Line
	row.Fault = r.check(line, &row)
	return row, nil
}

// columns finds the columns of the numbers and of the placeholders' values.
func (v *visit) columns(head sheetRow, template *sms.Template, wrong *lineErrors) (numberAt int, columns map[string]int) {
	for _, name := range head.Cells {
		if _, isNumber := v.d.opts.Plan.Parse(name); isNumber {
			wrong.add(lineError{head.Line, v.lang.T("campaign.file.head")})
			return 0, nil
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
			wrong.add(lineError{head.Line, v.lang.T("campaign.file.column", shorten(name))})
			continue
		}
		columns[name] = at
	}
	return numberAt, columns
}

// check fills a row from its line and returns the text of the line's error, if any.
func (r *rowReader) check(line sheetRow, row *draftRow) (wrong string) {
	v := r.v
	if len(line.Cells) > r.cells || len(line.Cells) <= r.numberAt {
		return v.lang.T("campaign.line.cells", len(line.Cells), r.cells)
	}
	number := line.Cells[r.numberAt]
	var ok bool
	if row.Number, ok = v.d.opts.Plan.Parse(number); !ok {
		return v.lang.T(numberFaults[v.d.opts.Plan.Fault(number)], shorten(number))
	}
	if _, carried := v.d.rooms.Intake.Route(row.Number); !carried {
		return v.lang.T("campaign.line.carrier", shorten(number))
	}
	row.Variables = make(map[string]*string, len(r.columns))
	for name, at := range r.columns {
		if at >= len(line.Cells) {
			return v.lang.T("campaign.line.cells", len(line.Cells), r.cells)
		}
		value := line.Cells[at]
		if utf8.RuneCountInString(value) > maxVariable {
			return v.lang.T("campaign.line.long", shorten(name), maxVariable)
		}
		row.Variables[name] = &value
	}
	text, err := v.d.rooms.Intake.Render(r.company, r.template, row.Variables)
	if refusal, refused := errors.AsType[sms.Refusal](err); refused {
		return v.refusal(refusal)
	}
	size := sms.Measure(intake.Preview(r.company, text))
	row.Segments, row.UCS2 = size.Segments, size.Encoding == sms.UCS2
	return ""
}

// numberFaults are the texts of a number's faults.
var numberFaults = map[sms.NumberFault]string{
	sms.NumberOther: "campaign.line.number", sms.NumberScientific: "campaign.line.number.scientific", sms.NumberDecimal: "campaign.line.number.decimal",
	sms.NumberSeveral: "campaign.line.number.several", sms.NumberTrunk: "campaign.line.number.trunk",
}

// shorten cuts a cell's text for a page.
func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxShown {
		return text
	}
	return string(runes[:maxShown]) + "…"
}

package dashboard

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

const (
	maxRecipients = 100_000 // of a campaign
	maxTried      = 500     // of a company that cannot send yet
	maxShown      = 40      // characters of a cell that a page shows
	rowsAhead     = 100     // of a file, from which its columns are found
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

// rowReader reads the rows of a campaign's file. It checks each line as the send does, so the send accepts every line
// without a fault.
type rowReader struct {
	v        *visit
	company  *accounts.Company
	template *sms.Template
	sheet    *sheet
	ahead    []sheetRow // read to find the columns
	most     int        // rows
	read     int

	head    sheetRow
	numbers int            // the column of the numbers
	columns map[string]int // those of the placeholders
}

// readRows reads a file up to its header line. about is what the user said about the file.
func (v *visit) readRows(company *accounts.Company, text string, file []byte, about reading) (*rowReader, lineErrors) {
	var wrong lineErrors
	r := &rowReader{v: v, company: company, template: sms.ParseColumns(text), most: maxRecipientsOf(company)}
	var err error
	if r.sheet, err = readSheet(file, about.Encoding); err == nil {
		var failed error
		for len(r.ahead) < rowsAhead && failed == nil {
			var row sheetRow
			if row, failed = r.sheet.next(); failed == nil {
				r.ahead = append(r.ahead, row)
			}
		}
		if len(r.ahead) == 0 {
			err = failed
		} else {
			next := r.sheet.next
			r.sheet.next = func() (sheetRow, error) {
				if failed != nil {
					return sheetRow{}, failed
				}
				return next()
			}
			v.findColumns(r, text, about.Numbers, &wrong)
			return r, wrong
		}
	}
	wrong.add(v.fileError(err))
	return nil, wrong
}

// reading returns how the file was read.
func (r *rowReader) reading() reading {
	return reading{Encoding: r.sheet.encoding, Sure: r.sheet.sure, Sheet: shorten(r.sheet.name), Numbers: shorten(r.head.Cells[r.numbers])}
}

// next returns the next line after the header.
func (r *rowReader) next() (row sheetRow, err error) {
	if len(r.ahead) > 0 {
		row, r.ahead = r.ahead[0], r.ahead[1:]
		return row, nil
	}
	return r.sheet.next()
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

// check fills a row from its line and returns the text of the line's error, if any.
func (r *rowReader) check(line sheetRow, row *draftRow) (wrong string) {
	v := r.v
	switch {
	case line.Foreign:
		return v.lang.T("campaign.line.encoding", shorten(strings.Join(line.Cells, " ")))
	case len(line.Cells) > len(r.head.Cells):
		return v.lang.T("campaign.line.cells", len(line.Cells), len(r.head.Cells))
	case line.Written <= r.numbers:
		return v.lang.T("campaign.line.cells", line.Written, len(r.head.Cells))
	case len(line.Cells) <= r.numbers || line.Cells[r.numbers] == "":
		return v.lang.T("campaign.line.none")
	}
	number := line.Cells[r.numbers]
	var ok bool
	if row.Number, ok = parseCell(v.d.opts.Plan, &line, r.numbers); !ok {
		return v.lang.T(numberFaults[v.d.opts.Plan.Fault(number)], shorten(number))
	}
	if _, carried := v.d.rooms.Intake.Route(row.Number); !carried {
		return v.lang.T("campaign.line.carrier", shorten(number))
	}
	row.Variables = make(map[string]*string, len(r.columns))
	for name, at := range r.columns {
		if at >= line.Written {
			return v.lang.T("campaign.line.cells", line.Written, len(r.head.Cells))
		}
		value := ""
		if at < len(line.Cells) {
			value = v.amount(line.Cells[at], line.exact(at))
		}
		switch {
		case utf8.RuneCountInString(value) > sms.MaxVariable:
			return v.lang.T("campaign.line.long", shorten(name), sms.MaxVariable)
		case formulaError.MatchString(value):
			return v.lang.T("campaign.line.formula", shorten(value))
		}
		row.Variables[name] = &value
	}
	text, err := v.d.rooms.Intake.Render(r.company, r.template, row.Variables)
	if refusal, refused := errors.AsType[sms.Refusal](err); refused {
		return v.refusal(refusal)
	}
	if at := strings.Index(text, "{{"); at >= 0 { // in a cell
		return v.lang.T("campaign.line.braces", shorten(text[at:]))
	}
	size := sms.Measure(intake.Preview(r.company, text))
	row.Segments, row.UCS2 = size.Segments, size.Encoding == sms.UCS2
	return ""
}

// formulaError is what a spreadsheet shows instead of a result, in English or French.
var formulaError = regexp.MustCompile(`^#(N/A|REF!|VALUE!|NAME\?|DIV/0!|NULL!|NUM!|SPILL!|CALC!|VALEUR!|NOM\?|NOMBRE!|NUL!|#+)$`)

// parseCell reads a number from a cell, as it is shown or exact.
func parseCell(plan *sms.Plan, line *sheetRow, at int) (sms.Number, bool) {
	number, ok := plan.Parse(line.Cells[at])
	if !ok {
		number, ok = plan.Parse(line.exact(at))
	}
	return number, ok
}

// amount returns a number of a workbook as people write it in the user's language: the workbook has an English format,
// and to the reader of a French text "25,000" is 25.
func (v *visit) amount(shown, exact string) string {
	if v.lang.Tag != "fr" || shown == exact || !strings.ContainsAny(shown, ",.") || !amountText.MatchString(shown) {
		return shown
	}
	if _, err := strconv.ParseFloat(exact, 64); err != nil {
		return shown
	}
	return strings.NewReplacer(",", " ", ".", ",").Replace(shown)
}

var amountText = regexp.MustCompile(`^-?[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?( ?%)?$`)

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

package campaigns

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
	"intumwa/texts"
)

// Limits of a campaign, and of one of a company that cannot send yet.
const (
	MaxRecipients = 100_000
	MaxFile       = 8 << 20 // bytes
	MaxTried      = 500     // recipients
	MaxSmallFile  = 1 << 20 // bytes
)

const (
	maxShown  = 40  // characters of a cell that a page shows
	rowsAhead = 100 // of a file, from which its columns are found
)

// Limits returns the maximum number of recipients in a company's campaign and the maximum size of its file in bytes.
// Anyone can create a company, so they are low until it may send.
func Limits(company *accounts.Company) (recipients, size int) {
	if MaySend(company) {
		return MaxRecipients, MaxFile
	}
	return MaxTried, MaxSmallFile
}

// MaySend reports whether a company may send campaigns.
func MaySend(company *accounts.Company) bool { return company.Approved && company.Verified }

// Reading is how a campaign's file was read, or what its user wants.
type Reading struct {
	Encoding string `json:"encoding,omitempty"` // "": guess it; of a workbook
	Sure     bool   `json:"sure,omitempty"`     // the encoding is not a guess
	Sheet    string `json:"sheet,omitempty"`    // of a workbook
	Numbers  string `json:"numbers,omitempty"`  // the column's name
}

// Problem is an error in a line of a file, in the user's language.
type Problem struct {
	Line int // 0: the file as a whole
	Text string
}

// File reads the rows of a campaign's file. It checks each line as the send does, so the send accepts every line
// without a fault.
type File struct {
	intake   *intake.Intake
	plan     *sms.Plan
	lang     *texts.Language
	company  *accounts.Company
	sender   string
	template *sms.Template
	sheet    *sheet
	ahead    []sheetRow // read to find the columns
	most     int        // rows
	read     int

	head    sheetRow
	numbers int            // the column of the numbers
	columns map[string]int // those of the placeholders
}

// Open reads a file of a company with its senders ([accounts.Principal]) up to its header line, or returns what is
// wrong with it. about is what the user said about the file, lang the language of all texts.
func (c *Campaigns) Open(lang *texts.Language, company *accounts.Company, sender, template string, file []byte,
	about Reading) (*File, []Problem) {
	r := &File{intake: c.Intake, plan: c.Plan, lang: lang, company: company, sender: sender,
		template: sms.ParseColumns(template)}
	r.most, _ = Limits(company)
	var err error
	if r.sheet, err = readSheet(file, about.Encoding); err != nil {
		return nil, []Problem{ProblemOf(lang, err)}
	}
	var failed error
	for len(r.ahead) < rowsAhead && failed == nil {
		var row sheetRow
		if row, failed = r.sheet.next(); failed == nil {
			r.ahead = append(r.ahead, row)
		}
	}
	if len(r.ahead) == 0 {
		return nil, []Problem{ProblemOf(lang, failed)}
	}
	if failed != nil {
		r.sheet.next = func() (sheetRow, error) { return sheetRow{}, failed }
	}
	return r, r.findColumns(template, about.Numbers)
}

// Reading returns how the file was read.
func (r *File) Reading() Reading {
	return Reading{Encoding: r.sheet.encoding, Sure: r.sheet.sure, Sheet: shorten(r.sheet.name),
		Numbers: shorten(r.head.Cells[r.numbers])}
}

// next returns the next line after the header.
func (r *File) next() (row sheetRow, err error) {
	if len(r.ahead) > 0 {
		row, r.ahead = r.ahead[0], r.ahead[1:]
		return row, nil
	}
	return r.sheet.next()
}

// ProblemOf returns the text of a [*FileError], or of the end of the file.
func ProblemOf(lang *texts.Language, err error) Problem {
	if e, ok := errors.AsType[*FileError](err); ok {
		return Problem{e.Line, lang.T(e.Key, e.Args...)}
	}
	return Problem{0, lang.T("campaign.file.empty")}
}

// Next returns the next row, and [io.EOF] at the end of the file; other errors are a [*FileError].
func (r *File) Next() (row Row, err error) {
	line, err := r.next()
	switch {
	case errors.Is(err, io.EOF) && r.read == 0:
		return row, &FileError{0, "campaign.file.empty", nil}
	case err != nil:
		return row, err
	case r.read == r.most:
		return row, &FileError{0, "campaign.file.many", []any{r.most}}
	}
	r.read++
	row.Line = line.Line
	row.Fault = r.check(line, &row)
	return row, nil
}

// check fills a row from its line and returns the text of the line's error, if any.
func (r *File) check(line sheetRow, row *Row) (wrong string) {
	switch {
	case line.Foreign:
		return r.lang.T("campaign.line.encoding", shorten(strings.Join(line.Cells, " ")))
	case len(line.Cells) > len(r.head.Cells) && line.Exact == nil: // in a workbook, a remark beside the list moves no cell
		return r.lang.T("campaign.line.cells", len(line.Cells), len(r.head.Cells))
	case line.Written <= r.numbers:
		return r.lang.T("campaign.line.cells", line.Written, len(r.head.Cells))
	case len(line.Cells) <= r.numbers || line.Cells[r.numbers] == "":
		return r.lang.T("campaign.line.none")
	}
	number := line.Cells[r.numbers]
	var ok bool
	if row.Number, ok = parseCell(r.plan, &line, r.numbers); !ok {
		return r.lang.T(numberFaults[r.plan.Fault(number)], shorten(number))
	}
	switch carrier, carried := r.intake.Route(row.Number); {
	case !carried:
		return r.lang.T("campaign.line.carrier", shorten(number))
	case !r.intake.WorksAt(r.company, r.sender, carrier):
		return r.lang.T("campaign.line.registration", carrier, r.sender, shorten(number))
	}
	row.Variables = make(map[string]*string, len(r.columns))
	for name, at := range r.columns {
		if at >= line.Written {
			return r.lang.T("campaign.line.cells", line.Written, len(r.head.Cells))
		}
		value := ""
		if at < len(line.Cells) {
			value = amount(r.lang, line.Cells[at], line.exact(at))
		}
		switch {
		case utf8.RuneCountInString(value) > sms.MaxVariable:
			return r.lang.T("campaign.line.long", shorten(name), sms.MaxVariable)
		case formulaError.MatchString(value):
			return r.lang.T("campaign.line.formula", shorten(value))
		}
		row.Variables[name] = &value
	}
	text, err := r.intake.Render(r.company, r.template, row.Variables)
	if refusal, refused := errors.AsType[sms.Refusal](err); refused {
		return r.lang.Refusal(refusal)
	}
	if at := strings.Index(text, "{{"); at >= 0 { // in a cell
		return r.lang.T("campaign.line.braces", shorten(text[at:]))
	}
	size := sms.Measure(intake.Preview(r.company, text))
	row.Segments, row.UCS2 = size.Segments, size.Encoding == sms.UCS2
	return ""
}

// formulaError is what a spreadsheet shows instead of a result, in English or French.
var formulaError = regexp.MustCompile(
	`^#(N/A|REF!|VALUE!|NAME\?|DIV/0!|NULL!|NUM!|SPILL!|CALC!|VALEUR!|NOM\?|NOMBRE!|NUL!|#+)$`)

// parseCell reads a number from a cell, as it is shown or exact.
func parseCell(plan *sms.Plan, line *sheetRow, at int) (sms.Number, bool) {
	number, ok := plan.Parse(line.Cells[at])
	if !ok {
		number, ok = plan.Parse(line.exact(at))
	}
	if whole := wholeNumber.FindStringSubmatch(line.Cells[at]); !ok && whole != nil {
		number, ok = plan.Parse(whole[1])
	}
	return number, ok
}

// wholeNumber is a number that a program wrote with the decimals of its column: 79123456.0. With eight digits it cannot
// be another number's digits.
var wholeNumber = regexp.MustCompile(`^((?:\+?257)?[0-9]{8})[.,]0+$`)

// amount returns a number of a workbook as people write it in the user's language: the workbook has an English format,
// and to the reader of a French text "25,000" is 25.
func amount(lang *texts.Language, shown, exact string) string {
	if lang.Tag != "fr" || shown == exact || !strings.ContainsAny(shown, ",.") || !amountText.MatchString(shown) {
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
	sms.NumberOther: "campaign.line.number", sms.NumberScientific: "campaign.line.number.scientific",
	sms.NumberDecimal: "campaign.line.number.decimal",
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

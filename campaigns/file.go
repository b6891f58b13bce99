package campaigns

import (
	"errors"
	"regexp"
	"strings"

	"intumwa/accounts"
	"intumwa/campaigns/sheets"
	"intumwa/intake"
	"intumwa/sms"
	"intumwa/texts"
)

// Limits of a campaign, and of one of a company that cannot send yet.
const (
	MaxRecipients = 100_000
	MaxFile       = sheets.MaxFile
	MaxTried      = 500     // recipients
	MaxSmallFile  = 1 << 20 // bytes
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

// File reads the rows of a campaign's file. It checks each line as the send does, so the send accepts every line
// without a fault.
type File struct {
	*sheets.Table
	checker

	columns map[string]int // those of the placeholders
}

// Open reads a file of a company with its senders ([accounts.Principal]) up to its header line, or returns what is
// wrong with it. about is what the user said about the file, lang the language of all texts.
func (c *Campaigns) Open(lang *texts.Language, company *accounts.Company, sender, template string, file []byte,
	about sheets.Reading) (*File, []sheets.Problem) {
	r := &File{checker: c.checker(lang, company, sender, template), columns: map[string]int{}}
	most, _ := Limits(company)
	var wrong []sheets.Problem
	if r.Table, wrong = sheets.Open(lang, c.Plan, file, about, r.template.Names(), most); r.Table == nil {
		return nil, wrong
	}
	for _, name := range r.template.Names() {
		r.columns[name], _ = sheets.ColumnOf(r.Head.Cells, name)
	}
	for _, name := range singleBraces.FindAllStringSubmatch(template, -1) {
		if at, _ := sheets.ColumnOf(r.Head.Cells, name[1]+name[2]); at >= 0 && sheets.ColumnName(name[1]+name[2]) != "" {
			wrong = append(wrong, sheets.Problem{
				Text: lang.T("campaign.template.single", sheets.Shorten(strings.TrimSpace(name[1]+name[2])))})
		}
	}
	return r, wrong
}

// singleBraces are names in single braces.
var singleBraces = regexp.MustCompile(`(?:^|[^{])\{([^{}]+)\}(?:[^}]|$)|｛([^｛｝]+)｝`)

// Next returns the next row, and [io.EOF] at the end of the file; other errors are a [*sheets.Error].
func (r *File) Next() (row Row, err error) {
	line, err := r.Table.Next()
	if err != nil {
		return row, err
	}
	row.Line = line.Line
	row.Fault = r.check(&line, &row)
	return row, nil
}

// check fills a row from its line and returns the text of the line's error, if any.
func (r *File) check(line *sheets.Row, row *Row) (wrong string) {
	if row.Number, wrong = r.Number(line); wrong != "" {
		return wrong
	}
	if wrong = r.reaches(row.Number, line.Cells[r.Numbers]); wrong != "" {
		return wrong
	}
	row.Variables = make(map[string]*string, len(r.columns))
	for name, at := range r.columns {
		value, wrong := r.Value(line, at, name)
		if wrong != "" {
			return wrong
		}
		row.Variables[name] = &value
	}
	return r.render(row)
}

// checker checks recipients as the send does.
type checker struct {
	intake   *intake.Intake
	lang     *texts.Language
	company  *accounts.Company
	sender   string
	template *sms.Template
}

func (c *Campaigns) checker(lang *texts.Language, company *accounts.Company, sender, template string) checker {
	return checker{c.Intake, lang, company, sender, sms.ParseColumns(template)}
}

// reaches returns why the sender cannot reach a number, written so in the list; "" if it can.
func (r *checker) reaches(number sms.Number, written string) (wrong string) {
	switch carrier, carried := r.intake.Route(number); {
	case !carried:
		return r.lang.T("campaign.line.carrier", sheets.Shorten(written))
	case !r.intake.WorksAt(r.company, r.sender, carrier):
		return r.lang.T("campaign.line.registration", carrier, r.sender, sheets.Shorten(written))
	}
	return ""
}

// render measures the text of a row with variables, or returns what is wrong with it.
func (r *checker) render(row *Row) (wrong string) {
	text, err := r.intake.Render(r.company, r.template, row.Variables)
	if refusal, refused := errors.AsType[sms.Refusal](err); refused {
		return r.lang.Refusal(refusal)
	}
	if at := strings.Index(text, "{{"); at >= 0 { // in a cell
		return r.lang.T("campaign.line.braces", sheets.Shorten(text[at:]))
	}
	size := sms.Measure(intake.Preview(r.company, text))
	row.Segments, row.UCS2 = size.Segments, size.Encoding == sms.UCS2
	return ""
}

package sheets

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"intumwa/sms"
	"intumwa/texts"
)

const (
	maxShown  = 40  // characters of a cell that a page shows
	rowsAhead = 100 // of a file, from which its columns are found
)

// Reading is how a file was read, or what its user wants.
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

// ProblemOf returns the text of a [*Error], or of the end of the file.
func ProblemOf(lang *texts.Language, err error) Problem {
	if e, ok := errors.AsType[*Error](err); ok {
		return Problem{e.Line, lang.T(e.Key, e.Args...)}
	}
	return Problem{0, lang.T("campaign.file.empty")}
}

// Table is a file with phone numbers, read up to its header line.
type Table struct {
	Head    Row
	Numbers int  // the column of the numbers
	Bare    bool // the file has no header line: the columns have the letters of a spreadsheet

	plan  *sms.Plan
	lang  *texts.Language
	sheet *sheet
	ahead []Row // read to find the columns
	most  int   // lines
	read  int
}

// Open reads a file up to its header line, which has the columns wanted; without any a bare list of numbers will do. It
// finds the column of the numbers: the one that the user named, or the one with the name or the contents for it. A
// Table is nil if the file cannot be read at all. most is the greatest number of lines, lang the language of all texts.
func Open(lang *texts.Language, plan *sms.Plan, file []byte, about Reading, wanted []string, most int) (*Table,
	[]Problem) {
	t := &Table{plan: plan, lang: lang, most: most}
	var err error
	if t.sheet, err = readSheet(file, about.Encoding); err != nil {
		return nil, []Problem{ProblemOf(lang, err)}
	}
	var failed error
	for len(t.ahead) < rowsAhead && failed == nil {
		var row Row
		if row, failed = t.sheet.next(); failed == nil {
			t.ahead = append(t.ahead, row)
		}
	}
	if len(t.ahead) == 0 {
		return nil, []Problem{ProblemOf(lang, failed)}
	}
	if failed != nil {
		t.sheet.next = func() (Row, error) { return Row{}, failed }
	}
	return t, t.findColumns(wanted, about.Numbers)
}

func (t *Table) findColumns(wanted []string, numbers string) (wrong []Problem) {
	at := headerAt(t.ahead, wanted)
	t.Head, t.ahead = t.ahead[at], t.ahead[at+1:]
	if t.Head.Foreign {
		return []Problem{{t.Head.Line, t.lang.T("campaign.line.encoding", Shorten(strings.Join(t.Head.Cells, " ")))}}
	}
	if t.hasNumber(&t.Head) {
		if len(wanted) > 0 {
			return []Problem{{t.Head.Line, t.lang.T("campaign.file.head")}}
		}
		t.ahead = append([]Row{t.Head}, t.ahead...) // a bare list of numbers
		t.Head = Row{Line: t.Head.Line}
		for _, row := range t.ahead {
			for i := len(t.Head.Cells); i < len(row.Cells); i++ {
				t.Head.Cells = append(t.Head.Cells, sheetLetters(i))
			}
		}
		t.Bare = true
	}
	for _, name := range wanted {
		switch at, twice := ColumnOf(t.Head.Cells, name); {
		case at < 0:
			wrong = append(wrong, Problem{t.Head.Line, t.lang.T("campaign.file.column", Shorten(name))})
		case twice:
			wrong = append(wrong, Problem{t.Head.Line, t.lang.T("campaign.file.twice", Shorten(name))})
		}
	}
	var why string
	if t.Numbers, why = t.numbersAt(numbers); why != "" {
		wrong = append(wrong, Problem{t.Head.Line, why})
	}
	return wrong
}

// Reading returns how the file was read.
func (t *Table) Reading() Reading {
	return Reading{Encoding: t.sheet.encoding, Sure: t.sheet.sure, Sheet: Shorten(t.sheet.name),
		Numbers: Shorten(t.Head.Cells[t.Numbers])}
}

// Next returns the next line after the header, and [io.EOF] at the end of the file; other errors are a [*Error].
func (t *Table) Next() (row Row, err error) {
	if len(t.ahead) > 0 {
		row, t.ahead = t.ahead[0], t.ahead[1:]
	} else {
		row, err = t.sheet.next()
	}
	switch {
	case errors.Is(err, io.EOF) && t.read == 0:
		return row, &Error{0, "campaign.file.empty", nil}
	case err != nil:
		return row, err
	case t.read == t.most:
		return row, &Error{0, "campaign.file.many", []any{t.most}}
	}
	t.read++
	return row, nil
}

// Number returns the number of a line, or the text of the line's error.
func (t *Table) Number(line *Row) (number sms.Number, wrong string) {
	switch {
	case line.Foreign:
		return "", t.lang.T("campaign.line.encoding", Shorten(strings.Join(line.Cells, " ")))
	case len(line.Cells) > len(t.Head.Cells) && line.Exact == nil: // in a workbook, a remark beside the list moves no cell
		return "", t.lang.T("campaign.line.cells", len(line.Cells), len(t.Head.Cells))
	case line.Written <= t.Numbers:
		return "", t.lang.T("campaign.line.cells", line.Written, len(t.Head.Cells))
	case len(line.Cells) <= t.Numbers || line.Cells[t.Numbers] == "":
		return "", t.lang.T("campaign.line.none")
	}
	number, ok := parseCell(t.plan, line, t.Numbers)
	if !ok {
		written := line.Cells[t.Numbers]
		return "", t.lang.T(numberFaults[t.plan.Fault(written)], Shorten(written))
	}
	return number, ""
}

// Value returns a cell as people write it, or the text of its error. name is the column's.
func (t *Table) Value(line *Row, at int, name string) (value, wrong string) {
	if at >= line.Written {
		return "", t.lang.T("campaign.line.cells", line.Written, len(t.Head.Cells))
	}
	if at < len(line.Cells) {
		value = amount(t.lang, line.Cells[at], line.exact(at))
	}
	switch {
	case utf8.RuneCountInString(value) > sms.MaxVariable:
		return "", t.lang.T("campaign.line.long", Shorten(name), sms.MaxVariable)
	case formulaError.MatchString(value):
		return "", t.lang.T("campaign.line.formula", Shorten(value))
	}
	return value, ""
}

// formulaError is what a spreadsheet shows instead of a result, in English or French.
var formulaError = regexp.MustCompile(
	`^#(N/A|REF!|VALUE!|NAME\?|DIV/0!|NULL!|NUM!|SPILL!|CALC!|VALEUR!|NOM\?|NOMBRE!|NUL!|#+)$`)

// parseCell reads a number from a cell, as it is shown or exact.
func parseCell(plan *sms.Plan, line *Row, at int) (sms.Number, bool) {
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

// Shorten cuts a cell's text for a page.
func Shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxShown {
		return text
	}
	return string(runes[:maxShown]) + "…"
}

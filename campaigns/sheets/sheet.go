// Package sheets reads lists of people as they have them: workbooks, and CSV files in any usual encoding.
package sheets

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode"

	"intumwa/texts"
)

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 8 << 20

const (
	maxSheetLine = 16 << 10 // bytes of one of its lines, as text
	maxColumns   = 50
)

// Error is the reason why a file is unreadable: a text, and the line if known.
type Error struct {
	Line int // 0: the whole file
	Key  string
	Args []any
}

// Error implements error. It is not shown.
func (e *Error) Error() string { return e.Key }

// Row is a line of a file with its number, from 1 as in editors.
type Row struct {
	Line    int
	Cells   []string // without empty ones at the end
	Written int      // cells, with those; a workbook leaves them out
	Exact   []string // of a workbook: the cells without their number format; nil: as Cells
	Foreign bool     // the line is in another encoding than the others
}

// exact returns a cell without its number format.
func (r *Row) exact(at int) string {
	if at < len(r.Exact) {
		return r.Exact[at]
	}
	return r.Cells[at]
}

// sheet is a file's rows. Each call of next returns one row, and io.EOF at the end. Empty lines are skipped. All other
// errors are a *Error.
type sheet struct {
	next     func() (Row, error)
	encoding string // "": of a workbook
	sure     bool   // the encoding is not a guess
	name     string // of a workbook's sheet
}

// readSheet reads a workbook, or a CSV file as programs and spreadsheets write it: in any usual encoding, with commas,
// semicolons, tabs or bars. want is the encoding that the user chose; "" is a guess.
func readSheet(file []byte, want string) (*sheet, error) {
	if kind, isBook := bookKind(file); isBook {
		if kind != "" {
			return nil, &Error{0, kind, nil}
		}
		return readBook(file)
	}
	t, err := decodeSheet(file, want)
	if err != nil {
		return nil, err
	}
	long := 0
	for l := range strings.Lines(t.text) { // no real list of recipients has such lines, and parsing them costs memory
		if long++; len(l) > maxSheetLine {
			return nil, &Error{long, "campaign.file.line", nil}
		}
	}
	text, comma := namedSeparator(t.text)
	if comma == 0 {
		comma = separator(text)
	}
	r := records{text, byte(comma), 1}
	return &sheet{encoding: t.encoding, sure: t.sure, next: func() (Row, error) {
		for {
			cells, first, last, err := r.read()
			switch {
			case errors.Is(err, io.EOF):
				return Row{}, io.EOF
			case err != nil:
				return Row{}, &Error{first, "campaign.file.quotes", nil}
			}
			for i := range cells { // of a file that we wrote
				cells[i] = texts.FromCell(cells[i])
			}
			row := Row{Line: first, Written: len(cells)}
			for line := first; line <= last && len(t.foreign) > 0; line++ {
				row.Foreign = row.Foreign || t.foreign[line]
			}
			if row.Cells = trimmed(cells); len(row.Cells) > maxColumns {
				return Row{}, &Error{row.Line, "campaign.file.columns", []any{maxColumns}}
			}
			if len(row.Cells) > 0 {
				return row, nil
			}
		}
	}}, nil
}

// trimmed returns cells without the blanks and invisible characters around their texts, and without empty cells at the
// end: a spreadsheet writes them for columns that once had something.
func trimmed(cells []string) []string {
	used := 0
	for i := range cells {
		cells[i] = strings.TrimFunc(cells[i], func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
		if cells[i] != "" {
			used = i + 1
		}
	}
	return cells[:used]
}

const separators = ",;\t|"

// sepLine is Excel's first line that names the separator.
var sepLine = regexp.MustCompile(`^\s*"?(?i:sep)=(.)"?[ ,;\t|]*(?:\n|$)`)

// namedSeparator returns the separator that a file names, 0 if none, and the file with an empty line instead of the
// name.
func namedSeparator(text string) (rest string, comma rune) {
	m := sepLine.FindStringSubmatchIndex(text)
	if m == nil || !strings.Contains(separators, text[m[2]:m[3]]) {
		return text, 0
	}
	return strings.Repeat("\n", strings.Count(text[:m[1]], "\n")) + text[m[1]:], rune(text[m[2]])
}

// separator returns the separator of cells: the one with which the most of the first lines have one number of cells,
// and more than one: a title has one. Of several it is the one that is followed by fewer blanks, or else the one with
// the most cells. A comma in a name or an amount is none.
func separator(text string) rune {
	const lines = 20
	best, bestRows, bestBlanks, bestCells := ',', 0, 0, 0
	for _, comma := range separators {
		r := records{text, byte(comma), 1}
		blanks, most, rows := 0, 0, map[int]int{}
		for read := 0; read < lines; {
			row, _, _, err := r.read()
			if err != nil {
				break
			}
			for _, c := range row {
				if strings.HasPrefix(c, " ") {
					blanks++
				}
			}
			n := len(trimmed(row))
			if n > 0 {
				read++
			}
			if n < 2 {
				continue
			}
			if rows[n]++; rows[n] > rows[most] || rows[n] == rows[most] && n > most {
				most = n
			}
		}
		if n := rows[most]; n > bestRows || n > 0 && n == bestRows &&
			(blanks < bestBlanks || blanks == bestBlanks && most > bestCells) {
			best, bestRows, bestBlanks, bestCells = comma, n, blanks, most
		}
	}
	return best
}

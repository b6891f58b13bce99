package dashboard

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

const (
	maxSheet     = 8 << 20  // bytes of a file
	maxSmall     = 1 << 20  // of a company that cannot send campaigns yet
	maxSheetLine = 16 << 10 // bytes of one of its lines, as text
	maxColumns   = 50
)

// sheetError is the reason why a file is unreadable: a text, and the line if known.
type sheetError struct {
	Line int // 0: the whole file
	Key  string
	Args []any
}

// Error implements error. It is not shown.
func (e *sheetError) Error() string { return e.Key }

// sheetRow is a line of a file with its number, from 1 as in editors.
type sheetRow struct {
	Line  int
	Cells []string
}

// readSheet reads a CSV file. Each call of next returns one row, and io.EOF at the end. The file is in UTF-8, UTF-16
// with a byte order mark or Windows-1252, with commas, semicolons or tabs, as programs and spreadsheets write it. Empty
// lines are skipped. All other errors, including next's, are a *sheetError.
func readSheet(file []byte) (next func() (sheetRow, error), err error) {
	text, err := decodeSheet(file)
	if err != nil {
		return nil, err
	}
	long := 0
	for l := range strings.Lines(text) { // no real list of recipients has such lines, and parsing them costs memory
		if long++; len(l) > maxSheetLine {
			return nil, &sheetError{long, "campaign.file.line", nil}
		}
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord = separator(text), -1
	return func() (sheetRow, error) {
		for {
			cells, err := r.Read()
			if errors.Is(err, io.EOF) {
				return sheetRow{}, io.EOF
			}
			if err != nil {
				line := 0
				if parse, ok := errors.AsType[*csv.ParseError](err); ok {
					line = parse.Line
				}
				return sheetRow{}, &sheetError{line, "campaign.file.quotes", nil}
			}
			line, _ := r.FieldPos(0)
			if len(cells) > maxColumns {
				return sheetRow{}, &sheetError{line, "campaign.file.columns", []any{maxColumns}}
			}
			blank := true
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
				blank = blank && cells[i] == ""
			}
			if !blank {
				return sheetRow{line, cells}, nil
			}
		}
	}, nil
}

// decodeSheet returns a file's text in UTF-8 with lines that end in \n.
func decodeSheet(file []byte) (string, error) {
	var text string
	switch {
	case bytes.HasPrefix(file, []byte("PK\x03\x04")) || bytes.HasPrefix(file, []byte("\xd0\xcf\x11\xe0")):
		return "", &sheetError{0, "campaign.file.excel", nil}
	case bytes.HasPrefix(file, []byte("\xff\xfe")) || bytes.HasPrefix(file, []byte("\xfe\xff")):
		decoded, _ := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(file) // invalid characters are refused below
		text = string(decoded)
	case utf8.Valid(file):
		text = string(bytes.TrimPrefix(file, []byte("\ufeff")))
	default:
		decoded, _ := charmap.Windows1252.NewDecoder().Bytes(file) // the same
		text = string(decoded)
	}
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r == utf8.RuneError || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f
	}); i >= 0 {
		return "", &sheetError{1 + strings.Count(text[:i], "\n"), "campaign.file.octets", nil}
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), nil
}

// separator returns the separator of cells: the most frequent of the three in the first line that has any.
func separator(text string) rune {
	text = strings.TrimLeft(text, "\n \t")
	counts := map[rune]int{}
	quotes := false
	for _, r := range text {
		if r == '"' {
			quotes = !quotes
		}
		if r == '\n' && !quotes {
			break
		}
		if !quotes {
			counts[r]++
		}
	}
	best := ','
	for _, r := range ";\t" {
		if counts[r] > counts[best] {
			best = r
		}
	}
	return best
}

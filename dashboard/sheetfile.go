package dashboard

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

const (
	maxSheet     = 1 << 20  // octets of a file
	maxSheetLine = 16 << 10 // octets of one of its lines, as text
	maxColumns   = 50
)

// sheetError is the reason why a file cannot be read: a text, and the line if it is known.
type sheetError struct {
	Line int // 0: the whole file
	Key  string
	Args []any
}

// Error implements error. It is not shown.
func (e *sheetError) Error() string { return e.Key }

// sheetRow is a line of a file with its number, from 1 as editors count them.
type sheetRow struct {
	Line  int
	Cells []string
}

// readSheet reads up to most rows of a CSV file, and one more if there are more: in UTF-8, UTF-16 or Windows-1252, with
// commas, semicolons or tabs, as programs and spreadsheets write them. Empty lines are skipped. The error is a
// *sheetError.
func readSheet(file []byte, most int) ([]sheetRow, error) {
	text, err := decodeSheet(file)
	if err != nil {
		return nil, err
	}
	if err := checkLines(text); err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord = separator(text), -1
	var rows []sheetRow
	for len(rows) <= most {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line := 0
			if parse, ok := errors.AsType[*csv.ParseError](err); ok {
				line = parse.Line
			}
			return nil, &sheetError{line, "campaign.file.quotes", nil}
		}
		line, _ := r.FieldPos(0)
		if len(cells) > maxColumns {
			return nil, &sheetError{line, "campaign.file.columns", []any{maxColumns}}
		}
		blank := true
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
			blank = blank && cells[i] == ""
		}
		if !blank {
			rows = append(rows, sheetRow{line, cells})
		}
	}
	return rows, nil
}

// decodeSheet returns a file's text in UTF-8 with lines that end in \n.
func decodeSheet(file []byte) (string, error) {
	var text string
	switch {
	case bytes.HasPrefix(file, []byte("PK\x03\x04")) || bytes.HasPrefix(file, []byte("\xd0\xcf\x11\xe0")):
		return "", &sheetError{0, "campaign.file.excel", nil}
	case bytes.HasPrefix(file, []byte("\xff\xfe")):
		text = wide(file[2:], false)
	case bytes.HasPrefix(file, []byte("\xfe\xff")):
		text = wide(file[2:], true)
	case looksWide(file, 1):
		text = wide(file, false)
	case looksWide(file, 0):
		text = wide(file, true)
	case utf8.Valid(file):
		text = string(bytes.TrimPrefix(file, []byte("\ufeff")))
	default:
		// Every octet is a character or refused below: it cannot fail.
		decoded, _ := charmap.Windows1252.NewDecoder().Bytes(file)
		text = string(decoded)
	}
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r == utf8.RuneError || r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f
	}); i >= 0 {
		return "", &sheetError{1 + strings.Count(text[:i], "\n"), "campaign.file.octets", nil}
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), nil
}

// looksWide reports whether a file is UTF-16 without a byte order mark: at its beginning, from the given octet on, every
// second octet is zero, as in Latin text, and no other.
func looksWide(file []byte, nought int) bool {
	head := file[:min(len(file), 64)&^1]
	for i, octet := range head {
		if (octet == 0) != (i%2 == nought) {
			return false
		}
	}
	return len(head) >= 4
}

func wide(octets []byte, bigEndian bool) string {
	units := make([]uint16, len(octets)/2)
	for i := range units {
		a, b := uint16(octets[2*i]), uint16(octets[2*i+1])
		if bigEndian {
			units[i] = a<<8 | b
		} else {
			units[i] = b<<8 | a
		}
	}
	return string(utf16.Decode(units))
}

// checkLines refuses files that cannot be lists of recipients, before they are parsed.
func checkLines(text string) error {
	line := 0
	for l := range strings.Lines(text) {
		if line++; len(l) > maxSheetLine {
			return &sheetError{line, "campaign.file.line", nil}
		}
	}
	return nil
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

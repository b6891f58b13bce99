package sheets

import (
	"errors"
	"io"
	"strings"
)

// errQuotes: a quotation mark opens a cell, and it cannot be said where the cell ends.
var errQuotes = errors.New("quotation marks")

// records reads the lines of a CSV file as RFC 4180 has them, and what people's files have besides: quotation marks
// within a cell are part of it (TV 32" Samsung), and Excel's formula of a text ("=""x""", ="x") is the text.
type records struct {
	text  string // the rest
	comma byte
	line  int // of the next record, from 1
}

// read returns the cells of the next record, the line on which it begins and the one on which it ends. The errors are
// [io.EOF] and errQuotes, with the line of the quotation mark as first.
func (r *records) read() (cells []string, first, last int, err error) {
	if r.text == "" {
		return nil, 0, 0, io.EOF
	}
	first = r.line
	for more := true; more; {
		var cell string
		if cell, more, err = r.cell(); err != nil {
			return nil, r.line, r.line, err
		}
		cells = append(cells, cell)
	}
	last = r.line
	r.line++
	return cells, first, last, nil
}

// cell reads a cell with the separator or the line end behind it. more is true after a separator.
func (r *records) cell() (cell string, more bool, err error) {
	trimmed := strings.TrimLeft(r.text, " ")
	if quoted, is := strings.CutPrefix(strings.TrimPrefix(trimmed, "="), `"`); is {
		cell, rest, ok := r.quoted(quoted)
		if ok {
			r.line += strings.Count(cell, "\n")
			more = r.rest(rest)
			return unformula(cell), more, nil
		}
		line, _, _ := strings.Cut(quoted, "\n")
		if !strings.ContainsRune(line, '"') {
			return "", false, errQuotes
		}
	}
	end := strings.IndexAny(r.text, string([]byte{r.comma, '\n'}))
	if end < 0 {
		end = len(r.text)
	}
	cell = r.text[:end]
	return cell, r.rest(r.text[end:]), nil
}

// rest takes the separator or the line end from the beginning of rest, and reports whether it is a separator.
func (r *records) rest(rest string) (more bool) {
	more = rest != "" && rest[0] == r.comma
	r.text = rest[min(1, len(rest)):]
	return more
}

// quoted returns the text up to the quotation mark that closes a cell, and what follows that. A mark followed by
// something else than the cell's end is part of a cell of one line; of a longer one, it is the end of another cell.
func (r *records) quoted(text string) (cell, rest string, ok bool) {
	var all strings.Builder
	odd, lines := false, false
	for all.Len() <= maxSheetLine {
		part, after, found := strings.Cut(text, `"`)
		lines = lines || strings.Contains(part, "\n")
		if !found || odd && lines {
			return "", "", false
		}
		all.WriteString(part)
		end := strings.TrimLeft(after, " ")
		switch {
		case end == "" || end[0] == r.comma || end[0] == '\n':
			return all.String(), end, true
		case after[0] == '"':
			after = after[1:]
		default:
			odd = true
		}
		all.WriteByte('"')
		text = after
	}
	return "", "", false
}

// unformula returns the text of a cell with Excel's formula of a text.
func unformula(cell string) string {
	if text, is := strings.CutPrefix(cell, `="`); is && strings.HasSuffix(text, `"`) &&
		!strings.Contains(text[:len(text)-1], `"`) {
		return text[:len(text)-1]
	}
	return cell
}

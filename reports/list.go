package reports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"intumwa/messages/statistics"
)

// Limits of a carrier's list.
const (
	maxLine   = 64 << 10
	maxLines  = 100_000_000
	headLines = 10 // within which the names of its columns stand
)

// ErrList means that a carrier's list cannot be read.
var ErrList = errors.New("it is no list of message ids")

// idColumns are the names of the column of the ids, without what separates words; the first of them that a list has
// counts.
var idColumns = []string{"messageid", "msgid", "smscmessageid", "smscmsgid", "smscid", "carriermessageid", "smsid",
	"idmessage", "iddumessage", "idsms",
	"messageidentifier", "identifiantmessage", "identifiantdumessage", "identifiant", "id"}

// spoilt is an id that a spreadsheet took for a number.
var spoilt = regexp.MustCompile(`^[0-9]+([.,][0-9]+)?[eE]\+[0-9]+$`)

// EachListed calls do with the ids of a carrier's list: the column of the ids ([idColumns]), or without such a heading
// the first column. It is a text in UTF-8 or UTF-16, in any form of CSV that spreadsheets write, with titles above.
// Empty cells are left out. The memory does not depend on the list's length. The errors are [ErrList] with the line and
// the cause, and those of do and of reading.
func EachListed(list io.Reader, do func(id string) error) error {
	lines := bufio.NewScanner(asUTF8(list))
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	lines.Split(anyLine)
	n, separator, ended := 0, "", false
	next := func() (line string, ok bool) {
		for !ended {
			if ended = !lines.Scan(); ended {
				break
			}
			n++
			if line = strings.TrimPrefix(lines.Text(), "\ufeff"); strings.Trim(line, " ,;\t|\x1a") != "" {
				return line, true
			}
		}
		return "", false
	}
	var head []string
	var at []int
	for len(head) < headLines {
		line, ok := next()
		if !ok {
			break
		}
		if name, is := strings.CutPrefix(strings.ToLower(strings.Trim(line, `" ,;`)), "sep="); is && n == 1 {
			if separator = name; separator == "" { // trimmed off
				separator = string(strings.ToLower(strings.Trim(line, `" `))[4])
			}
			continue
		}
		head, at = append(head, line), append(at, n)
	}
	if separator == "" {
		separator = separatorOf(head)
	}
	err := EachListedRow(func(row func(line int, cells []string) error) error {
		for i, line := range head {
			if err := row(at[i], cellsOf(line, separator)); err != nil {
				return err
			}
		}
		for line, ok := next(); ok; line, ok = next() {
			if err := row(n, cellsOf(line, separator)); err != nil {
				return err
			}
		}
		return nil
	}, do)
	switch {
	case err != nil:
		return err
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		return fmt.Errorf("%w: line %d has more than %d bytes", ErrList, n+1, maxLine)
	}
	return lines.Err()
}

// EachListedRow is [EachListed] of a list in another form; rows calls row with its lines.
func EachListedRow(rows func(row func(line int, cells []string) error) error, do func(id string) error) error {
	l := listed{do: do}
	err := rows(l.row)
	if err == nil {
		err = l.begin()
	}
	if err == nil && l.cut > 1 && l.cut == l.long {
		err = fmt.Errorf("%w: all its %d long ids end with zeros after fifteen digits. %s", ErrList, l.long, spoiltAdvice)
	}
	return err
}

const spoiltAdvice = "A spreadsheet took them for numbers and lost the last digits. Ask for the list as the " +
	"carrier's program wrote it, or as text cells"

// listed takes the rows of a list.
type listed struct {
	do     func(id string) error
	head   []listRow // until the column is known
	begun  bool
	column int
	long   int // decimal ids of more than 16 digits
	cut    int // of these, those with nothing but zeros after the 15 digits that a spreadsheet keeps
}

type listRow struct {
	line  int
	cells []string
}

func (l *listed) row(line int, cells []string) error {
	switch {
	case len(cells) == 0:
		return nil
	case l.begun:
		return l.take(line, cells)
	case line > 0 && len(l.head) < headLines:
		l.head = append(l.head, listRow{line, slices.Clone(cells)})
		return nil
	}
	if err := l.begin(); err != nil {
		return err
	}
	return l.take(line, cells)
}

// begin finds the column in the first rows, and takes those below its name, or from the first that may be an id.
func (l *listed) begin() error {
	if l.begun {
		return nil
	}
	l.begun = true
	from := slices.IndexFunc(l.head, func(r listRow) bool { return idColumn(r.cells) >= 0 })
	if from >= 0 {
		l.column = idColumn(l.head[from].cells)
		from++
	} else if from = slices.IndexFunc(l.head, func(r listRow) bool {
		return strings.ContainsAny(r.cells[0], "0123456789") && !strings.Contains(strings.TrimSpace(r.cells[0]), " ")
	}); from < 0 { // the first with a digit is refused
		if from = slices.IndexFunc(l.head, func(r listRow) bool {
			return strings.ContainsAny(r.cells[0], "0123456789")
		}); from < 0 {
			from = len(l.head)
		}
	}
	for _, r := range l.head[from:] {
		if err := l.take(r.line, r.cells); err != nil {
			return err
		}
	}
	return nil
}

func idColumn(cells []string) int {
	for _, name := range idColumns {
		if at := slices.IndexFunc(cells, func(cell string) bool {
			return strings.NewReplacer("_", "", " ", "", "-", "", ".", "").Replace(
				strings.ToLower(strings.TrimSpace(cell))) == name
		}); at >= 0 {
			return at
		}
	}
	return -1
}

func (l *listed) take(line int, cells []string) error {
	if l.column >= len(cells) {
		return nil
	}
	id := strings.TrimPrefix(strings.TrimSpace(cells[l.column]), "'")
	if text, is := strings.CutPrefix(id, `="`); is {
		id = strings.TrimSuffix(text, `"`)
	}
	decimal := strings.Trim(id, "0123456789") == ""
	switch {
	case id == "":
		return nil
	case line > maxLines:
		return fmt.Errorf("%w: it has more than %d lines", ErrList, maxLines)
	case spoilt.MatchString(id):
		return fmt.Errorf("%w: line %d has %s instead of an id. %s", ErrList, line, id, spoiltAdvice)
	case strings.ContainsAny(id, " \u00a0"):
		return fmt.Errorf("%w: line %d: %q is no message id; name the column of the ids message_id", ErrList, line,
			id[:min(len(id), 40)])
	case decimal && len(id) > 16:
		l.long++
		if strings.Trim(id[15:], "0") == "" {
			l.cut++
		}
	}
	if err := l.do(id); err != nil {
		return fmt.Errorf("line %d: %w", line, err)
	}
	return nil
}

// separatorOf returns the separator of a list: the one that makes the most cells of the line with the columns' names,
// or of all the first lines.
func separatorOf(head []string) string {
	cells := func(separator string) (n int) {
		for _, line := range head {
			of := cellsOf(line, separator)
			if n += len(of); idColumn(of) >= 0 {
				n += headLines * maxLine
			}
		}
		return n
	}
	return slices.MaxFunc([]string{",", ";", "\t", "|"}, func(a, b string) int { return cells(a) - cells(b) })
}

// cellsOf splits a line. Quotation marks around a cell keep separators in it; two of them are one.
func cellsOf(line, separator string) (cells []string) {
	for {
		trimmed := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(trimmed, `"`) {
			cell, rest, more := strings.Cut(line, separator)
			if cells = append(cells, strings.TrimSpace(cell)); !more {
				return cells
			}
			line = rest
			continue
		}
		cell, rest := "", trimmed[1:]
		for {
			part, after, closed := strings.Cut(rest, `"`)
			cell += part
			if rest = after; !closed || !strings.HasPrefix(after, `"`) {
				break
			}
			cell, rest = cell+`"`, after[1:]
		}
		cells = append(cells, strings.TrimSpace(cell))
		_, after, more := strings.Cut(rest, separator)
		if !more {
			return cells
		}
		line = after
	}
}

// anyLine is a [bufio.SplitFunc] for lines that end in \n, \r\n or \r.
func anyLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexAny(data, "\r\n")
	switch {
	case end < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case end < 0:
		return 0, nil, nil
	case data[end] == '\n':
		return end + 1, data[:end], nil
	case end+1 < len(data) && data[end+1] == '\n':
		return end + 2, data[:end], nil
	case end+1 < len(data) || atEOF:
		return end + 1, data[:end], nil
	}
	return 0, nil, nil
}

// asUTF8 decodes UTF-16, with a byte order mark or without: then the first character is ASCII.
func asUTF8(list io.Reader) io.Reader {
	in := bufio.NewReaderSize(list, maxLine)
	begin, _ := in.Peek(2)
	if len(begin) < 2 {
		return in
	}
	switch high := [2]byte(begin); {
	case high == [2]byte{0xff, 0xfe} || high[0] != 0 && high[1] == 0:
		return &wide{in: in, high: 1}
	case high == [2]byte{0xfe, 0xff} || high[0] == 0 && high[1] != 0:
		return &wide{in: in, high: 0}
	}
	return in
}

// wide is a text in UTF-16.
type wide struct {
	in   *bufio.Reader
	high int // the place of the high byte
	out  []byte
	half rune // the first half of a pair; 0: none
}

// Read implements io.Reader.
func (w *wide) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		var unit [2]byte
		if _, err := io.ReadFull(w.in, unit[:]); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			return 0, err
		}
		r := rune(unit[w.high])<<8 | rune(unit[1-w.high])
		switch {
		case w.half != 0:
			r, w.half = utf16.DecodeRune(w.half, r), 0
		case utf16.IsSurrogate(r):
			w.half = r
			continue
		}
		w.out = utf8.AppendRune(w.out, r)
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

// DifferenceHeads are the columns of the messages behind an invoice's difference.
var DifferenceHeads = []string{"message_id", "id", "company_id", "accepted_at", "carrier", "status", "test",
	"segments_accepted", "credits_charged"}

// DifferenceRow is a row of DifferenceHeads.
func DifferenceRow(d *statistics.Discrepancy) []any {
	return []any{d.MessageID, d.ULID.String(), int64(d.Company), d.AcceptedAt, d.Carrier, d.Status.String(), d.Test,
		d.Accepted, d.Charged}
}

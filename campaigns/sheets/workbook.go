package sheets

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"unicode"

	"github.com/xuri/excelize/v2"
)

// The limits of a workbook. The library holds it unpacked, and parses some parts as a whole.
const (
	maxBook      = 64 << 20  // bytes, unpacked
	maxRatio     = 100       // bytes unpacked per packed one, of a workbook over smallBook
	smallBook    = 4 << 20   // bytes, unpacked
	maxBookParts = 1000      // files in it
	maxMarks     = 8_000_000 // tags and attributes of a sheet
	maxOtherMark = 2_000_000 // of another part
	maxTag       = 64 << 10  // bytes of one tag
	maxSheets    = 50        // that are looked at
)

// IsBook reports whether a file is no text. Reading a workbook unpacks it in memory.
func IsBook(file []byte) bool {
	_, is := bookKind(file)
	return is
}

// bookKind reports whether a file is none of text, and why it cannot be read: "" for a workbook that can.
func bookKind(file []byte) (unreadable string, is bool) {
	begins := func(with ...string) bool {
		for _, w := range with {
			if bytes.HasPrefix(file, []byte(w)) {
				return true
			}
		}
		return false
	}
	start := strings.ToLower(strings.TrimLeft(string(bytes.TrimPrefix(file[:min(len(file), 1024)], []byte("\ufeff"))),
		" \r\n\t"))
	switch {
	case begins("PK\x03\x04"):
		archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return "campaign.file.broken", true
		}
		return packed(archive), true
	case begins("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"): // of Excel before 2007; or of a newer one with a password
		return "campaign.file.excel", true
	case strings.HasPrefix(start, "<?xml") && strings.Contains(start, "office:spreadsheet"): // “XML Spreadsheet 2003”
		return "campaign.file.excel", true
	case begins("PK", "%PDF", "{\\rtf", "\x89PNG", "\xff\xd8\xff", "Rar!", "7z\xbc\xaf", "\x1f\x8b") ||
		strings.HasPrefix(start, "<html") || strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<table"):
		return "campaign.file.other", true
	}
	return "", false
}

// packed returns why a ZIP file cannot be read; "" for a workbook of Excel 2007 or newer.
func packed(archive *zip.Reader) string {
	for _, f := range archive.File[:min(len(archive.File), maxBookParts)] {
		switch name := strings.ToLower(strings.ReplaceAll(f.Name, `\`, "/")); {
		case name == "xl/workbook.xml":
			return ""
		case name == "xl/workbook.bin", name == "mimetype", strings.HasPrefix(name, "index/"): // .xlsb, LibreOffice, Numbers
			return "campaign.file.excel"
		}
	}
	return "campaign.file.other"
}

// readBook reads the first visible sheet of a workbook that has any text. Call close when its rows are read.
func readBook(file []byte) (s *sheet, err error) {
	defer recovered(&err)
	if err := checkBook(file); err != nil {
		return nil, err
	}
	// never on disk
	book, err := excelize.OpenReader(bytes.NewReader(file),
		excelize.Options{UnzipSizeLimit: maxBook, UnzipXMLSizeLimit: maxBook,
			ShortDatePattern: "dd/mm/yyyy", LongDatePattern: "dd/mm/yyyy"})
	if err != nil {
		return nil, &Error{0, "campaign.file.broken", nil}
	}
	names := book.GetSheetList()
	for _, name := range names[:min(len(names), maxSheets)] {
		if visible, err := book.GetSheetVisible(name); err != nil || !visible {
			continue
		}
		next, err := bookRows(book, name)
		if err != nil {
			continue // a sheet with nothing but a chart
		}
		first, err := next()
		switch {
		case errors.Is(err, io.EOF):
			continue
		case err != nil:
			return nil, err
		}
		return &sheet{name: name, sure: true, next: func() (Row, error) {
			if row := first; row.Line > 0 {
				first = Row{}
				return row, nil
			}
			return next()
		}}, nil
	}
	return nil, &Error{0, "campaign.file.empty", nil}
}

// EachExact calls do with the rows of a workbook's first visible sheet that has any text, the cells without their
// number formats. Errors other than those of do are a [*Error].
func EachExact(file []byte, do func(line int, cells []string) error) error {
	s, err := readSheet(file, "")
	for err == nil {
		var row Row
		if row, err = s.next(); err == nil {
			err = do(row.Line, row.Exact)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// bookRows returns the rows of a sheet as they are shown, and exact: a spreadsheet shows 25779123400 as 2.5779E+10.
func bookRows(book *excelize.File, name string) (next func() (Row, error), err error) {
	shown, err := book.Rows(name)
	if err != nil {
		return nil, err
	}
	exact, err := book.Rows(name)
	if err != nil {
		return nil, err
	}
	line := 0
	return func() (row Row, err error) {
		defer recovered(&err)
		for shown.Next() && exact.Next() {
			line++
			row = Row{Line: line, Written: maxColumns}
			cells, err := shown.Columns()
			if err == nil {
				row.Exact, err = exact.Columns(excelize.Options{RawCellValue: true})
			}
			if err != nil {
				return row, &Error{line, "campaign.file.broken", nil}
			}
			row.Cells = trimmed(cells)
			if len(row.Cells) > maxColumns {
				return row, &Error{line, "campaign.file.columns", []any{maxColumns}}
			}
			if len(row.Cells) == 0 {
				continue
			}
			for i, c := range row.Cells {
				if len(c) > maxSheetLine {
					return row, &Error{line, "campaign.file.line", nil}
				}
				row.Cells[i] = printable(strings.ReplaceAll(strings.ReplaceAll(c, "\r\n", "\n"), "_x000D_", ""))
			}
			for i, c := range row.Exact {
				row.Exact[i] = printable(c)
			}
			return row, nil
		}
		if shown.Error() != nil || exact.Error() != nil {
			return row, &Error{line, "campaign.file.broken", nil}
		}
		return row, io.EOF
	}, nil
}

// printable returns a cell without control characters but ends of lines and tabs: the library makes some of texts such
// as _x0000_.
func printable(cell string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, cell)
}

// recovered turns a panic of the library into an error: a workbook may hold anything.
func recovered(err *error) {
	if fault := recover(); fault != nil {
		*err = &Error{0, "campaign.file.broken", nil}
	}
}

// checkBook checks a workbook's limits before the library reads it.
func checkBook(file []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return &Error{0, "campaign.file.broken", nil}
	}
	if len(archive.File) > maxBookParts {
		return &Error{0, "campaign.file.book", nil}
	}
	var all uint64 // archive/zip reads no more of a part than it announces
	for _, part := range archive.File {
		if all += min(part.UncompressedSize64, maxBook+1); all > maxBook || all > smallBook &&
			all > uint64(len(file))*maxRatio {
			return &Error{0, "campaign.file.book", nil}
		}
	}
	for _, part := range archive.File {
		name := strings.ToLower(strings.ReplaceAll(part.Name, `\`, "/"))
		if ext := path.Ext(name); ext != ".xml" && ext != ".rels" && ext != ".vml" {
			continue
		}
		most := maxOtherMark
		if strings.HasPrefix(name, "xl/worksheets/") {
			most = maxMarks
		}
		if err := checkPart(part, most); err != nil {
			return err
		}
	}
	return nil
}

// checkPart limits the tags and attributes of a part, and the length of each tag: each costs the parser memory.
func checkPart(part *zip.File, most int) error {
	content, err := part.Open()
	if err != nil {
		return &Error{0, "campaign.file.broken", nil}
	}
	defer func() { _ = content.Close() }()
	buffer, marks, tag := make([]byte, 64<<10), 0, -1 // tag: bytes of the current one, -1 outside
	for {
		n, err := content.Read(buffer)
		for _, c := range buffer[:n] {
			switch {
			case c == '<':
				marks, tag = marks+1, 0
			case tag < 0:
			case c == '>':
				tag = -1
			case c == '=':
				marks, tag = marks+1, tag+1
			default:
				tag++
			}
			if marks > most || tag > maxTag {
				return &Error{0, "campaign.file.book", nil}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &Error{0, "campaign.file.broken", []any{}}
		}
	}
}

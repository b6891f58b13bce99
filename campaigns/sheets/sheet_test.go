package sheets

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

// wideText encodes a text in UTF-16 with a byte order mark, like Excel.
func wideText(text string, order unicode.Endianness) []byte {
	wide, _ := unicode.UTF16(order, unicode.UseBOM).NewEncoder().Bytes([]byte(text)) // never fails for valid UTF-8
	return wide
}

// TestReadSheet: the same rows in every form that programs and spreadsheets write.
func TestReadSheet(t *testing.T) {
	const plain = "phone_number,prénom\r\n79123456,\"Éric, \"\"dit\"\" Rico\"\r\n\r\n71234567,Aline\r\n"
	latin := strings.NewReplacer("é", "\xe9", "É", "\xc9").Replace(plain)
	for name, file := range map[string][]byte{
		"utf-8": []byte(plain), "utf-8 with a mark": []byte("\ufeff" + plain), "windows-1252": []byte(latin),
		"utf-16 little": wideText(plain, unicode.LittleEndian), "utf-16 big": wideText(plain, unicode.BigEndian),
		"old macintosh lines": []byte(strings.ReplaceAll(plain, "\r\n", "\r")),
		"no last line end":    []byte(strings.TrimSpace(plain)),
		"semicolons": []byte(strings.NewReplacer("number,", "number;", "456,", "456;", "567,", "567;").Replace(
			plain)),
		"tabs": []byte(strings.NewReplacer("number,", "number\t", "456,", "456\t", "567,", "567\t").Replace(
			plain)),
	} {
		rows, err := readAll(file)
		if got := cells(rows); err != nil || got != `1[phone_number prénom] 2[79123456 Éric, "dit" Rico] 4[71234567 Aline]` {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

// TestReadSheetRefuses: other files are refused with the line, in bounded memory.
func TestReadSheetRefuses(t *testing.T) {
	for name, want := range map[string]struct {
		file string
		line int
		key  string
	}{
		"half a workbook":           {"PK\x03\x04\x14\x00\x06\x00", 0, "campaign.file.broken"},
		"an old workbook":           {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0, "campaign.file.excel"},
		"NUL":                       {"a,b\nc,\x00d\n", 2, "campaign.file.octets"},
		"NUL, then text":            {strings.Repeat("\x00", 1000) + "a", 1, "campaign.file.octets"},
		"half a pair":               {"\xff\xfea\x00\x00\xd8b\x00", 1, "campaign.file.octets"},
		"escape":                    {"a,b\n\x1b[2J,\n", 2, "campaign.file.octets"},
		"one endless line":          {"a,b\n" + strings.Repeat("x", MaxFile), 2, "campaign.file.line"},
		"a million commas":          {strings.Repeat(",", MaxFile), 1, "campaign.file.line"},
		"many columns":              {"a,b\n" + strings.Repeat(",", maxColumns) + "x\n", 2, "campaign.file.columns"},
		"an open quote":             {"a,b\n\"c,d\n", 2, "campaign.file.quotes"},
		"a quote that ends nothing": {"a,b\n\"c,d\ne,\"f\"\n", 2, "campaign.file.quotes"},
		"endless open quotes":       {"a,b\n" + strings.Repeat("\"x\n", 1000), 2, "campaign.file.quotes"},
	} {
		_, err := readAll([]byte(want.file))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Key != want.key || (want.line > 0 && (e.Line < want.line || e.Line > want.line+1)) {
			t.Errorf("%s: %+v (%v)", name, e, err)
		}
	}
}

// cells returns rows as their line numbers and cells.
func cells(rows []Row) string {
	var text []string
	for _, r := range rows {
		text = append(text, fmt.Sprint(r.Line, r.Cells))
	}
	return strings.ReplaceAll(strings.Join(text, " "), " [", "[")
}

// readAll returns the rows of a file up to its first error.
func readAll(file []byte) (rows []Row, err error) {
	s, err := readSheet(file, "")
	for err == nil {
		var row Row
		if row, err = s.next(); err == nil {
			rows = append(rows, row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return rows, err
}

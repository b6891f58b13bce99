package sheets

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
)

// newBook returns a workbook as Excel writes it; fill may add to it.
func newBook(t testing.TB, fill func(f *excelize.File)) []byte {
	t.Helper()
	f := excelize.NewFile()
	fill(f)
	var out bytes.Buffer
	if err := f.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func set(f *excelize.File, cell string, value any) { _ = f.SetCellValue("Sheet1", cell, value) }

// style gives a cell a number format: one of Excel's own by its number, or a text.
func style(f *excelize.File, cell string, format any) {
	s := &excelize.Style{}
	switch format := format.(type) {
	case int:
		s.NumFmt = format
	case string:
		s.CustomNumFmt = &format
	}
	id, _ := f.NewStyle(s)
	_ = f.SetCellStyle("Sheet1", cell, cell, id)
}

// packedBook returns a workbook of these parts, as other programs write them.
func packedBook(t testing.TB, parts map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range parts {
		packed := deflated(t, text)
		f, err := w.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte(text)),
			UncompressedSize64: uint64(len(text)), CompressedSize64: uint64(len(packed))})
		if err == nil {
			_, err = f.Write(packed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// deflated packs a text. It packs a piece that repeats once: the race detector makes it slow.
func deflated(t testing.TB, text string) []byte {
	t.Helper()
	const piece = 60_000 // a multiple of what the bombs repeat
	var out, packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	for last := ""; err == nil && text != ""; {
		next := text[:min(piece, len(text))]
		if text = text[len(next):]; next != last {
			packed.Reset()
			w.Reset(&packed)
			if _, err = io.WriteString(w, next); err == nil {
				err = w.Flush()
			}
		}
		last = next
		_, _ = out.Write(packed.Bytes())
	}
	if err == nil {
		w.Reset(&out)
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sheetParts returns the parts of a workbook with the XML of its one sheet.
func sheetParts(sheetXML, strings string) map[string]string {
	const ns = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	return map[string]string{
		"[Content_Types].xml": `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>`,
		"_rels/.rels":         `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml": `<workbook ` + ns +
			`><sheets><sheet name="Feuil1" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
		"xl/worksheets/sheet1.xml":   `<worksheet ` + ns + `>` + sheetXML + `</worksheet>`,
		"xl/sharedStrings.xml":       `<sst ` + ns + `>` + strings + `</sst>`,
	}
}

// TestBooks: the rows of a workbook are those that people see, and numbers are whole.
func TestBooks(t *testing.T) {
	for source, test := range map[string]struct {
		file []byte
		want string
	}{
		"texts and numbers": {newBook(t, func(f *excelize.File) {
			set(f, "A1", "phone")
			set(f, "B1", "prénom")
			set(f, "A2", 25779123456)
			set(f, "B2", "Éric")
			set(f, "A4", "79 12 34 56")
			set(f, "B4", "Łucja")
		}), "1[phone prénom] 2[25779123456 Éric] 4[79 12 34 56 Łucja]"},
		"empty cells": {newBook(t, func(f *excelize.File) {
			set(f, "A1", "a")
			set(f, "C1", "c")
			set(f, "A2", "")
			set(f, "B3", "x")
			set(f, "F3", " ")
		}), "1[a  c] 3[ x]"},
		"formats": {newBook(t, func(f *excelize.File) {
			for i, c := range []struct{ value, format any }{{25000, 3}, {0.15, 9}, {25000.5, 4},
				{time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), 14}, {79123456, `00" "00" "00" "00`}} {
				cell := fmt.Sprintf("%c1", 'A'+i)
				set(f, cell, c.value)
				style(f, cell, c.format)
			}
			set(f, "F1", true)
			set(f, "G1", 0.1+0.2)
		}), "1[25,000 15% 25,000.50 04/05/2026 79 12 34 56 TRUE 0.3]"},
		"a hidden sheet first": {newBook(t, func(f *excelize.File) {
			set(f, "A1", "hidden")
			_, _ = f.NewSheet("Liste")
			_ = f.SetCellValue("Liste", "A1", "shown")
			f.SetActiveSheet(1)
			_ = f.SetSheetVisible("Sheet1", false)
		}), "1[shown]"},
		"an empty sheet first": {
			newBook(t, func(f *excelize.File) { _, _ = f.NewSheet("Liste"); _ = f.SetCellValue("Liste", "B2", "second") }),
			"2[ second]"},
		"other programs: texts in the cells, no numbers of rows": {
			packedBook(
				t,
				sheetParts(
					`<sheetData><row><c t="inlineStr"><is><t>phone</t></is></c></row><row><c><v>2.5779123456E10</v></c></row></sheetData>`, "")), "1[phone] 2[25779123456]"},
		"rich text": {
			packedBook(t, sheetParts(`<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row></sheetData>`,
				`<si><r><t>Ali</t></r><r><t>ne</t></r></si>`)), "1[Aline]"},
		"a formula's result": {
			packedBook(
				t,
				sheetParts(`<sheetData><row r="1"><c r="A1" t="str"><f>"+257"&amp;B1</f><v>+25779123456</v></c></row></sheetData>`,
					"")), "1[+25779123456]"},
		"a wrong dimension": {
			packedBook(
				t, sheetParts(`<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData>`,
					"")), "1[1]"},
		"a last row far below": {
			packedBook(
				t,
				sheetParts(
					`<sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="A1048576"><v>2</v></c></row></sheetData>`, "")), "1[1] 1048576[2]"},
		"only formatted cells": {
			packedBook(
				t,
				sheetParts(
					`<sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="2"><c r="A2" s="0"/><c r="XFD2" s="0"/></row></sheetData>`, "")), "1[1]"},
	} {
		rows, err := readAll(test.file)
		if got := cells(rows); got != test.want || err != nil {
			t.Errorf("%s: %s, %v", source, got, err)
		}
	}
}

// TestExactNumbers: the number of a column too narrow for it, or with a format, is read exactly.
func TestExactNumbers(t *testing.T) {
	for format, shown := range map[any]string{11: "2.58E+10", 3: "25,779,123,456", `0.0`: "25779123456.0",
		4: "25,779,123,456.00"} {
		rows, err := readAll(newBook(t, func(f *excelize.File) { set(f, "A1", 25779123456); style(f, "A1", format) }))
		if err != nil || rows[0].Cells[0] != shown || rows[0].exact(0) != "25779123456" {
			t.Errorf("%v: %+v, %v", format, rows, err)
		}
	}
}

// TestHostileBooks: no workbook costs much memory or time, or ends the process.
func TestHostileBooks(t *testing.T) {
	row := `<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData>`
	with := func(change func(map[string]string)) []byte {
		parts := sheetParts(row, "")
		change(parts)
		return packedBook(t, parts)
	}
	good := packedBook(t, sheetParts(row, ""))
	files := map[string][]byte{
		"a bomb":              with(func(p map[string]string) { p["xl/media/x.bin"] = strings.Repeat("\x00", maxBook+1) }),
		"a bomb in the sheet": packedBook(t, sheetParts("<sheetData>"+strings.Repeat(" ", maxBook)+"</sheetData>", "")),
		"a ratio":             packedBook(t, sheetParts(row+strings.Repeat(" ", smallBook), "")),
		"many parts": with(func(p map[string]string) {
			for i := range maxBookParts {
				p[fmt.Sprint("xl/x", i)] = ""
			}
		}),
		"endless cells": packedBook(t, sheetParts("<sheetData><row>"+strings.Repeat("<c/>", maxMarks)+"</row></sheetData>",
			"")),
		"endless texts": packedBook(t, sheetParts(row, strings.Repeat("<si/>", maxOtherMark))),
		"endless styles": with(func(p map[string]string) {
			p["xl/styles.xml"] = "<styleSheet><cellXfs>" + strings.Repeat("<xf/>", maxOtherMark) + "</cellXfs></styleSheet>"
		}),
		"endless attributes": packedBook(t, sheetParts("<sheetData><row"+strings.Repeat(` a=""`, maxTag)+"/></sheetData>",
			"")),
		"a tag without an end": packedBook(t, sheetParts("<sheetData><row "+strings.Repeat("x", maxTag), "")),
		"entities": with(func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] =
				`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>&b;</t></is></c></row></sheetData></worksheet>`
		}),
		"deep nesting": packedBook(t, sheetParts(strings.Repeat("<a>", 500_000), "")),
		"a row beyond the last": packedBook(t, sheetParts(
			`<sheetData><row r="99999999999"><c r="A1"><v>1</v></c></row></sheetData>`, "")),
		"a negative row": packedBook(t, sheetParts(
			`<sheetData><row r="-5"><c r="A-5"><v>1</v></c></row></sheetData>`, "")),
		"a column beyond the last": packedBook(t, sheetParts(
			`<sheetData><row r="1"><c r="ZZZZZ1"><v>1</v></c></row></sheetData>`, "")),
		"a text out of range": packedBook(t, sheetParts(
			`<sheetData><row r="1"><c r="A1" t="s"><v>-1</v></c><c r="B1" t="s"><v>99</v></c></row></sheetData>`, "")),
		"a style out of range": packedBook(t, sheetParts(
			`<sheetData><row r="1"><c r="A1" s="99999"><v>1</v></c><c r="B1" s="-1"><v>1</v></c></row></sheetData>`, "")),
		"a sheet outside": with(func(p map[string]string) {
			p["xl/_rels/workbook.xml.rels"] = strings.ReplaceAll(p["xl/_rels/workbook.xml.rels"], "worksheets/sheet1.xml",
				"../../../../etc/passwd")
		}),
		"no sheets":     with(func(p map[string]string) { p["xl/workbook.xml"] = "<workbook/>" }),
		"an empty part": with(func(p map[string]string) { p["xl/workbook.xml"] = "" }),
		"no XML":        with(func(p map[string]string) { p["xl/worksheets/sheet1.xml"] = "\x00\x01\x02" }),
		"another encoding": with(func(p map[string]string) {
			p["xl/workbook.xml"] = `<?xml version="1.0" encoding="UTF-7"?>` + p["xl/workbook.xml"]
		}),
		"many columns": packedBook(t, sheetParts(`<sheetData><row r="1"><c r="ZZ1"><v>1</v></c></row></sheetData>`, "")),
		"a long text": packedBook(t, sheetParts(`<sheetData><row r="1"><c r="A1" t="str"><v>`+
			strings.Repeat("x", maxSheetLine+1)+`</v></c></row></sheetData>`, "")),
	}
	for i := 1; i < len(good); i += 1 + len(good)/50 {
		files[fmt.Sprintf("cut at %d", i)] = good[:i]
		broken := bytes.Clone(good)
		broken[i] ^= 0xff
		files[fmt.Sprintf("broken at %d", i)] = broken
	}
	for name, file := range files {
		start := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rows, err := readAll(file)
		runtime.ReadMemStats(&after)
		if _, ok := errors.AsType[*Error](err); err != nil && !ok {
			t.Errorf("%s: %v", name, err)
		}
		if spent := time.Since(start); spent > 20*time.Second {
			t.Errorf("%s: %s", name, spent)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 600 {
			t.Errorf("%s: %d MiB", name, used)
		}
		if strings.Contains(cells(rows), "root:") || len(rows) > 1 {
			t.Errorf("%s: %s", name, cells(rows))
		}
	}
}

// TestBookKinds: other files are refused with advice.
func TestBookKinds(t *testing.T) {
	for name, test := range map[string]struct {
		file []byte
		want string
	}{
		"Excel before 2007, or with a password": {[]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00\x00"), "campaign.file.excel"},
		"Excel binary workbook": {packedBook(t, map[string]string{"xl/workbook.bin": ""}),
			"campaign.file.excel"},
		"LibreOffice": {packedBook(
			t, map[string]string{"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": ""}),
			"campaign.file.excel"},
		"Numbers": {packedBook(t, map[string]string{"Index/Document.iwa": ""}),
			"campaign.file.excel"},
		"XML Spreadsheet 2003": {[]byte("\ufeff<?xml version=\"1.0\"?>\n<?mso-application " +
			"progid=\"Excel.Sheet\"?>\n<Workbook xmlns=\"urn:schemas-microsoft-com:office:spreadsheet\">"),
			"campaign.file.excel"},
		"Word": {packedBook(t, map[string]string{"word/document.xml": ""}),
			"campaign.file.other"},
		"PDF": {[]byte("%PDF-1.7\n"), "campaign.file.other"},
		"a web page named .xls": {[]byte("<html><table><tr><td>79123456</td></tr></table></html>"),
			"campaign.file.other"},
		"a photo":           {[]byte("\xff\xd8\xff\xe0"), "campaign.file.other"},
		"an empty ZIP file": {[]byte("PK\x05\x06" + strings.Repeat("\x00", 18)), "campaign.file.other"},
	} {
		_, err := readAll(test.file)
		if e, ok := errors.AsType[*Error](err); !ok || e.Key != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

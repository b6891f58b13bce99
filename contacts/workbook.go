package contacts

import (
	"archive/zip"
	"bufio"
	"cmp"
	"encoding/xml"
	"io"
	"strings"
	"unicode/utf16"
)

// workbook is a workbook of Excel with one sheet of texts, written as its rows come: no library writes one without
// keeping all of it. A text in it is never a formula.
type workbook struct {
	zip   *zip.Writer
	sheet *bufio.Writer
	err   error
}

// The parts of a workbook besides its sheet (ECMA-376, part 1).
var bookParts = [][2]string{
	{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Override PartName="/xl/workbook.xml"` +
		` ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>` +
		`<Override PartName="/xl/worksheets/sheet1.xml"` +
		` ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>` +
		`</Types>`},
	{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="r1"` +
		` Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"` +
		` Target="xl/workbook.xml"/>` +
		`</Relationships>`},
	{"xl/workbook.xml", `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"` +
		` xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">` +
		`<sheets>` +
		`<sheet name="Contacts" sheetId="1" r:id="r1"/>` +
		`</sheets></workbook>`},
	{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="r1"` +
		` Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"` +
		` Target="worksheets/sheet1.xml"/>` +
		`</Relationships>`},
}

func newBook(to io.Writer) *workbook {
	b := &workbook{zip: zip.NewWriter(to)}
	for _, part := range bookParts {
		b.part(part[0])
		b.write(part[1])
		b.flush()
	}
	b.part("xl/worksheets/sheet1.xml")
	b.write(`<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`)
	return b
}

// part begins a part of the workbook.
func (b *workbook) part(name string) {
	if b.err != nil {
		return
	}
	w, err := b.zip.Create(name)
	b.sheet, b.err = bufio.NewWriter(w), err
	b.write(xml.Header)
}

func (b *workbook) write(text string) {
	if b.err == nil {
		_, b.err = b.sheet.WriteString(text)
	}
}

func (b *workbook) flush() {
	if b.err == nil {
		b.err = b.sheet.Flush()
	}
}

// maxCell is how long a cell may be, in UTF-16: Excel calls a workbook with a longer one damaged.
const maxCell = 32_767

// shortened returns a text that fits in a cell: of a longer list its first items.
func shortened(text string) string {
	length, last := 0, 0
	for i, r := range text {
		if strings.HasPrefix(text[i:], ", ") {
			last = i
		}
		if length += utf16.RuneLen(r); length > maxCell {
			return text[:cmp.Or(last, i)]
		}
	}
	return text
}

// row writes a row of texts.
func (b *workbook) row(cells []string) error {
	b.write("<row>")
	for _, text := range cells {
		if text == "" {
			b.write("<c/>")
			continue
		}
		b.write(`<c t="inlineStr"><is><t xml:space="preserve">`)
		if b.err == nil {
			b.err = xml.EscapeText(b.sheet, []byte(shortened(strings.ToValidUTF8(text, "\ufffd"))))
		}
		b.write("</t></is></c>")
	}
	b.write("</row>")
	return b.err
}

// end writes the rest of the workbook.
func (b *workbook) end() error {
	b.write("</sheetData></worksheet>")
	b.flush()
	if b.err != nil {
		return b.err
	}
	return b.zip.Close()
}

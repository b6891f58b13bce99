package texts

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// CSVMark begins every CSV file: a byte order mark, without which Excel assumes another encoding than UTF-8.
const CSVMark = "\ufeff"

// CSV returns a writer of rows in the form of the language: separated by semicolons in French, where the comma is the
// decimal separator. The caller writes [CSVMark] first, and flushes. Texts of others pass through [Cell].
func (l *Language) CSV(to io.Writer) *csv.Writer {
	out := csv.NewWriter(to)
	out.UseCRLF = true // RFC 4180
	if l.Tag != "en" {
		out.Comma = ';'
	}
	return out
}

// CSVDecimal returns a decimal number with the decimal separator that goes with [Language.CSV]: to a spreadsheet in
// French,
// 12.50 is a text, and its sum 0.
func (l *Language) CSVDecimal(number string) string {
	if l.Tag == "en" {
		return number
	}
	return strings.Replace(number, ".", ",", 1)
}

// CellID returns a carrier's id for a spreadsheet: a leading apostrophe keeps one that it would take for a number and
// change (more than 15 digits, zeros in front, 12E5).
func CellID(id string) string {
	if _, err := strconv.ParseFloat(id, 64); err != nil || len(id) <= 15 && id[0] != '0' &&
		strings.Trim(id, "0123456789") == "" {
		return Cell(id)
	}
	return "'" + id
}

// Texts returns the texts of keys.
func (l *Language) Texts(keys ...string) []string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = l.T(key)
	}
	return texts
}

// formulaStart are the characters that a formula begins with.
const formulaStart = "=+-@\uff1d\uff0b\uff0d\uff20"

// Cell returns text for a spreadsheet: a leading apostrophe keeps it from running as a formula. (OWASP, CSV injection:
// https://owasp.org/www-community/attacks/CSV_Injection.) It also adds one within the text wherever a program that
// expects another separator, and ignores the quotation marks, would begin a cell. Where the text has apostrophes before
// a formula already, it adds one more: [FromCell] returns every text as it was.
func Cell(text string) string { return guard(text, 1) }

// FromCell returns the text that [Cell] was given.
func FromCell(cell string) string { return guard(cell, -1) }

// guard adds an apostrophe to those before each formula of a text, or takes one away, if there is one.
func guard(text string, by int) string {
	if text == "" || !strings.ContainsAny(text, formulaStart+"\t\r\n") {
		return text
	}
	var changed strings.Builder
	begins := true // the start of a cell, for some program
	for at := 0; at < len(text); {
		rest := strings.TrimLeft(text[at:], "'")
		marks := len(text) - at - len(rest)
		r, size := utf8.DecodeRuneInString(rest)
		formula := begins && strings.ContainsRune(formulaStart, r)
		if formula || at == 0 && rest != "" && strings.IndexByte("\t\r\n", rest[0]) >= 0 {
			changed.WriteString(strings.Repeat("'", max(0, marks+by)))
		} else {
			changed.WriteString(text[at : at+marks])
		}
		begins = strings.ContainsRune(",;\t\r\n", r) || r == '"' && begins && marks == 0
		changed.WriteString(rest[:size])
		at += marks + size
	}
	return changed.String()
}

// CellTime returns a time in Burundi in a form that every spreadsheet understands; empty for nil.
func CellTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.In(Bujumbura).Format(time.DateTime)
}

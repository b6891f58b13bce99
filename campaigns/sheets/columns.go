package sheets

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"intumwa/sms"
)

// numberColumns are the names of the column of the numbers, as ColumnName returns them. A file that numbers its lines
// may have one of weakColumns for that.
var (
	numberColumns = []string{"phone_number", "phone", "phonenumber", "telephone", "tel", "numero_de_telephone",
		"numero_telephone", "num_telephone",
		"n°_telephone", "n°_de_telephone", "no_telephone", "mobile", "mobile_number", "msisdn", "gsm", "telefone",
		"inomero_ya_telefone"}
	weakColumns = []string{"number", "numero", "inomero"}
)

// headerRows is how many lines may stand before the one with the columns' names: a title, a date.
const headerRows = 10

// ColumnName returns a column's name for a comparison: without accents and invisible characters, in lower case, with
// one underscore for all that separates words.
func ColumnName(name string) string {
	words := strings.FieldsFunc(strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Cf):
			return -1
		case r == '’':
			return '\''
		case r == '.' || unicode.Is(unicode.Pd, r) || unicode.IsSpace(r):
			return '_'
		}
		return r
	}, norm.NFD.String(strings.ToLower(name))), func(r rune) bool { return r == '_' })
	return strings.Join(words, "_")
}

// ColumnOf returns the column with a name: exactly this one, or else one that differs in case, accents or blanks. at is
// -1 if there is none; twice, if there are several.
func ColumnOf(head []string, name string) (at int, twice bool) {
	exactly := func(name string) string { return strings.Join(strings.Fields(norm.NFC.String(name)), " ") }
	for _, form := range []func(string) string{exactly, ColumnName} {
		wanted, found := form(name), -1
		for i, column := range head {
			if form(column) == wanted {
				twice = twice || found >= 0
				found = i
			}
		}
		if found >= 0 {
			return found, twice
		}
	}
	return -1, false
}

// hasNumber reports whether a line has a phone number.
func (t *Table) hasNumber(row *Row) bool {
	for i := range row.Cells {
		if _, is := parseCell(t.plan, row, i); is {
			return true
		}
	}
	return false
}

// sheetLetters returns a column's letters in a spreadsheet.
func sheetLetters(at int) string {
	letter := string(rune('A' + at%26))
	if at < 26 {
		return letter
	}
	return sheetLetters(at/26-1) + letter
}

// headerAt returns the header line's place: the first line that has all names, or else a column of numbers, or else the
// first line.
func headerAt(rows []Row, names []string) int {
	rows = rows[:min(len(rows), headerRows)]
	for _, is := range []func(Row) bool{
		func(row Row) bool {
			return len(names) > 0 && !slices.ContainsFunc(
				names, func(name string) bool { at, _ := ColumnOf(row.Cells, name); return at < 0 })
		},
		func(row Row) bool {
			return slices.ContainsFunc(row.Cells, func(name string) bool {
				return slices.Contains(numberColumns, ColumnName(name))
			})
		},
	} {
		if at := slices.IndexFunc(rows, is); at >= 0 {
			return at
		}
	}
	return 0
}

// numbersAt returns the column of the numbers, or why there is none.
func (t *Table) numbersAt(chosen string) (at int, why string) {
	head := t.Head.Cells
	if chosen != "" {
		if at, _ = ColumnOf(head, chosen); at < 0 {
			return 0, t.lang.T("campaign.file.column.numbers", Shorten(chosen))
		}
		return at, ""
	}
	// A number counts more than what was one before a spreadsheet spoilt it.
	const good, spoilt = 1000, 1
	likely := make([]int, len(head))
	for _, row := range t.ahead {
		for i := range row.Cells[:min(len(row.Cells), len(head))] {
			if _, ok := parseCell(t.plan, &row, i); ok {
				likely[i] += good
			} else if t.plan.Fault(row.Cells[i]) != sms.NumberOther {
				likely[i] += spoilt
			}
		}
	}
	best := slices.Index(likely, slices.Max(likely))
	named := func(names []string) (at int) {
		at = -1
		for i, name := range head {
			if slices.Contains(names, ColumnName(name)) && (at < 0 || likely[i] > likely[at]) {
				at = i
			}
		}
		return at
	}
	if at = named(numberColumns); at >= 0 {
		return at, ""
	}
	if at = named(weakColumns); at >= 0 && (likely[at] > 0 || likely[best] == 0) {
		return at, ""
	}
	switch others := slices.Index(likely[best+1:], likely[best]); {
	case likely[best] == 0 && len(t.ahead) > 0:
		return 0, t.lang.T("campaign.file.nonumbers")
	case others >= 0 && len(t.ahead) > 0:
		return 0, t.lang.T("campaign.file.which", Shorten(head[best]), Shorten(head[best+1+others]))
	}
	return best, ""
}

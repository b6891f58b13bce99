package campaigns

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"intumwa/sms"
)

// numberColumns are the names of the column of the numbers, as columnName returns them. A file that numbers its lines
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

// columnName returns a column's name for a comparison: without accents and invisible characters, in lower case, with
// one underscore for all that separates words.
func columnName(name string) string {
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

// columnOf returns the column with a name: exactly this one, or else one that differs in case, accents or blanks. at is
// -1 if there is none; twice, if there are several.
func columnOf(head []string, name string) (at int, twice bool) {
	exactly := func(name string) string { return strings.Join(strings.Fields(norm.NFC.String(name)), " ") }
	for _, form := range []func(string) string{exactly, columnName} {
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

// findColumns finds the header line, the columns of the placeholders, and that of the numbers: the one that the user
// named, or the one with the name or the contents for it.
func (r *File) findColumns(text, numbers string) (wrong []Problem) {
	at := headerAt(r.ahead, r.template.Names())
	r.head, r.ahead = r.ahead[at], r.ahead[at+1:]
	head := r.head.Cells
	if r.head.Foreign {
		return []Problem{{r.head.Line, r.lang.T("campaign.line.encoding", shorten(strings.Join(head, " ")))}}
	}
	if r.hasNumber(&r.head) {
		if len(r.template.Names()) > 0 {
			return []Problem{{r.head.Line, r.lang.T("campaign.file.head")}}
		}
		r.ahead = append([]sheetRow{r.head}, r.ahead...) // a bare list of numbers, for one text
		r.head = sheetRow{Line: r.head.Line}
		for _, row := range r.ahead {
			for i := len(r.head.Cells); i < len(row.Cells); i++ {
				r.head.Cells = append(r.head.Cells, sheetLetters(i))
			}
		}
		head = r.head.Cells
	}
	r.columns = map[string]int{}
	for _, name := range r.template.Names() {
		switch at, twice := columnOf(head, name); {
		case at < 0:
			wrong = append(wrong, Problem{r.head.Line, r.lang.T("campaign.file.column", shorten(name))})
		case twice:
			wrong = append(wrong, Problem{r.head.Line, r.lang.T("campaign.file.twice", shorten(name))})
		default:
			r.columns[name] = at
		}
	}
	for _, name := range singleBraces.FindAllStringSubmatch(text, -1) {
		if at, _ := columnOf(head, name[1]+name[2]); at >= 0 && columnName(name[1]+name[2]) != "" {
			wrong = append(wrong, Problem{0, r.lang.T("campaign.template.single", shorten(strings.TrimSpace(name[1]+name[2])))})
		}
	}
	var why string
	if r.numbers, why = r.numbersAt(numbers); why != "" {
		wrong = append(wrong, Problem{r.head.Line, why})
	}
	return wrong
}

// hasNumber reports whether a line has a phone number.
func (r *File) hasNumber(row *sheetRow) bool {
	for i := range row.Cells {
		if _, is := parseCell(r.plan, row, i); is {
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

// singleBraces are names in single braces.
var singleBraces = regexp.MustCompile(`(?:^|[^{])\{([^{}]+)\}(?:[^}]|$)|｛([^｛｝]+)｝`)

// headerAt returns the header line's place: the first line that has all names, or else a column of numbers, or else the
// first line.
func headerAt(rows []sheetRow, names []string) int {
	rows = rows[:min(len(rows), headerRows)]
	for _, is := range []func(sheetRow) bool{
		func(row sheetRow) bool {
			return len(names) > 0 && !slices.ContainsFunc(
				names, func(name string) bool { at, _ := columnOf(row.Cells, name); return at < 0 })
		},
		func(row sheetRow) bool {
			return slices.ContainsFunc(row.Cells, func(name string) bool {
				return slices.Contains(numberColumns, columnName(name))
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
func (r *File) numbersAt(chosen string) (at int, why string) {
	head := r.head.Cells
	if chosen != "" {
		if at, _ = columnOf(head, chosen); at < 0 {
			return 0, r.lang.T("campaign.file.column.numbers", shorten(chosen))
		}
		return at, ""
	}
	// A number counts more than what was one before a spreadsheet spoilt it.
	const good, spoilt = 1000, 1
	likely := make([]int, len(head))
	for _, row := range r.ahead {
		for i := range row.Cells[:min(len(row.Cells), len(head))] {
			if _, ok := parseCell(r.plan, &row, i); ok {
				likely[i] += good
			} else if r.plan.Fault(row.Cells[i]) != sms.NumberOther {
				likely[i] += spoilt
			}
		}
	}
	best := slices.Index(likely, slices.Max(likely))
	named := func(names []string) (at int) {
		at = -1
		for i, name := range head {
			if slices.Contains(names, columnName(name)) && (at < 0 || likely[i] > likely[at]) {
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
	case likely[best] == 0 && len(r.ahead) > 0:
		return 0, r.lang.T("campaign.file.nonumbers")
	case others >= 0 && len(r.ahead) > 0:
		return 0, r.lang.T("campaign.file.which", shorten(head[best]), shorten(head[best+1+others]))
	}
	return best, ""
}

package contacts

import (
	"slices"
	"strings"

	"intumwa/campaigns/sheets"
	"intumwa/texts"
)

// What a column of a file becomes.
const (
	UseNumber   = "number"
	UseName     = "name"
	UseLanguage = "language"
	UseGroups   = "groups"
	UseField    = "field"
	UseNothing  = "" // it has no name
)

// Column is what an import makes of a column of its file.
type Column struct {
	Header string `json:"header"`          // as in the file
	Use    string `json:"use"`             // one of the above
	Field  string `json:"field,omitempty"` // its name; also of a column that is a part of the name
}

// The names of columns, as [sheets.ColumnName] returns them.
var (
	partWords = []string{"prenom", "prenoms", "first_name", "firstname", "given_name", "last_name", "lastname", "surname",
		"nom_de_famille", "izina_ry_ubukristu"} // each is a part of the name, and a field
	languageWords = []string{"language", "langue", "lang", "ururimi", "lugha"}
	groupWords    = []string{"group", "groups", "groupe", "groupes", "umugwi", "imigwi"}
)

// groupSeparators are between the groups of a cell.
const groupSeparators = ",;|"

// ignoredWords are columns of files that an export wrote, and numbers of lines.
var ignoredWords = []string{"consent_source", "consented_at", "n", "no"}

// languageNames are what people write in a column of languages.
var languageNames = map[string]string{"rn": "rn", "kirundi": "rn", "ikirundi": "rn", "run": "rn",
	"fr": "fr", "francais": "fr", "french": "fr", "igifaransa": "fr", "fra": "fr",
	"en": "en", "anglais": "en", "english": "en", "icongereza": "en", "eng": "en",
	"sw": "sw", "swahili": "sw", "kiswahili": "sw", "igiswahili": "sw"}

// columnsOf returns what the columns of a file become, or what is wrong with them. known are the company's fields.
func columnsOf(lang *texts.Language, t *sheets.Table, known []string) (columns []Column, wrong []sheets.Problem) {
	problem := func(key string, args ...any) {
		wrong = append(wrong, sheets.Problem{Line: t.Head.Line, Text: lang.T(key, args...)})
	}
	fields := slices.Clone(known)
	for i, header := range t.Head.Cells {
		c := Column{Header: sheets.Shorten(header)}
		name, ok := FieldName(header)
		part := slices.Contains(partWords, name)
		switch {
		case i == t.Numbers:
			c.Use = UseNumber
		case t.Bare, header == "", slices.Contains(ignoredWords, name):
		case slices.Contains(nameWords, name):
			c.Use = UseName
		case slices.Contains(languageWords, name):
			c.Use = UseLanguage
		case slices.Contains(groupWords, name):
			c.Use = UseGroups
		case !ok || slices.Contains(reserved, name):
			problem("contact.file.field", c.Header, maxFieldName)
		default:
			if c.Use, c.Field = UseField, name; part {
				c.Use = UseName
			}
			if !slices.Contains(fields, name) {
				fields = append(fields, name)
			}
		}
		if slices.ContainsFunc(columns, func(o Column) bool {
			return c.Field != "" && o.Field == c.Field || c.Field == "" && c.Use != "" && c.Use == o.Use && o.Field == ""
		}) {
			problem("campaign.file.twice", c.Header)
		}
		columns = append(columns, c)
	}
	if len(fields) > MaxFields {
		problem("contact.file.fields", MaxFields, strings.Join(fields, ", "))
	}
	return columns, wrong
}

// read returns the entry of a line and its groups' names, or the text of its error.
func read(lang *texts.Language, t *sheets.Table, columns []Column, line *sheets.Row) (e Entry, groups []string,
	wrong string) {
	if e.Number, wrong = t.Number(line); wrong != "" {
		return e, nil, wrong
	}
	var name []string
	e.Fields = map[string]*string{}
	for at, c := range columns {
		if c.Use == UseNumber || c.Use == UseNothing {
			continue
		}
		value, wrong := t.Value(line, at, c.Header)
		if wrong != "" {
			return e, nil, wrong
		}
		if value == "" {
			continue
		}
		if c.Field != "" {
			e.Fields[c.Field] = &value
		}
		switch c.Use {
		case UseName:
			name = append(name, value)
		case UseLanguage:
			language, known := languageNames[sheets.ColumnName(value)]
			if !known {
				return e, nil, lang.T("contact.line.language", sheets.Shorten(value))
			}
			e.Language = &language
		case UseGroups:
			for _, group := range strings.FieldsFunc(value, func(r rune) bool {
				return strings.ContainsRune(groupSeparators+"\n", r)
			}) {
				if strings.TrimSpace(group) == "" {
					continue
				}
				group, fault := CheckGroupName(group)
				if fault != nil {
					return e, nil, lang.T("contact.line.column", c.Header, lang.T(fault.Key, fault.Args...))
				}
				groups = append(groups, group)
			}
		}
	}
	if len(name) > 0 {
		e.Name = new(strings.Join(name, " "))
	}
	if faults := e.Check(); len(faults) > 0 {
		return e, nil, lang.T("contact.line.column", strings.TrimPrefix(faults[0].Field, "fields."),
			lang.T(faults[0].Key, faults[0].Args...))
	}
	return e, groups, ""
}

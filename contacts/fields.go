package contacts

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"intumwa/campaigns/sheets"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

const (
	maxName      = 200 // characters
	maxGroupName = 100
	maxFieldName = 40
	maxSource    = 200
)

// Languages are those of a contact.
var Languages = []string{"rn", "fr", "en", "sw"}

// nameWords are the names of the column, and of the placeholder, of a contact's name.
var nameWords = []string{"name", "names", "nom", "noms", "full_name", "fullname", "nom_complet", "nom_et_prenom",
	"noms_et_prenoms", "nom_prenom", "izina", "amazina", "jina"}

// reserved are names that no field has: a contact has them itself, or an import takes their columns for something else.
var reserved = slices.Concat([]string{"phone_number"}, languageWords, groupWords, ignoredWords)

// FieldName returns the name of a field as it is kept, for comparison with others and as a placeholder: in lower case,
// without accents, with underscores for what is neither letter nor digit. “Date de naissance” is date_de_naissance. ok
// is false for what is no name.
func FieldName(written string) (name string, ok bool) {
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, sheets.ColumnName(written))
	name = strings.Join(strings.FieldsFunc(name, func(r rune) bool { return r == '_' }), "_")
	if name != "" && unicode.IsDigit([]rune(name)[0]) {
		name = "_" + name
	}
	return name, name != "" && utf8.RuneCountInString(name) <= maxFieldName
}

// Value returns what a placeholder or column of that name has of a contact: its name or one of its fields. given is
// false if the contact has nothing there.
func (c *Contact) Value(written string) (value string, given bool) {
	name, _ := FieldName(written)
	switch {
	case slices.Contains(nameWords, name):
		value = c.Name
	case name == "phone_number":
		value = string(c.Number)
	default:
		value = c.Fields[name]
	}
	return value, value != ""
}

// Known reports whether a placeholder or column of that name may have something of a contact whose company has these
// fields.
func Known(written string, fields []string) bool {
	name, ok := FieldName(written)
	return ok && (slices.Contains(nameWords, name) || name == "phone_number" || slices.Contains(fields, name))
}

// fold returns a name's form for searches: in lower case, without accents, with single blanks.
func fold(name string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cf) {
			return -1
		}
		return r
	}, norm.NFD.String(strings.ToLower(name)))), " ")
}

// Entry is what somebody entered of a contact. What is nil stays as it is.
type Entry struct {
	Number   sms.Number
	Name     *string
	Language *string
	Fields   map[string]*string // nil or "": the contact loses the field
	Groups   []int64            // exactly these; not nil and empty: none
	Consent  *Consent           // without a source: the contact loses its consent; without a time: now, or as it was
}

// Check brings what was entered into the form in which it is kept, and returns what is wrong with it.
func (e *Entry) Check() (wrong []*Fault) {
	fault := func(field, key string, args ...any) {
		wrong = append(wrong, &Fault{field, key, args})
	}
	text := func(field string, value *string, most int) *string {
		if value == nil {
			return nil
		}
		line := strings.Join(strings.Fields(*value), " ")
		switch {
		case !sms.IsPrintable(line):
			fault(field, "contact.wrong.text")
		case utf8.RuneCountInString(line) > most:
			fault(field, "contact.wrong.long", most)
		}
		return &line
	}
	e.Name = text("name", e.Name, maxName)
	if e.Language != nil {
		tag := strings.ToLower(strings.TrimSpace(*e.Language))
		if tag, _, _ = strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-"); tag != "" && !slices.Contains(Languages, tag) {
			fault("language", "contact.wrong.language")
		}
		e.Language = &tag
	}
	kept := make(map[string]*string, len(e.Fields))
	for _, written := range slices.Sorted(maps.Keys(e.Fields)) {
		name, ok := FieldName(written)
		_, twice := kept[name]
		switch {
		case !ok:
			fault("fields."+written, "contact.wrong.field", maxFieldName)
		case slices.Contains(reserved, name) || slices.Contains(nameWords, name):
			fault("fields."+written, "contact.wrong.reserved")
		case twice:
			fault("fields."+written, "contact.wrong.twice", name)
		default:
			kept[name] = text("fields."+written, e.Fields[written], sms.MaxVariable)
		}
	}
	e.Fields = kept
	if len(kept) > MaxFields {
		fault("fields", "contact.wrong.fields", MaxFields)
	}
	if e.Groups != nil {
		slices.Sort(e.Groups)
		if e.Groups = slices.Compact(e.Groups); len(e.Groups) > MaxGroups {
			fault("groups", "contact.wrong.groups", MaxGroups)
		}
	}
	if e.Consent != nil {
		source := text("consent_source", &e.Consent.Source, maxSource)
		e.Consent = &Consent{*source, e.Consent.At}
		if e.Consent.At.After(postgres.Now().Add(time.Hour)) { // a clock may be fast
			fault("consented_at", "contact.wrong.future")
		}
	}
	return wrong
}

// CheckGroupName returns a group's name as it is kept, or what is wrong with it.
func CheckGroupName(name string) (string, *Fault) {
	name = strings.Join(strings.Fields(name), " ")
	switch {
	case fold(name) == "":
		return "", &Fault{"name", "contact.wrong.group.none", nil}
	case !sms.IsPrintable(name):
		return "", &Fault{"name", "contact.wrong.text", nil}
	case strings.ContainsAny(name, groupSeparators):
		return "", &Fault{"name", "contact.wrong.group.separator", nil}
	case utf8.RuneCountInString(name) > maxGroupName:
		return "", &Fault{"name", "contact.wrong.long", []any{maxGroupName}}
	}
	return name, nil
}

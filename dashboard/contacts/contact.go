package contacts

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"intumwa/contacts"
	"intumwa/dashboard/web"
	"intumwa/texts"
)

// newField and newValue are the inputs of a field that no contact of the company has yet.
const (
	newField = "new_field"
	newValue = "new_value"
)

// contactPage is one contact, or a new one.
type contactPage struct {
	contacts.Contact

	Languages []web.Option
	Own       []string // names of the company's fields
	Ticks     []web.Tick
}

// languages are the texts of a contact's languages.
var languages = map[string]string{"": "contact.language.none", "rn": "contact.language.rn", "fr": "contact.language.fr",
	"en": "contact.language.en", "sw": "contact.language.sw"}

func languageOf(p *web.View, tag string) string { return p.T(languages[tag]) }

// NewContact is GET /contacts/new.
func (ps *Pages) NewContact(v *web.Visit, t web.Tenant) error {
	v.Parameters("groups") // a new member of a group
	return ps.showContact(v, t, contacts.Contact{})
}

// Contact is GET /contacts/:id.
func (ps *Pages) Contact(v *web.Visit, t web.Tenant) error {
	c, err := ps.Deps.Contacts.Get(v.Ctx(), t.Company.ID, v.ID())
	if err != nil {
		return err
	}
	f := v.Form()
	set := func(field, value string) { f.Values.Set(field, value) }
	set("phone_number", string(c.Number))
	set("name", c.Name)
	set("language", c.Language)
	for name, value := range c.Fields {
		set("fields."+name, value)
	}
	for _, g := range c.Groups {
		f.Values.Add("groups", strconv.FormatInt(g.ID, 10))
	}
	set("consent_source", c.Consent.Source)
	set("consented_at", day(c.Consent.At))
	return ps.showContact(v, t, c)
}

func day(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.In(texts.Bujumbura).Format(time.DateOnly)
}

func (ps *Pages) showContact(v *web.Visit, t web.Tenant, c contacts.Contact) error {
	p := contactPage{Contact: c}
	for _, tag := range append([]string{""}, contacts.Languages...) {
		p.Languages = append(p.Languages, web.Option{Value: tag, Text: v.Lang.T(languages[tag])})
	}
	book, err := ps.Deps.Contacts.Book(v.Ctx(), t.Company.ID)
	if err != nil {
		return err
	}
	p.Own = book.Fields
	groups, err := ps.groupOptions(v, t)
	p.Ticks = v.Form().Ticks("groups", groups)
	return v.Page(err, "contact", p)
}

// CreateContact is POST /contacts/new.
func (ps *Pages) CreateContact(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	e, err := ps.entry(v, t, nil)
	if err != nil {
		return err
	}
	var made contacts.Contact
	if f.OK() {
		made, err = ps.By(v).CreateContact(v.Ctx(), t.Company.ID, e)
		if fault, wrong := errors.AsType[*contacts.Fault](err); wrong && fault.Field == "phone_number" {
			was, _ := ps.Deps.Contacts.ByNumber(v.Ctx(), t.Company.ID, e.Number)
			if was.Number == e.Number && was.Name == *e.Name && slices.Equal(groupsOf(&was), e.Groups) { // a second click
				made, err = was, nil
			}
		}
		err = denied(f, err)
	}
	if err == nil && !f.OK() {
		return ps.showContact(v, t, contacts.Contact{})
	}
	return v.Done(err, contactPath(made.ID), "flash.contact.added")
}

func groupsOf(c *contacts.Contact) (ids []int64) {
	for _, g := range c.Groups {
		ids = append(ids, g.ID)
	}
	return ids
}

// ChangeContact is POST /contacts/:id.
func (ps *Pages) ChangeContact(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	was, err := ps.Deps.Contacts.Get(v.Ctx(), t.Company.ID, v.ID())
	if err != nil {
		return err
	}
	e, err := ps.entry(v, t, &was)
	if err == nil && f.OK() {
		_, err = ps.By(v).ChangeContact(v.Ctx(), t.Company.ID, was.ID, e)
		err = denied(f, err)
	}
	if err == nil && !f.OK() {
		return ps.showContact(v, t, was)
	}
	return v.Done(err, contactPath(was.ID), "flash.contact.changed")
}

// entry reads the form of a contact; was is the contact before, nil for a new one.
func (ps *Pages) entry(v *web.Visit, t web.Tenant, was *contacts.Contact) (e contacts.Entry, err error) {
	f := v.Form()
	text := func(field string) *string { return new(f.Value(field)) }
	e = contacts.Entry{Number: f.Number(ps.Plan, "phone_number"), Name: text("name"), Language: text("language"),
		Fields: map[string]*string{}, Groups: append([]int64{}, f.IDs("groups")...)}
	book, err := ps.Deps.Contacts.Book(v.Ctx(), t.Company.ID)
	if err != nil {
		return e, err
	}
	for _, name := range book.Fields {
		if f.Values.Has("fields." + name) {
			e.Fields[name] = text("fields." + name)
		}
	}
	if name := strings.TrimSpace(f.Value(newField)); name != "" {
		if is, _ := contacts.FieldName(name); e.Fields[is] != nil {
			f.Refuse(newField, "contact.wrong.twice", is)
		}
		f.Values.Set(newField, name)
		e.Fields[name] = text(newValue)
		f.Required(newValue)
	} else if f.Value(newValue) != "" {
		f.Refuse(newField, "error.required")
	}
	given := consent(f)
	if was == nil && given.Source != "" || was != nil && (letters(was.Consent.Source) != letters(given.Source) ||
		given.Source != "" && day(was.Consent.At) != day(given.At)) {
		e.Consent = &given // without a source it is removed
	}
	for _, wrong := range e.Check() {
		refuse(f, wrong)
	}
	return e, nil
}

// letters returns a text without what a browser changes in an input: blanks, ends of lines and control characters.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// consent reads where and when somebody agreed to messages.
func consent(f *web.Form) contacts.Consent {
	c := contacts.Consent{Source: strings.TrimSpace(f.Value("consent_source")), At: f.Day("consented_at")}
	if c.Source == "" && !c.At.IsZero() {
		f.Refuse("consent_source", "error.required")
	}
	return c
}

// DeleteContact is POST /contacts/:id/delete.
func (ps *Pages) DeleteContact(v *web.Visit, t web.Tenant) error {
	deleted, err := ps.By(v).DeleteContacts(v.Ctx(), t.Company.ID, contacts.Selection{IDs: []int64{v.ID()}})
	if err == nil && deleted == 0 {
		err = web.ErrNotFound
	}
	return v.Done(err, "/contacts", "flash.contact.deleted")
}

func contactPath(id int64) string { return "/contacts/" + strconv.FormatInt(id, 10) }

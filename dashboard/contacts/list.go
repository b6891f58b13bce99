package contacts

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"intumwa/contacts"
	"intumwa/dashboard/web"
)

const (
	onPage    = web.MessagesOnPage
	searchFor = 25 * time.Millisecond // minimum duration of a search in a group that finds nothing
	shown     = 3                     // groups of a contact in a list
)

// contactsPage is a list of contacts.
type contactsPage struct {
	Rows     []row
	Filtered bool
	Later    bool // this is not the first page
	First    string
	Next     string // empty on the last page
	All      int    // contacts of the company
	Group    *contacts.Group
	Groups   []web.Option // of the search
	Others   []web.Option // groups that the ticked contacts can join
}

// row is a contact in a list.
type row struct {
	contacts.Contact

	More int // groups that are not shown
}

// Contacts is GET /contacts: all contacts of the company, those of a search, or the members of a group.
func (ps *Pages) Contacts(v *web.Visit, t web.Tenant) error {
	f, filter, err := ps.filter(v, t)
	if err != nil {
		return err
	}
	after := v.C.Query("after")
	p := contactsPage{Filtered: f.Value("q") != "", Later: after != "", First: f.Address("/contacts")}
	book, err := ps.Deps.Contacts.Book(v.Ctx(), t.Company.ID)
	if err != nil {
		return err
	}
	p.All = book.Contacts
	if filter.Group != 0 {
		group, err := ps.Deps.Contacts.Group(v.Ctx(), t.Company.ID, filter.Group)
		if err != nil {
			return err
		}
		p.Group = &group
		if v.C.Request.Method == "GET" {
			f.Values.Set("name", group.Name) // of the form to rename it
		}
	}
	groups, err := ps.groupOptions(v, t)
	if err != nil {
		return err
	}
	p.Groups = append(v.Options("", "contact.search.all"), groups...)
	p.Others = slices.DeleteFunc(groups, func(o web.Option) bool { return o.Value == f.Value("group") })
	var list []contacts.Contact
	for start := time.Now(); ; {
		list, after, err = ps.Deps.Contacts.List(v.Ctx(), t.Company.ID, filter, after, onPage)
		if err != nil || len(list) > 0 || after == "" || time.Since(start) > searchFor {
			break
		}
	}
	if err != nil {
		return err
	}
	if after != "" {
		p.Next = f.Address("/contacts", "after", after)
	}
	for _, c := range list {
		more := max(0, len(c.Groups)-shown)
		c.Groups = c.Groups[:len(c.Groups)-more]
		p.Rows = append(p.Rows, row{c, more})
	}
	return v.Render("contacts", p)
}

// filter reads the filter of a list: q, the beginning of a name or number, and group.
func (ps *Pages) filter(v *web.Visit, t web.Tenant) (*web.Form, contacts.Filter, error) {
	f := v.Parameters("q", "group")
	filter := contacts.Search(f.Value("q"))
	if text := f.Value("group"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return f, filter, web.ErrNotFound
		}
		filter.Group = id
	}
	return f, filter, nil
}

// groupOptions returns all groups of the company.
func (ps *Pages) groupOptions(v *web.Visit, t web.Tenant) (list []web.Option, err error) {
	groups, err := ps.Deps.Contacts.Groups(v.Ctx(), t.Company.ID)
	for _, g := range groups {
		list = append(list, web.Option{Value: strconv.FormatInt(g.ID, 10), Text: g.Name})
	}
	return list, err
}

// ChangeTicked is POST /contacts/ticked: the ticked contacts of a list join a group, leave the list's, or are deleted.
func (ps *Pages) ChangeTicked(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	ids := f.IDs("id")
	switch {
	case len(ids) == 0:
		f.Fail("contact.ticked.none")
		return ps.Contacts(v, t)
	case len(ids) > onPage: // no page has so many
		return web.ErrNotFound
	}
	path, flash := web.Address("/contacts", "group", f.Value("group")), ""
	group := func(field string) int64 {
		id, _ := strconv.ParseInt(f.Value(field), 10, 64)
		return id // 0, which no group has, without one
	}
	var err error
	switch f.Value("do") {
	case "join":
		flash = "flash.contacts.joined"
		_, err = ps.By(v).ChangeMembers(v.Ctx(), t.Company.ID, group("to"), ids, true)
		if errors.Is(err, contacts.ErrNoGroup) { // none is chosen, or somebody has deleted it
			f.Fail("contact.ticked.group")
			return ps.Contacts(v, t)
		}
	case "leave":
		flash = "flash.contacts.left"
		_, err = ps.By(v).ChangeMembers(v.Ctx(), t.Company.ID, group("group"), ids, false)
	case "delete":
		flash = "flash.contacts.deleted"
		_, err = ps.By(v).DeleteContacts(v.Ctx(), t.Company.ID, contacts.Selection{IDs: ids})
	default:
		return web.ErrNotFound
	}
	return v.Done(err, path, flash)
}

// ExportContacts is POST /contacts/export.csv and /contacts/export.xlsx: all contacts, or the members of a group.
func (ps *Pages) ExportContacts(kind string) func(*web.Visit, web.Tenant) error {
	return func(v *web.Visit, t web.Tenant) error {
		group := int64(0)
		if ids := v.Form().IDs("group"); len(ids) > 0 {
			group = ids[0]
		}
		return v.Stream(t, "contacts", kind, func(to io.Writer) error {
			return ps.By(v).ExportContacts(v.Ctx(), t.Company.ID, group, t.User.ID, t.User.Email, func() error {
				_, err := ps.Deps.Contacts.Write(v.Ctx(), to, v.Lang, t.Company.ID, group, kind)
				return err
			})
		})
	}
}

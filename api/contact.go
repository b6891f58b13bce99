package api

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/contacts"
	"intumwa/sms"
)

// contactView is a contact as its company sees it.
type contactView struct {
	ID            int64             `json:"id"`
	PhoneNumber   sms.Number        `json:"phone_number"`
	Name          *string           `json:"name"`
	Language      *string           `json:"language"`
	Fields        map[string]string `json:"fields"`
	Groups        []int64           `json:"groups"`
	ConsentSource *string           `json:"consent_source"`
	ConsentedAt   *string           `json:"consented_at"`
	CreatedAt     string            `json:"created_at"`
	UpdatedAt     string            `json:"updated_at"`
}

func viewOfContact(c *contacts.Contact) contactView {
	view := contactView{ID: c.ID, PhoneNumber: c.Number, Name: orNull(c.Name), Language: orNull(c.Language),
		Fields: c.Fields, Groups: make([]int64, len(c.Groups)), ConsentSource: orNull(c.Consent.Source),
		ConsentedAt: timestampIfAny(c.Consent.At), CreatedAt: timestamp(c.CreatedAt), UpdatedAt: timestamp(c.UpdatedAt)}
	for i, g := range c.Groups {
		view.Groups[i] = g.ID
	}
	return view
}

// deletedView is the response to a deletion.
type deletedView struct {
	ID      int64 `json:"id"`
	Deleted bool  `json:"deleted"`
}

// contactsPut is the response to many contacts.
type contactsPut struct {
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
}

// listContacts is GET /v1/contacts.
func (a *API) listContacts(c *gin.Context) (p page[contactView], err error) {
	q := readQuery(c, contactList)
	filter := contacts.Filter{Number: string(a.phoneNumber(q)), Name: q.Get("name")}
	if text := q.Get("group"); text != "" {
		var ok bool
		if filter.Group, ok = wholeID(text); !ok {
			q.add(groupInvalid)
		}
	}
	if filter.Name != "" && !contacts.Searchable(filter.Name) {
		q.addNamed(parameterEmpty, "name")
	}
	after := q.place()
	if err := q.page(); err != nil {
		return p, err
	}
	rows, next, err := a.Contacts.List(c.Request.Context(), int64(companyID(c)), filter, after, q.limit)
	p, err = pageOf(q, rows, 0, err, viewOfContact)
	if next != "" {
		p.NextCursor = new(q.cursorTo(next))
	}
	return p, err
}

// getContact is GET /v1/contacts/{id}.
func (a *API) getContact(c *gin.Context) (view contactView, err error) {
	id, err := idNamed(c)
	if err != nil {
		return view, err
	}
	contact, err := a.Contacts.Get(c.Request.Context(), int64(companyID(c)), id)
	return viewOfContact(&contact), err
}

// createContact is POST /v1/contacts.
func (a *API) createContact(c *gin.Context) {
	writeContact(a, c, true, func(ctx context.Context, company int64, e contacts.Entry) (contactView, error) {
		made, err := a.Contacts.Create(ctx, company, e)
		return viewOfContact(&made), err
	})
}

// changeContact is PATCH /v1/contacts/{id}.
func (a *API) changeContact(c *gin.Context) {
	writeContact(a, c, false, func(ctx context.Context, company int64, e contacts.Entry) (view contactView, err error) {
		id, err := idNamed(c)
		if err != nil {
			return view, err
		}
		_, is, err := a.Contacts.Update(ctx, company, id, e)
		return viewOfContact(&is), err
	})
}

// writeContact reads a contact and calls write.
func writeContact(a *API, c *gin.Context, whole bool, write func(context.Context, int64, contacts.Entry) (contactView,
	error)) {
	f, done, ok := a.fieldsOf(c)
	if !ok {
		return
	}
	defer done()
	var p problems
	e := p.contact(a.opts.Plan, &f, &ofContact, whole)
	if err := p.first(); err != nil {
		a.writeError(c, err)
		return
	}
	a.changeAtOnce(c, func(ctx context.Context) (any, error) {
		view, err := write(ctx, int64(companyID(c)), e)
		return view, faultOf(err, &ofContact, -1).first(err)
	})
}

// changeAtOnce makes a change after a request's body was read.
func (a *API) changeAtOnce(c *gin.Context, change func(context.Context) (any, error)) {
	leave, ok := a.enterLookup(c) // changes of one company wait for each other, each with a connection
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := background(c)
	defer cancel()
	respond(a, func(*gin.Context) (any, error) { return change(ctx) })(c)
}

// mostMembers is how many memberships of groups one request may give.
const mostMembers = 20_000

// putContacts is POST /v1/contacts/bulk.
func (a *API) putContacts(c *gin.Context) {
	f, done, ok := a.fieldsOf(c)
	if !ok {
		return
	}
	defer done()
	var p problems
	seen := map[sms.Number]bool{}
	entries := readListOf(&p, f.contacts, contacts.MaxAtOnce, contactsEmpty, contactsMany,
		func(item *fields) contacts.Entry {
			e := p.contact(a.opts.Plan, item, &ofContacts, true)
			if e.Number != "" && seen[e.Number] {
				p.add(contactsTwice)
			}
			seen[e.Number] = true
			return e
		})
	members := 0
	for i := range entries {
		members += len(entries[i].Groups)
	}
	if members > mostMembers {
		p.add(membersMany)
	}
	if err := p.ofBatch(); err != nil {
		a.writeError(c, err)
		return
	}
	a.changeAtOnce(c, func(ctx context.Context) (any, error) {
		put, err := a.Contacts.Put(ctx, int64(companyID(c)), entries)
		return contactsPut{put.Added, put.Changed, put.Unchanged},
			faultOf(err, &ofContacts, itemOf(err, entries)).ofBatch(err)
	})
}

// itemOf returns the entry that an error is about: groups are looked up after all entries are read.
func itemOf(err error, entries []contacts.Entry) int {
	fault, is := errors.AsType[*contacts.Fault](err)
	return max(0, slices.IndexFunc(entries, func(e contacts.Entry) bool {
		name, field := strings.CutPrefix(faultField(fault), "fields.")
		return is && (field && e.Fields[name] != nil || len(fault.Args) > 0 && !field && slices.Contains(e.Groups,
			asID(fault.Args[0])))
	}))
}

func faultField(f *contacts.Fault) string {
	if f == nil {
		return ""
	}
	return f.Field
}

func asID(v any) int64 { id, _ := v.(int64); return id }

// deleteContact is DELETE /v1/contacts/{id}.
func (a *API) deleteContact(c *gin.Context) (view deletedView, err error) {
	id, err := idNamed(c)
	if err != nil {
		return view, err
	}
	ctx, cancel := background(c)
	defer cancel()
	deleted, err := a.By(caller(c).UserID).DeleteContacts(ctx, int64(companyID(c)), contacts.Selection{IDs: []int64{id}})
	if err == nil && deleted == 0 {
		err = notFound
	}
	return deletedView{id, true}, err
}

// wholeID reads an id.
func wholeID(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0 && text[0] != '+'
}

// idOf reads an id as a number, or as a text.
func idOf(v value) (int64, bool) {
	if text, isText := v.text(); isText {
		return wholeID(text)
	}
	return wholeID(string(v))
}

// idNamed returns the id of the path; notFound for another text.
func idNamed(c *gin.Context) (int64, error) {
	id, ok := wholeID(c.Param("id"))
	if !ok {
		return 0, notFound
	}
	return id, nil
}

package api

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/contacts"
	"intumwa/intake"
	"intumwa/sms"
	"intumwa/texts"
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

// contact reads a contact. With whole the number is required.
func (p *problems) contact(plan *sms.Plan, f *fields, of *refusalsOfContact, whole bool) (e contacts.Entry) {
	if whole || !f.phoneNumber.isNull() {
		e.Number = p.number(plan, f.phoneNumber, of.numberRequired, of.numberInvalid)
	}
	e.Name, e.Language = p.textOrNull(f.name, of.name), p.textOrNull(f.language, of.language)
	if f.fields.isObject() {
		e.Fields = map[string]*string{}
		for name, v := range f.fields.members() {
			text, isText := v.text()
			switch {
			case v == "null":
				e.Fields[name] = nil
			case !isText:
				p.addNamed(of.field, name)
			default:
				e.Fields[name] = &text
			}
			if len(e.Fields) > 2*contacts.MaxFields {
				break
			}
		}
	} else if !f.fields.isNull() && !f.fields.isEmptyArray() {
		p.add(of.fields)
	}
	if f.groups.isArray() {
		e.Groups = []int64{}
		for v := range f.groups.elements() {
			id, ok := idOf(v)
			if !ok || len(e.Groups) == contacts.MaxGroups {
				p.add(of.groups)
				break
			}
			e.Groups = append(e.Groups, id)
		}
	} else if !f.groups.isNull() {
		p.add(of.groups)
	}
	e.Consent = p.consent(f, of)
	for _, fault := range e.Check() {
		p.fault(fault, of)
	}
	return e
}

// consent reads where and when somebody agreed to messages; null or a blank removes it. nil if it is missing.
func (p *problems) consent(f *fields, of *refusalsOfContact) *contacts.Consent {
	source, isText := f.consentSource.text()
	switch {
	case !isText && !f.consentSource.isNull():
		p.add(of.consentSource)
		return nil
	case isMissing(f.consentSource) && !f.consentedAt.isNull():
		p.add(of.consentRequired)
		return nil
	case f.consentSource == "":
		return nil
	case f.consentedAt.isNull():
		return &contacts.Consent{Source: source}
	}
	text, _ := f.consentedAt.text()
	at, ok := instant(text, texts.Bujumbura)
	if !ok || at.In(texts.Bujumbura).Year() < firstConsents { // also of the zero time, which is none
		p.add(of.consentedAt)
		return &contacts.Consent{Source: source}
	}
	return &contacts.Consent{Source: source, At: at}
}

// firstConsents is the first year that a consent can be of, as in the dashboard.
const firstConsents = 2000

// textOrNull reads a text that null or "" removes; nil if it is missing.
func (p *problems) textOrNull(v value, wrong *refusal) *string {
	text, isText := v.text()
	switch {
	case v == "":
		return nil
	case !isText && v != "null":
		p.add(wrong)
		return nil
	}
	return &text
}

// fault adds what package contacts found wrong.
func (p *problems) fault(f *contacts.Fault, of *refusalsOfContact) {
	name, ofField := strings.CutPrefix(f.Field, "fields.")
	switch {
	case f.Key == "contact.wrong.fields":
		p.add(of.fields)
	case ofField:
		p.addNamed(of.field, name)
	default:
		p.add(map[string]*refusal{"phone_number": of.taken, "name": of.name, "language": of.language, "fields": of.fields,
			"groups": of.groups, "consent_source": of.consentSource, "consented_at": of.consentedAt}[f.Field])
	}
}

// faulty are the problems that an error tells.
type faulty struct{ problems }

func faultOf(err error, of *refusalsOfContact, item int) (p faulty) {
	p.item = item
	if fault, is := errors.AsType[*contacts.Fault](err); is {
		p.fault(fault, of)
	}
	return p
}

// first returns the problems as a 422 of a single request, and err if there are none.
func (p faulty) first(err error) error {
	if p.none() {
		return err
	}
	return p.problems.first()
}

// ofBatch returns the problems as a 422 of a batch, and err if there are none.
func (p faulty) ofBatch(err error) error {
	if p.none() {
		return err
	}
	return p.problems.ofBatch()
}

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

// group reads the id of a group.
func (p *problems) group(v value) int64 {
	id, ok := idOf(v)
	if !ok {
		p.add(groupInvalid)
	}
	return id
}

// members returns the recipients of a template send to a group.
func (a *API) members(ctx context.Context, company, group int64, template *sms.Template) ([]intake.Recipient, error) {
	members, err := a.Contacts.Members(ctx, company, group, maxItems+1)
	var p problems
	switch {
	case errors.Is(err, contacts.ErrNoGroup):
		p.add(groupUnknown)
	case err != nil:
		return nil, errors.Join(intake.ErrUnavailable, err)
	case len(members) == 0:
		p.add(groupEmpty)
	case len(members) > maxItems:
		p.add(groupLarge)
	}
	if err := p.ofBatch(); err != nil {
		return nil, err
	}
	list := make([]intake.Recipient, len(members))
	for i := range members {
		list[i] = intake.Recipient{Number: members[i].Number, Contact: members[i].ID, Variables: map[string]*string{}}
		for _, name := range template.Names() {
			if value, given := members[i].Value(name); given {
				list[i].Variables[name] = &value
			}
		}
	}
	return list, nil
}

// groupView is a group of contacts.
type groupView struct {
	ID        int64  `json:"id"`
	Name      string `json:"name"`
	Members   int    `json:"members"`
	CreatedAt string `json:"created_at"`
}

func viewOfGroup(g *contacts.Group) groupView {
	return groupView{g.ID, g.Name, g.Members, timestamp(g.CreatedAt)}
}

// listGroups is GET /v1/groups.
func (a *API) listGroups(c *gin.Context) (page[groupView], error) {
	q := readQuery(c, groupList)
	if err := q.page(); err != nil {
		return page[groupView]{}, err
	}
	rows, next, err := a.Contacts.GroupPage(c.Request.Context(), int64(companyID(c)), q.before, q.limit)
	return pageOf(q, rows, next, err, viewOfGroup)
}

// getGroup is GET /v1/groups/{id}.
func (a *API) getGroup(c *gin.Context) (view groupView, err error) {
	id, err := idNamed(c)
	if err != nil {
		return view, err
	}
	group, err := a.Contacts.Group(c.Request.Context(), int64(companyID(c)), id)
	return viewOfGroup(&group), err
}

// createGroup is POST /v1/groups.
func (a *API) createGroup(c *gin.Context) {
	a.writeGroup(c, a.Contacts.CreateGroup)
}

// changeGroup is PATCH /v1/groups/{id}.
func (a *API) changeGroup(c *gin.Context) {
	a.writeGroup(c, func(ctx context.Context, company int64, name string) (contacts.Group, error) {
		id, err := idNamed(c)
		if err != nil {
			return contacts.Group{}, err
		}
		_, is, err := a.Contacts.RenameGroup(ctx, company, id, name)
		return is, err
	})
}

func (a *API) writeGroup(c *gin.Context, write func(context.Context, int64, string) (contacts.Group, error)) {
	f, done, ok := a.fieldsOf(c)
	if !ok {
		return
	}
	defer done()
	var p problems
	name, _ := f.name.text()
	if _, wrong := contacts.CheckGroupName(name); wrong != nil {
		p.add(groupNameInvalid)
	}
	if err := p.first(); err != nil {
		a.writeError(c, err)
		return
	}
	a.changeAtOnce(c, func(ctx context.Context) (any, error) {
		group, err := write(ctx, int64(companyID(c)), name)
		if _, taken := errors.AsType[*contacts.Fault](err); taken {
			p.add(groupNameTaken)
			err = p.first()
		}
		return viewOfGroup(&group), err
	})
}

// deleteGroup is DELETE /v1/groups/{id}.
func (a *API) deleteGroup(c *gin.Context) (view deletedView, err error) {
	id, err := idNamed(c)
	if err != nil {
		return view, err
	}
	ctx, cancel := background(c)
	defer cancel()
	_, err = a.By(caller(c).UserID).DeleteGroup(ctx, int64(companyID(c)), id)
	if used, is := errors.AsType[*contacts.GroupUsed](err); is {
		named := *groupUsed
		named.text = strings.Replace(named.text, "K to N", used.Keyword+" to "+used.Address, 1)
		err = &named
	}
	return deletedView{id, true}, err
}

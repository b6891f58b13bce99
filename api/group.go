package api

import (
	"context"
	"errors"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/contacts"
	"intumwa/intake"
	"intumwa/sms"
)

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

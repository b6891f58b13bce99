package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"intumwa/accounts/letter"
	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/sms"
)

func (in within) contacts() *contacts.Store { return (&contacts.Store{}).In(in.Tx) }

// recordedContact is a contact as the audit log has it, whose entries are permanent.
func recordedContact(c contacts.Contact) any {
	return fields{"phone_number": c.Number.Masked()}
}

// CreateContact adds a contact to a company. The errors are those of [contacts.Store.Create].
func (a Actor) CreateContact(ctx context.Context, company int64, e contacts.Entry) (made contacts.Contact, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		made, err = in.contacts().Create(ctx, company, e)
		return on("contacts.create", "contact", made.ID, company, nil, recordedContact(made)), err
	})
	return made, err
}

// ChangeContact changes a company's contact. The errors are those of [contacts.Store.Update].
func (a Actor) ChangeContact(ctx context.Context, company, id int64, e contacts.Entry) (is contacts.Contact,
	err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		var was contacts.Contact
		was, is, err = in.contacts().Update(ctx, company, id, e)
		done := on("contacts.change", "contact", id, company, recordedContact(was), recordedContact(is))
		done.hidden = !was.UpdatedAt.Equal(is.UpdatedAt) || len(was.Groups) != len(is.Groups)
		for i := range min(len(was.Groups), len(is.Groups)) {
			done.hidden = done.hidden || was.Groups[i] != is.Groups[i]
		}
		return done, err
	})
	return is, err
}

// DeleteContacts deletes a company's contacts, and returns how many it deleted, also with an error. Members of a group
// and all contacts are deleted in steps, after an entry about the beginning, with one at the end: the act can be
// repeated until nothing is left.
func (a Actor) DeleteContacts(ctx context.Context, company int64, which contacts.Selection) (deleted int, err error) {
	done := act{name: "contacts.delete", subject: fmt.Sprintf("company %d", company), company: company}
	if which.Group == 0 && !which.All {
		err := a.do(ctx, locks, func(in within) (act, error) {
			var err error
			if deleted, err = in.contacts().DeleteSome(ctx, company, which); deleted == 0 {
				return act{}, err
			}
			if len(which.IDs) == 1 {
				done.subject = fmt.Sprintf("contact %d", which.IDs[0])
			}
			done.after = fields{"contacts": deleted}
			return done, err
		})
		return deleted, err
	}
	if which.Group != 0 {
		if _, err := contacts.New(a.Pool).Group(ctx, company, which.Group); err != nil {
			return 0, err
		}
		done.subject = fmt.Sprintf("group %d", which.Group)
	}
	if err := a.note(ctx, done); err != nil {
		return 0, err
	}
	store := contacts.New(a.Pool)
	for n := 1; n > 0 && err == nil; deleted += n {
		n, err = store.DeleteSome(ctx, company, which)
	}
	done.name, done.after = "contacts.delete.done", fields{"contacts": deleted}
	return deleted, errors.Join(err, a.noteEnd(context.WithoutCancel(ctx), done))
}

// largeGroup is how many members leave a group in the transaction that deletes it.
const largeGroup = 5000

// CreateGroup makes a group of a company. The errors are those of [contacts.Store.CreateGroup].
func (a Actor) CreateGroup(ctx context.Context, company int64, name string) (made contacts.Group, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		made, err = in.contacts().CreateGroup(ctx, company, name)
		return on("contacts.group_create", "group", made.ID, company, nil, fields{"name": made.Name}), err
	})
	return made, err
}

// RenameGroup gives a company's group another name. The errors are those of [contacts.Store.RenameGroup].
func (a Actor) RenameGroup(ctx context.Context, company, id int64, name string) (is contacts.Group, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		var was contacts.Group
		was, is, err = in.contacts().RenameGroup(ctx, company, id, name)
		return on("contacts.group_rename", "group", id, company, fields{"name": was.Name}, fields{"name": is.Name}), err
	})
	return is, err
}

// DeleteGroup deletes a company's group; its members stay contacts. The errors are those of
// [contacts.Store.DeleteGroup], with the route. The members of a large group leave it in steps before, after an entry
// about that.
func (a Actor) DeleteGroup(ctx context.Context, company, id int64) (was contacts.Group, err error) {
	store := contacts.New(a.Pool)
	if was, err = store.Group(ctx, company, id); err != nil {
		return was, err
	}
	if err := a.unused(ctx, id); err != nil {
		return was, err
	}
	if was.Members > largeGroup {
		err := a.note(ctx, on("contacts.group_leave", "group", id, company, nil, fields{"contacts": was.Members}))
		for n := 1; n > 0 && err == nil; {
			if err = a.unused(ctx, id); err == nil { // a route may be added at any moment
				n, err = store.EmptyGroup(ctx, company, id)
			}
		}
		if err != nil {
			return was, err
		}
	}
	err = a.do(ctx, locks, func(in within) (act, error) {
		was, err = in.contacts().DeleteGroup(ctx, company, id)
		return on("contacts.group_delete", "group", id, company, fields{"name": was.Name, "members": was.Members}, nil), err
	})
	if _, used := errors.AsType[*contacts.GroupUsed](err); used { // the route was added a moment ago
		err = cmp.Or(a.unused(ctx, id), err)
	}
	return was, err
}

// unused returns a [*contacts.GroupUsed] if a number joins or leaves a group by a keyword.
func (a Actor) unused(ctx context.Context, group int64) error {
	route, err := handsets.New(a.Pool).RouteOfGroup(ctx, group)
	switch {
	case errors.Is(err, handsets.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return &contacts.GroupUsed{Keyword: route.Keyword, Address: route.Address}
}

// ImportContacts confirms a company's import. The errors are those of [contacts.Confirm].
func (a Actor) ImportContacts(ctx context.Context, company, id int64) (is contacts.Import, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		var again bool
		if is, again, err = contacts.Confirm(ctx, in.Tx, company, id); err != nil || again {
			return act{}, err
		}
		return on("contacts.import", "import", id, company, nil, fields{"name": is.Name, "lines": is.Lines, "added": is.Added,
			"changed": is.Changed, "refused": is.Refused}), nil
	})
	return is, err
}

// ExportContacts records that a company's contacts are exported, in a letter to the owner too, and calls write. by is
// the e-mail of the user, of whom each has a letter; 0 and "": an operator. group is 0 for all.
func (a Actor) ExportContacts(ctx context.Context, company, group, user int64, by string, write func() error) error {
	if err := a.do(ctx, locks, func(in within) (act, error) {
		_, err := in.companies().CompanyByID(ctx, company)
		book := contacts.Book{}
		if err == nil {
			book, err = in.contacts().Book(ctx, company)
		}
		done := act{name: "contacts.export", subject: fmt.Sprintf("company %d", company), company: company}
		if err == nil && group != 0 {
			var of contacts.Group
			of, err = in.contacts().Group(ctx, company, group)
			book.Contacts, done.subject = of.Members, fmt.Sprintf("group %d", group)
		}
		if err == nil {
			err = letter.WriteOf(ctx, in.Tx, letter.Contacts, sms.CompanyID(company), user,
				letter.ContactsValues{By: by, Contacts: book.Contacts})
		}
		done.after = fields{"contacts": book.Contacts}
		return done, err
	}); err != nil {
		return err
	}
	return write()
}

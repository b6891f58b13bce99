// Package contacts is the pages of a company's contacts and groups.
package contacts

import (
	"context"
	"errors"
	"html/template"
	"strings"

	"intumwa/contacts"
	"intumwa/dashboard/web"
	"intumwa/sms"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"languageOf": languageOf, "useOf": useOf}

// Pages are the pages of contacts and groups.
type Pages struct {
	Deps Deps
	By   func(*web.Visit) Changes
	Plan *sms.Plan
}

// Deps are what these pages call.
type Deps struct {
	Contacts *contacts.Store
	Imports  *contacts.Imports
}

// Changes are those that the audit log has.
type Changes interface {
	ChangeContact(ctx context.Context, company, id int64, e contacts.Entry) (contacts.Contact, error)
	ChangeMembers(ctx context.Context, company, group int64, members []int64, join bool) (changed int, err error)
	CreateContact(ctx context.Context, company int64, e contacts.Entry) (contacts.Contact, error)
	CreateGroup(ctx context.Context, company int64, name string) (contacts.Group, error)
	DeleteContacts(ctx context.Context, company int64, which contacts.Selection) (deleted int, err error)
	DeleteGroup(ctx context.Context, company, id int64) (contacts.Group, error)
	ExportContacts(ctx context.Context, company, group, user int64, by string, write func() error) error
	ImportContacts(ctx context.Context, company, id int64) (contacts.Import, error)
	RenameGroup(ctx context.Context, company, id int64, name string) (contacts.Group, error)
}

// denied shows an error about what was entered on the form, and returns any other error.
func denied(f *web.Form, err error) error {
	fault, wrong := errors.AsType[*contacts.Fault](err)
	switch {
	case wrong:
		refuse(f, fault)
	case errors.Is(err, contacts.ErrFull):
		f.Fail("contact.full", contacts.MaxContacts)
	case errors.Is(err, contacts.ErrGroups):
		f.Fail("group.full", contacts.MaxGroups)
	default:
		return err
	}
	return nil
}

// refuse shows what is wrong with a contact or group at its field.
func refuse(f *web.Form, wrong *contacts.Fault) {
	added, _ := contacts.FieldName(f.Value(newField))
	switch name, own := strings.CutPrefix(wrong.Field, "fields."); {
	case wrong.Key == "contact.wrong.taken": // the text names an id, which no page shows
		f.Refuse(wrong.Field, "contact.wrong.taken.now")
	case own && (name == f.Value(newField) || name == added):
		f.Refuse(newField, wrong.Key, wrong.Args...)
	case wrong.Field == "fields" || wrong.Field == "groups":
		f.Fail(wrong.Key, wrong.Args...)
	default:
		f.Refuse(wrong.Field, wrong.Key, wrong.Args...)
	}
}

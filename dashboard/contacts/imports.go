package contacts

import (
	"errors"
	"strconv"
	"strings"

	"intumwa/campaigns"
	"intumwa/campaigns/sheets"
	"intumwa/contacts"
	"intumwa/dashboard/numberfile"
	"intumwa/dashboard/web"
	"intumwa/texts"
)

const (
	importsOnPage = 20
	linesOnPage   = 10 // first lines of a file
)

// importPage is the form of a file of contacts.
type importPage struct {
	Groups    []web.Option
	Encodings []web.Option
	Wrong     web.Firsts[sheets.Problem]
	Imports   []contacts.Import
	Most      int // lines of a file
	MiB       int // of a file
	Example   string
}

// Import is GET /contacts/import.
func (ps *Pages) Import(v *web.Visit, t web.Tenant) error {
	v.Parameters("group") // that the contacts join
	return ps.showImport(v, t, nil)
}

func (ps *Pages) showImport(v *web.Visit, t web.Tenant, wrong []sheets.Problem) error {
	_, size := campaigns.Limits(&t.Company)
	p := importPage{Encodings: numberfile.Encodings(v.Lang), Most: contacts.MaxLines, MiB: size >> 20,
		Example: v.Lang.T("import.example.head") + "\n79 12 34 00;Aline Niyonzima;3A\n71 23 45 00;Éric Ndayizeye;4B\n"}
	for _, problem := range wrong {
		p.Wrong.Add(problem)
	}
	groups, err := ps.groupOptions(v, t)
	if err != nil {
		return err
	}
	p.Groups = append(v.Options("", "import.group.none"), groups...)
	p.Imports, err = ps.Deps.Imports.List(v.Ctx(), t.Company.ID, importsOnPage)
	return v.Page(err, "import", p)
}

// CheckImport is POST /contacts/import: it reads and checks a file, and changes no contact.
func (ps *Pages) CheckImport(v *web.Visit, t web.Tenant) error {
	_, most := campaigns.Limits(&t.Company)
	file, name, leave, err := numberfile.Read(v, &t.Company, most)
	defer leave()
	if err != nil {
		return err
	}
	f := v.Form()
	about := contacts.File{Company: t.Company.ID, Name: name, Content: file, Reading: numberfile.About(f, file, most)}
	about.Consent = consent(f)
	if f.Value("group") != "" && strings.TrimSpace(f.Value("new_group")) != "" {
		f.Refuse("new_group", "import.group.both")
	}
	if f.OK() {
		about.Group, err = ps.importGroup(v, t)
	}
	if err == nil && f.OK() {
		leaveBook, err := numberfile.Unpack(v, &t.Company, file)
		if err != nil {
			return err
		}
		defer leaveBook()
		var made contacts.Import
		var wrong []sheets.Problem
		made, wrong, err = ps.Deps.Imports.Check(v.Ctx(), v.Lang, about)
		switch err = denied(f, err); {
		case err != nil:
			return err
		case f.OK() && len(wrong) == 0:
			return v.Redirect(importPath(made.ID), "")
		case len(wrong) > 0:
			f.Fail("import.wrong")
			return ps.showImport(v, t, wrong)
		}
	}
	if err != nil {
		return err
	}
	return ps.showImport(v, t, nil)
}

// importGroup returns the group that the form names: one of the company's, or a new one; 0 for none.
func (ps *Pages) importGroup(v *web.Visit, t web.Tenant) (int64, error) {
	f := v.Form()
	name := strings.TrimSpace(f.Value("new_group"))
	if name == "" {
		if f.Value("group") == "" {
			return 0, nil
		}
		id, err := strconv.ParseInt(f.Value("group"), 10, 64)
		if err == nil {
			_, err = ps.Deps.Contacts.Group(v.Ctx(), t.Company.ID, id)
		} else {
			err = contacts.ErrNoGroup
		}
		if errors.Is(err, contacts.ErrNoGroup) { // somebody has deleted it
			f.Refuse("group", "group.gone")
			err = nil
		}
		return id, err
	}
	name, wrong := contacts.CheckGroupName(name)
	if wrong != nil {
		f.Refuse("new_group", wrong.Key, wrong.Args...)
		return 0, nil
	}
	group, err := ps.Deps.Contacts.GroupByName(v.Ctx(), t.Company.ID, name)
	if errors.Is(err, contacts.ErrNoGroup) {
		group, err = ps.By(v).CreateGroup(v.Ctx(), t.Company.ID, name)
	}
	if fault, wrong := errors.AsType[*contacts.Fault](err); wrong {
		f.Refuse("new_group", fault.Key, fault.Args...)
		err = nil
	}
	return group.ID, denied(f, err)
}

// importedPage is an import: checked, being merged, or merged.
type importedPage struct {
	contacts.Import

	GroupName string
	First     []contacts.Line
	Wrong     web.Firsts[contacts.Line]
}

// Ready counts the contacts that would be made or changed.
func (p importedPage) Ready() int { return p.Added + p.Changed }

// uses are the texts of what a column becomes.
var uses = map[string]string{contacts.UseNumber: "import.use.number", contacts.UseName: "import.use.name",
	contacts.UseLanguage: "import.use.language", contacts.UseGroups: "import.use.groups",
	contacts.UseField: "import.use.field", contacts.UseNothing: "import.use.nothing"}

func useOf(p *web.View, c contacts.Column) string { return p.T(uses[c.Use], c.Field) }

// Imported is GET /contacts/imports/:id.
func (ps *Pages) Imported(v *web.Visit, t web.Tenant) error {
	made, err := ps.Deps.Imports.Get(v.Ctx(), t.Company.ID, v.ID())
	if err != nil {
		return err
	}
	p := importedPage{Import: made}
	if made.Group != nil {
		group, err := ps.Deps.Contacts.Group(v.Ctx(), t.Company.ID, *made.Group)
		if err != nil && !errors.Is(err, contacts.ErrNoGroup) { // deleted since
			return err
		}
		p.GroupName = group.Name
	}
	if made.ConfirmedAt == nil {
		if p.First, err = ps.Deps.Imports.Preview(v.Ctx(), made.ID, linesOnPage); err != nil {
			return err
		}
	}
	if made.Refused > 0 {
		if p.Wrong.List, err = ps.Deps.Imports.Refused(v.Ctx(), made.ID, 0, web.FirstsOnPage); err != nil {
			return err
		}
		if len(p.Wrong.List) > 0 { // they are kept for a day
			p.Wrong.More = made.Refused - len(p.Wrong.List)
		}
	}
	return v.Render("imported", &p)
}

// ConfirmImport is POST /contacts/imports/:id/confirm: the lines are merged from now on.
func (ps *Pages) ConfirmImport(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	_, err := ps.By(v).ImportContacts(v.Ctx(), t.Company.ID, v.ID())
	if errors.Is(err, contacts.ErrNoGroup) { // somebody has deleted it
		f.Fail("import.group.gone")
		err = nil
	}
	if err = denied(f, err); err == nil && !f.OK() {
		return ps.Imported(v, t)
	}
	return v.Done(err, importPath(v.ID()), "")
}

// DropImport is POST /contacts/imports/:id/drop.
func (ps *Pages) DropImport(v *web.Visit, t web.Tenant) error {
	if _, err := ps.Deps.Imports.Get(v.Ctx(), t.Company.ID, v.ID()); err != nil {
		return err
	}
	dropped, err := ps.Deps.Imports.Drop(v.Ctx(), t.Company.ID, v.ID())
	if err == nil && !dropped { // it is confirmed
		return v.Redirect(importPath(v.ID()), "")
	}
	return v.Done(err, "/contacts/import", "flash.import.dropped")
}

// ExportRefused is GET /contacts/imports/:id/lines.csv: the lines that are refused, and why.
func (ps *Pages) ExportRefused(v *web.Visit, t web.Tenant) error {
	made, err := ps.Deps.Imports.Get(v.Ctx(), t.Company.ID, v.ID())
	if err != nil {
		return err
	}
	return v.Export(t, "lines", v.Lang.Texts("csv.line", "draft.why.line"), func(row func(...string) error) error {
		for after, more := 0, true; more; {
			var lines []contacts.Line
			if err := v.InTurn(func() (err error) {
				lines, err = ps.Deps.Imports.Refused(v.Ctx(), made.ID, after, web.RowsAtOnce)
				return err
			}); err != nil {
				return err
			}
			for _, line := range lines {
				if err := row(strconv.Itoa(line.Line), texts.Cell(line.Fault)); err != nil {
					return err
				}
				after = line.N
			}
			more = len(lines) == web.RowsAtOnce
		}
		return nil
	})
}

func importPath(id int64) string { return "/contacts/imports/" + strconv.FormatInt(id, 10) }

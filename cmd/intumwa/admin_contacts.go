package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"intumwa/campaigns/sheets"
	"intumwa/contacts"
	"intumwa/sms"
	"intumwa/texts"
)

type adminContactsCmd struct {
	List   adminContactsListCmd   `cmd:"" default:"withargs" help:"List a company's contacts."`
	Import adminContactsImportCmd `cmd:"" help:"Add the contacts of a workbook or CSV file to a company, or change those with the same numbers."`
	Export adminContactsExportCmd `cmd:"" help:"Write a company's contacts to standard output. The owner gets a mail."`
	Delete adminContactsDeleteCmd `cmd:"" help:"Delete contacts of a company."`
}

type contactsFlags struct {
	Company int64 `required:"" help:"The company's id." placeholder:"ID"`
	Group   int64 `help:"A group of the company: its id." placeholder:"ID"`
}

// english are the texts of commands.
func english() (*texts.Language, error) {
	all, err := texts.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the texts: %w", err)
	}
	lang, _ := all.ByTag("en")
	return lang, nil
}

func contactOf(c contacts.Contact) object {
	groups := make([]int64, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = g.ID
	}
	consented := any(nil)
	if !c.Consent.At.IsZero() {
		consented = c.Consent.At
	}
	return object{{"id", c.ID}, {"phone_number", c.Number}, {"name", orNull(c.Name)}, {"language", orNull(c.Language)},
		{"fields", c.Fields}, {"groups", groups}, {"consent_source", orNull(c.Consent.Source)}, {"consented_at", consented},
		{"created_at", c.CreatedAt}, {"updated_at", c.UpdatedAt}}
}

// listMost is the longest list of contacts: an export is recorded, and its owner told.
const listMost = 1000

type adminContactsListCmd struct {
	contactsFlags

	Number string `aliases:"to" help:"Only those whose numbers begin so." placeholder:"N"`
	Name   string `help:"Only those whose names begin so; case and accents do not count."`
	Limit  int    `default:"50" help:"How many at most, up to 1,000."`
	After  int64  `help:"Only those with smaller ids: the next page. Not with --number and --name." placeholder:"ID"`
}

func (c *adminContactsListCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Limit < 1 || c.Limit > listMost {
		return nil, fmt.Errorf("--limit is from 1 to %d; export writes all contacts", listMost)
	}
	if _, err := o.companies().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	filter := contacts.Filter{Name: c.Name, Group: c.Group}
	if c.Number != "" {
		if filter.Number = contacts.Search(c.Number).Number; filter.Number == "" {
			return nil, errors.New("--number is not the beginning of a number")
		}
	}
	after := ""
	if c.After > 0 {
		if filter.Number+filter.Name != "" {
			return nil, errors.New("--after works without --number and --name")
		}
		after = fmt.Sprint(c.After)
	}
	store := contacts.New(o.pool)
	list := []object{}
	for len(list) < c.Limit {
		page, next, err := store.List(ctx, c.Company, filter, after, min(c.Limit-len(list), contacts.MaxPage))
		if err != nil {
			return nil, err
		}
		for _, contact := range page {
			list = append(list, contactOf(contact))
		}
		if after = next; next == "" {
			break
		}
	}
	return list, nil
}

type adminContactsImportCmd struct {
	contactsFlags

	File    string `arg:"" help:"The file: XLSX, or CSV in any usual encoding. One line names the columns."`
	Consent string `help:"Where the consent of contacts without one came from." placeholder:"TEXT"`
	DryRun  bool   `help:"Only check and count the lines."`
}

// do checks the file, and merges it unless there is something wrong with the file as a whole. If the command ends
// before, processes with the role webhooks go on.
func (c *adminContactsImportCmd) do(ctx context.Context, o *operator) (any, error) {
	lang, err := english()
	if err != nil {
		return nil, err
	}
	if _, err := o.companies().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	content, err := readFile(c.File)
	if err != nil {
		return nil, err
	}
	imports := contacts.NewImports(o.pool, planOf(o.config), slog.New(slog.DiscardHandler))
	x, wrong, err := imports.Check(ctx, lang, contacts.File{Company: c.Company, Name: filepath.Base(c.File),
		Content: content, Group: c.Group, Consent: contacts.Consent{Source: c.Consent}})
	for _, problem := range wrong {
		err = errors.Join(err, problemError(problem))
	}
	if fault, is := errors.AsType[*contacts.Fault](err); is {
		err = fmt.Errorf("--consent: %s", lang.T(fault.Key, fault.Args...))
	}
	if err != nil {
		return nil, err
	}
	if err := o.refusedLines(ctx, imports, x.ID); err != nil {
		return nil, err
	}
	if c.DryRun {
		_, err = imports.Drop(ctx, c.Company, x.ID)
		return importOf(x), err
	}
	if _, err := o.by(nil).ImportContacts(ctx, c.Company, x.ID); err != nil {
		return nil, err
	}
	x, err = imports.Merge(ctx, c.Company, x.ID)
	if err == nil && x.Stopped != "" {
		err = fmt.Errorf("it ended at line %d: %s", x.Position, x.Stopped)
	}
	return importOf(x), err
}

func problemError(p sheets.Problem) error {
	if p.Line > 0 {
		return fmt.Errorf("line %d: %s", p.Line, p.Text)
	}
	return errors.New(p.Text)
}

// refusedLines prints the first refused lines as warnings.
func (o *operator) refusedLines(ctx context.Context, imports *contacts.Imports, id int64) error {
	lines, err := imports.Refused(ctx, id, 0, 20)
	for _, line := range lines {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: warning: line %d: %s\n", line.Line, line.Fault)
	}
	return err
}

func importOf(x contacts.Import) object {
	return object{{"import_id", x.ID}, {"lines", x.Lines}, {"added", x.Added}, {"changed", x.Changed},
		{"unchanged", x.Unchanged}, {"refused", x.Refused}, {"repeated", x.Repeated}}
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, contacts.MaxFile+1))
	if err == nil && len(content) > contacts.MaxFile {
		err = fmt.Errorf("the file is larger than %d MiB", contacts.MaxFile>>20)
	}
	return content, err
}

type adminContactsExportCmd struct {
	contactsFlags

	Format   string `default:"csv" enum:"csv,xlsx" help:"csv or xlsx."`
	Language string `default:"en" enum:"en,fr" help:"en or fr: French CSV files have semicolons."`
}

// do prints the file as it reads it: its memory does not depend on the number of contacts.
func (c *adminContactsExportCmd) do(ctx context.Context, o *operator) (any, error) {
	all, err := texts.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the texts: %w", err)
	}
	lang, _ := all.ByTag(c.Language)
	return nil, o.by(nil).ExportContacts(ctx, c.Company, c.Group, 0, "", func() error {
		_, err := contacts.New(o.pool).Write(ctx, o.stdout, lang, c.Company, c.Group, c.Format)
		return err
	})
}

type adminContactsDeleteCmd struct {
	contactsFlags

	ID     []int64 `name:"id" help:"These contacts." placeholder:"ID"`
	Number string  `aliases:"to" help:"The contact with this number." placeholder:"N"`
	All    bool    `help:"All contacts of the company."`
}

// do deletes contacts; with --group its members, while the group stays.
func (c *adminContactsDeleteCmd) do(ctx context.Context, o *operator) (any, error) {
	which := contacts.Selection{IDs: c.ID, Group: c.Group, All: c.All}
	given := 0
	for _, is := range []bool{len(c.ID) > 0, c.Number != "", c.Group != 0, c.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("say which contacts: one of --id, --number, --group and --all")
	}
	if len(c.ID) > contacts.MaxAtOnce {
		return nil, fmt.Errorf("--id can name %d contacts", contacts.MaxAtOnce)
	}
	if c.Number != "" {
		number, valid := planOf(o.config).Parse(c.Number)
		if !valid {
			return nil, errors.New("--number is not a valid Burundi (+257) number")
		}
		contact, err := contacts.New(o.pool).ByNumber(ctx, c.Company, number)
		if err != nil {
			return nil, err
		}
		which.IDs = []int64{contact.ID}
	}
	deleted, err := o.by(nil).DeleteContacts(ctx, c.Company, which)
	if err == nil && deleted == 0 && len(which.IDs) > 0 {
		err = contacts.ErrNotFound
	}
	if deleted == 0 {
		return done(object{{"deleted", 0}}, err)
	}
	return object{{"deleted", deleted}}, err
}

// contactsOf prints a number's contacts of all companies.
func (o *operator) contactsOf(ctx context.Context, number sms.Number, e *export) error {
	found, err := contacts.New(o.pool).OfNumber(ctx, number)
	return e.print("contact", "contacts", err, views(found, func(c contacts.Contact) object {
		return append(object{{"company_id", c.Company}}, contactOf(c)...)
	}))
}

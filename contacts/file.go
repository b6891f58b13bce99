package contacts

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"intumwa/internal/postgres"
	"intumwa/texts"
)

// Formats of files.
const (
	CSV  = "csv"
	XLSX = "xlsx"
)

// Formats are all formats of files.
var Formats = []string{CSV, XLSX}

// heads are the columns before those of the fields: an import understands them.
var heads = []string{"phone_number", "name", "language", "groups", "consent_source", "consented_at"}

// fileStep is how many contacts are read at a time.
const fileStep = 1000

// Write writes a company's contacts, or those of a group unless it is 0, to a file, and returns how many. Its
// memory does not depend on their number.
func (s *Store) Write(ctx context.Context, to io.Writer, lang *texts.Language, company, group int64, format string) (
	written int, err error) {
	book, err := s.Book(ctx, company)
	if err != nil {
		return 0, err
	}
	row, end, err := open(to, lang, format)
	if err == nil {
		err = row(slices.Concat(heads, book.Fields))
	}
	condition := `c.company_id = $1 AND c.id > $2 ORDER BY c.id LIMIT $3`
	args := []any{company, int64(0), fileStep}
	if group != 0 {
		condition = `c.company_id = $1 AND c.id IN (SELECT contact_id FROM contact_members
			WHERE group_id = $4 AND contact_id > $2 ORDER BY contact_id LIMIT $3) ORDER BY c.id`
		args = append(args, group)
	}
	for more := true; more && err == nil; {
		var page []Contact
		page, err = postgres.All(ctx, s.db, "reading contacts", scanContact,
			`SELECT `+contactColumns+` FROM contacts c WHERE `+condition, args...)
		for i := range page {
			if err == nil {
				err = row(cells(&page[i], book.Fields))
			}
			args[1] = page[i].ID
		}
		written, more = written+len(page), len(page) > 0
	}
	if err == nil {
		err = end()
	}
	return written, err
}

func cells(c *Contact, fields []string) []string {
	groups := make([]string, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = g.Name
	}
	at := ""
	if !c.Consent.At.IsZero() {
		at = texts.CellTime(&c.Consent.At)
	}
	row := []string{strings.TrimPrefix(string(c.Number), "+"), c.Name, c.Language, strings.Join(groups, ", "),
		c.Consent.Source, at}
	for _, name := range fields {
		row = append(row, c.Fields[name])
	}
	return row
}

// open begins a file. row writes a row of texts, end the rest.
func open(to io.Writer, lang *texts.Language, format string) (row func([]string) error, end func() error, err error) {
	switch format {
	case XLSX:
		b := newBook(to)
		return b.row, b.end, b.err
	case CSV:
		if _, err := io.WriteString(to, texts.CSVMark); err != nil {
			return nil, nil, err
		}
		out := lang.CSV(to)
		return func(cells []string) error {
				for i := range cells {
					cells[i] = texts.Cell(cells[i])
				}
				return out.Write(cells)
			}, func() error {
				out.Flush()
				return out.Error()
			}, nil
	}
	return nil, nil, fmt.Errorf("there is no format %q", format)
}

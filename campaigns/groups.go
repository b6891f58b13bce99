package campaigns

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/campaigns/sheets"
	"intumwa/contacts"
	"intumwa/sms"
	"intumwa/texts"
)

// KeepGroups stores a campaign to the audience of made, each member at this moment once, or returns what is wrong, in
// the user's language. company is the one with its senders ([accounts.Principal]). The error is
// [contacts.ErrNoGroup] if it lacks a group.
func (c *Campaigns) KeepGroups(ctx context.Context, lang *texts.Language, company *accounts.Company, made *Campaign) (
	wrong []sheets.Problem, err error) {
	store := contacts.New(c.Pool)
	if _, err := store.GroupsOf(ctx, company.ID, *made.Audience); err != nil {
		return nil, err
	}
	book, err := store.Book(ctx, company.ID)
	if err != nil {
		return nil, err
	}
	check := c.checker(lang, company, made.Sender, made.Template)
	for _, name := range check.template.Names() {
		if !contacts.Known(name, book.Fields) {
			wrong = append(wrong, sheets.Problem{Text: lang.T("campaign.group.field", sheets.Shorten(name))})
		}
	}
	for _, name := range singleBraces.FindAllStringSubmatch(made.Template, -1) {
		if contacts.Known(name[1]+name[2], book.Fields) {
			wrong = append(wrong, sheets.Problem{
				Text: lang.T("campaign.template.single", sheets.Shorten(strings.TrimSpace(name[1]+name[2])))})
		}
	}
	if len(wrong) > 0 {
		return wrong, nil
	}
	most, _ := Limits(company)
	err = c.keep(ctx, made, func(tx pgx.Tx) (func() (Row, error), error) {
		members, err := contacts.Open(ctx, tx, company.ID, *made.Audience)
		read := 0
		return func() (row Row, err error) {
			member, err := members()
			switch {
			case errors.Is(err, io.EOF) && read == 0:
				return row, &sheets.Error{Key: "campaign.group.empty"}
			case err != nil:
				return row, err
			case read == most:
				return row, &sheets.Error{Key: "campaign.group.many", Args: []any{most}}
			}
			read++
			row = Row{Line: read, Number: member.Number, Variables: map[string]*string{}}
			for _, name := range check.template.Names() {
				value, _ := member.Value(name)
				row.Variables[name] = &value
			}
			if row.Fault = check.reaches(row.Number, string(row.Number)); row.Fault == "" {
				row.Fault = check.render(&row)
			}
			return row, nil
		}, err
	})
	if _, bad := errors.AsType[*sheets.Error](err); bad {
		return []sheets.Problem{sheets.ProblemOf(lang, err)}, nil
	}
	return nil, err
}

// absent returns the rows of a campaign to groups whose recipients are in them no more, by position.
func (made *Campaign) absent(ctx context.Context, tx pgx.Tx, rows []Row) (absent []bool, err error) {
	absent = make([]bool, len(rows))
	if made.Audience == nil || len(rows) == 0 {
		return absent, nil
	}
	list := make([]sms.Number, len(rows))
	for i := range rows {
		list[i] = rows[i].Number
	}
	gone, err := contacts.Absent(ctx, tx, made.Company, *made.Audience, list)
	for i := range rows {
		absent[i] = gone[rows[i].Number]
	}
	return absent, err
}

package contacts

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Audience are the members of groups who are not in others.
type Audience struct {
	Groups  []int64 `json:"groups"`
	Without []int64 `json:"without,omitempty"`
}

// ids returns the groups for statements, which would take nil for NULL.
func (a *Audience) ids() (groups, without []int64) {
	return append([]int64{}, a.Groups...), append([]int64{}, a.Without...)
}

// within is the condition of a contact c's being in the audience of the groups $2 without $3.
const within = `EXISTS (SELECT FROM contact_members m WHERE m.contact_id = c.id AND m.group_id = ANY($2))
	AND NOT EXISTS (SELECT FROM contact_members m WHERE m.contact_id = c.id AND m.group_id = ANY($3))`

// GroupsOf returns the groups of an audience, in the order of their ids; [ErrNoGroup] if the company lacks one.
func (s *Store) GroupsOf(ctx context.Context, company int64, a Audience) ([]Group, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Groups, a.Without))))
	found, err := postgres.All(ctx, s.db, "reading groups", pgx.RowToStructByPos[Group],
		`SELECT `+groupColumns+` FROM contact_groups WHERE company_id = $1 AND id = ANY($2) ORDER BY id`, company,
		append([]int64{}, ids...))
	if err == nil && len(found) < len(ids) {
		err = ErrNoGroup
	}
	return found, err
}

// Members returns up to most members of a company's group, in the order of their ids. The error is [ErrNoGroup] if the
// company lacks it.
func (s *Store) Members(ctx context.Context, company, group int64, most int) ([]Contact, error) {
	if _, err := s.Group(ctx, company, group); err != nil {
		return nil, err
	}
	return postgres.All(ctx, s.db, "reading the members of a group", scanContact, `SELECT `+contactColumns+`
		FROM contacts c WHERE c.company_id = $1 AND c.id IN (SELECT contact_id FROM contact_members WHERE group_id = $2
		ORDER BY contact_id LIMIT $3) ORDER BY c.id`, company, group, most)
}

const fetched = 1000 // contacts at a time

// Open returns who is in an audience at this moment, each once, whatever happens while they are read: next returns
// one after another, without Groups, and [io.EOF] after the last. The transaction reads nothing else of this kind.
func Open(ctx context.Context, tx pgx.Tx, company int64, a Audience) (next func() (Contact, error), err error) {
	groups, without := a.ids()
	if _, err := tx.Exec(ctx, `DECLARE audience NO SCROLL CURSOR FOR
			SELECT c.id, c.company_id, c.phone_number, c.name, c.language, c.fields FROM contacts c
			WHERE c.company_id = $1 AND c.id IN (SELECT contact_id FROM contact_members
			WHERE group_id = ANY($2)) AND NOT EXISTS (SELECT FROM contact_members m WHERE m.contact_id = c.id
			AND m.group_id = ANY($3)) ORDER BY c.id`, company, groups, without); err != nil {
		return nil, fmt.Errorf("reading the members of groups: %w", err)
	}
	var page []Contact
	return func() (c Contact, err error) {
		if len(page) == 0 {
			if page, err = postgres.All(ctx, tx, "reading the members of groups",
				func(row pgx.CollectableRow) (c Contact, err error) {
					err = row.Scan(&c.ID, &c.Company, &c.Number, &c.Name, &c.Language, &c.Fields)
					return c, err
				}, fmt.Sprintf(`FETCH %d FROM audience`, fetched)); err != nil {
				return c, err
			}
		}
		if len(page) == 0 {
			return c, io.EOF
		}
		c, page = page[0], page[1:]
		return c, nil
	}, nil
}

// Absent returns those of numbers that are not, or no longer, in an audience.
func Absent(ctx context.Context, db postgres.Querier, company int64, a Audience, numbers []sms.Number) (
	map[sms.Number]bool, error) {
	groups, without := a.ids()
	list := make([]string, len(numbers))
	absent := make(map[sms.Number]bool, len(numbers))
	for i, n := range numbers {
		list[i], absent[n] = string(n), true
	}
	var number sms.Number
	err := postgres.Each(ctx, db, "looking for members of groups", []any{&number}, func() error {
		delete(absent, number)
		return nil
	}, `SELECT c.phone_number FROM contacts c WHERE c.company_id = $1 AND c.phone_number = ANY($4) AND `+within, company,
		groups, without, list)
	return absent, err
}

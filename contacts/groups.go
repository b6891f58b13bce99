package contacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// counts are changes that a transaction writes last.
type counts struct {
	company  int64
	contacts int
	groups   map[int64]int // members by group
	fields   []string      // that contacts have now
}

// members counts the rows that a statement inserts or deletes, each as by, and returns the contacts concerned.
func (c *counts) members(ctx context.Context, tx pgx.Tx, by int, statement string, args ...any) error {
	return c.eachMember(ctx, tx, by, func(int64) {}, statement, args...)
}

func (c *counts) eachMember(ctx context.Context, tx pgx.Tx, by int, do func(contact int64), statement string,
	args ...any) error {
	if c.groups == nil {
		c.groups = map[int64]int{}
	}
	var group, contact int64
	return postgres.Each(ctx, tx, "changing members of groups", []any{&group, &contact}, func() error {
		c.groups[group] += by
		do(contact)
		return nil
	}, statement+` RETURNING group_id, contact_id`, args...)
}

func (c *counts) write(ctx context.Context, tx pgx.Tx) error {
	maps.DeleteFunc(c.groups, func(_ int64, by int) bool { return by == 0 })
	if len(c.groups) > 0 {
		ids := slices.Sorted(maps.Keys(c.groups))
		by := make([]int, len(ids))
		for i, id := range ids {
			by[i] = c.groups[id]
		}
		if _, err := tx.Exec(ctx, `WITH locked AS (SELECT id FROM contact_groups WHERE id = ANY($1) ORDER BY id
				FOR NO KEY UPDATE)
			UPDATE contact_groups g SET members = members + by FROM locked JOIN (SELECT unnest($1::bigint[]) AS of,
				unnest($2::integer[]) AS by) u ON of = locked.id WHERE g.id = locked.id`, ids, by); err != nil {
			return fmt.Errorf("counting the members of groups: %w", err)
		}
	}
	if c.contacts == 0 && len(c.fields) == 0 {
		return nil
	}
	var total int
	var names []string
	if err := tx.QueryRow(ctx, `INSERT INTO contact_books AS b (company_id, contacts, fields)
			VALUES ($1, greatest($2, 0), $3)
		ON CONFLICT (company_id) DO UPDATE SET contacts = b.contacts + $2,
			fields = CASE WHEN b.contacts + $2 = 0 THEN '{}' ELSE b.fields
				|| ARRAY(SELECT unnest(excluded.fields) EXCEPT SELECT unnest(b.fields) ORDER BY 1) END
		RETURNING contacts, fields`, c.company, c.contacts, append([]string{}, c.fields...)).Scan(
		&total, &names); err != nil {
		return fmt.Errorf("counting the contacts of company %d: %w", c.company, err)
	}
	if len(names) > MaxFields {
		var err error
		if names, err = fieldsInUse(ctx, tx, c.company, names); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE contact_books SET fields = $2 WHERE company_id = $1`, c.company,
			names); err != nil {
			return fmt.Errorf("forgetting fields of company %d: %w", c.company, err)
		}
	}
	switch {
	case total > MaxContacts && c.contacts > 0:
		return ErrFull
	case len(names) > MaxFields:
		return &Fault{"fields." + names[MaxFields], "contact.wrong.fields", []any{MaxFields}}
	}
	return nil
}

// fieldsInUse returns those names of fields that a company's contacts still have. A name in use is found soon; one that
// no contact has costs a look at all of them, once: it is forgotten.
func fieldsInUse(ctx context.Context, db postgres.DB, company int64, names []string) (used []string, err error) {
	used = []string{}
	for _, name := range names {
		var is bool
		if err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM contacts WHERE company_id = $1 AND fields ? $2)`, company,
			name).Scan(&is); err != nil {
			return nil, fmt.Errorf("looking for fields of company %d: %w", company, err)
		}
		if is {
			used = append(used, name)
		}
	}
	return used, nil
}

// lockGroups locks groups of a company, and those of contacts, until the transaction ends: meanwhile none is deleted.
func lockGroups(ctx context.Context, tx pgx.Tx, company int64, groups, contacts []int64) error {
	if _, err := tx.Exec(ctx, `SELECT FROM contact_groups WHERE company_id = $3 AND (id = ANY($1)
		OR id IN (SELECT group_id FROM contact_members WHERE contact_id = ANY($2))) ORDER BY id FOR KEY SHARE`,
		append([]int64{}, groups...), append([]int64{}, contacts...), company); err != nil {
		return fmt.Errorf("locking groups: %w", err)
	}
	return nil
}

// setGroups makes contacts members of the groups of their entries, where those have any to say; with replace of no
// others.
func setGroups(ctx context.Context, tx pgx.Tx, entries []Entry, ids []int64, replace bool, c *counts,
	changed map[int64]bool) error {
	var of, groups, members []int64 // pairs of member and group
	for i := range entries {
		if entries[i].Groups == nil {
			continue
		}
		of = append(of, ids[i])
		for _, g := range entries[i].Groups {
			groups, members = append(groups, g), append(members, ids[i])
		}
	}
	if len(of) == 0 {
		return nil
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(groups)))
	if !replace {
		of = []int64{}
	}
	if err := lockGroups(ctx, tx, c.company, distinct, of); err != nil {
		return err
	}
	known, err := postgres.All(ctx, tx, "looking for groups", pgx.RowTo[int64],
		`SELECT id FROM contact_groups WHERE company_id = $1 AND id = ANY($2)`, c.company, append([]int64{}, distinct...))
	if err != nil {
		return err
	}
	for _, g := range distinct {
		if !slices.Contains(known, g) {
			return &Fault{"groups", "contact.wrong.group.unknown", []any{g}}
		}
	}
	note := func(contact int64) { changed[contact] = true }
	if err := c.eachMember(ctx, tx, -1, note, `DELETE FROM contact_members WHERE contact_id = ANY($1)
		AND (group_id, contact_id) NOT IN (SELECT unnest($2::bigint[]), unnest($3::bigint[]))`, of,
		append([]int64{}, groups...), append([]int64{}, members...)); err != nil {
		return err
	}
	return c.eachMember(ctx, tx, 1, note, `INSERT INTO contact_members (group_id, contact_id)
		SELECT unnest($1::bigint[]), unnest($2::bigint[]) ON CONFLICT DO NOTHING`, append([]int64{}, groups...),
		append([]int64{}, members...))
}

const groupColumns = `id, company_id, name, members, created_at`

// Group returns a company's group; [ErrNoGroup] if it has none with the id.
func (s *Store) Group(ctx context.Context, company, id int64) (Group, error) {
	return one(postgres.All(ctx, s.db, "reading a group", pgx.RowToStructByPos[Group],
		`SELECT `+groupColumns+` FROM contact_groups WHERE company_id = $1 AND id = $2`, company, id))
}

// GroupByName returns a company's group by its name, whose case and accents do not count; [ErrNoGroup] if it has none.
func (s *Store) GroupByName(ctx context.Context, company int64, name string) (Group, error) {
	return one(postgres.All(ctx, s.db, "reading a group", pgx.RowToStructByPos[Group],
		`SELECT `+groupColumns+` FROM contact_groups WHERE company_id = $1 AND name_key = $2`, company, fold(name)))
}

func one(found []Group, err error) (Group, error) { return first(found, err, ErrNoGroup) }

// first returns the only row that was looked for, or none if there is none.
func first[T any](found []T, err, none error) (T, error) {
	if len(found) == 0 || err != nil {
		return *new(T), cmp.Or(err, none)
	}
	return found[0], nil
}

// Groups returns all groups of a company, at most [MaxGroups], by name.
func (s *Store) Groups(ctx context.Context, company int64) ([]Group, error) {
	return postgres.All(ctx, s.db, "listing groups", pgx.RowToStructByPos[Group],
		`SELECT `+groupColumns+` FROM contact_groups WHERE company_id = $1 ORDER BY name_key`, company)
}

// GroupPage returns up to limit groups of a company, the latest first, with ids below before (0: from the latest), and
// the next page's before; 0 for none.
func (s *Store) GroupPage(ctx context.Context, company, before int64, limit int) (page []Group, next int64, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	page, err = postgres.All(ctx, s.db, "listing groups", pgx.RowToStructByPos[Group],
		`SELECT `+groupColumns+` FROM contact_groups WHERE company_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`, company,
		before, limit+1)
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].ID
	}
	return page, next, err
}

// CreateGroup makes a group of a company. The errors are a [*Fault] and [ErrGroups].
func (s *Store) CreateGroup(ctx context.Context, company int64, name string) (made Group, err error) {
	name, wrong := CheckGroupName(name)
	if wrong != nil {
		return made, wrong
	}
	var many bool
	if err := s.db.QueryRow(ctx, `SELECT count(*) >= $2 FROM contact_groups WHERE company_id = $1`, company,
		MaxGroups).Scan(&many); err != nil {
		return made, fmt.Errorf("counting the groups of company %d: %w", company, err)
	}
	if many {
		return made, ErrGroups
	}
	made, err = one(postgres.All(ctx, s.db, "making a group", pgx.RowToStructByPos[Group],
		`INSERT INTO contact_groups (company_id, name, name_key) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
		RETURNING `+groupColumns, company, name, fold(name)))
	if errors.Is(err, ErrNoGroup) {
		err = groupTaken(name)
	}
	return made, err
}

func groupTaken(name string) *Fault { return &Fault{"name", "contact.wrong.group.taken", []any{name}} }

// RenameGroup gives a company's group another name. The errors are [ErrNoGroup] and a [*Fault]; a transaction of the
// caller must be rolled back after one.
func (s *Store) RenameGroup(ctx context.Context, company, id int64, name string) (before, after Group, err error) {
	name, wrong := CheckGroupName(name)
	if wrong != nil {
		return before, after, wrong
	}
	err = s.tx(ctx, func(tx pgx.Tx) error {
		before, err = one(postgres.All(ctx, tx, "locking a group", pgx.RowToStructByPos[Group],
			`SELECT `+groupColumns+` FROM contact_groups WHERE company_id = $1 AND id = $2 FOR UPDATE`, company, id))
		if err != nil {
			return err
		}
		if after = before; before.Name == name {
			return postgres.ConfirmWith(ctx, tx)
		}
		after.Name = name
		_, err := tx.Exec(ctx, `UPDATE contact_groups SET name = $2, name_key = $3 WHERE id = $1`, id, name, fold(name))
		if postgres.SQLState(err) == "23505" {
			return groupTaken(name)
		}
		if err != nil {
			return fmt.Errorf("renaming group %d: %w", id, err)
		}
		return nil
	})
	return before, after, err
}

// EmptyGroup ends up to 5,000 memberships of a company's group, and returns how many; 0: none is left, or others change
// the rest just now.
func (s *Store) EmptyGroup(ctx context.Context, company, id int64) (left int, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		if err := lockGroups(ctx, tx, company, []int64{id}, nil); err != nil {
			return err
		}
		if _, err := s.in(tx).Group(ctx, company, id); err != nil {
			return err
		}
		c := counts{company: company}
		left = 0
		if err := c.eachMember(ctx, tx, -1, func(int64) { left++ }, `DELETE FROM contact_members WHERE group_id = $1
			AND contact_id IN (SELECT contact_id FROM contact_members WHERE group_id = $1 ORDER BY contact_id LIMIT $2
			FOR UPDATE SKIP LOCKED)`, id, deleteStep); err != nil {
			return err
		}
		if left == 0 {
			return postgres.ConfirmWith(ctx, tx)
		}
		return c.write(ctx, tx)
	})
	return left, err
}

// GroupUsed means that a group cannot be deleted: a number joins or leaves it by a keyword.
type GroupUsed struct{ Keyword, Address string } // of the route; "": not known

// Error implements error.
func (e *GroupUsed) Error() string {
	return "a number joins or leaves the group by a keyword: " + e.Keyword + " to " + e.Address
}

// DeleteGroup deletes a company's group; its members stay contacts. It returns the group as it was. The errors are
// [ErrNoGroup] and a [*GroupUsed] that does not know the route; a transaction of the caller must be rolled back after
// one.
func (s *Store) DeleteGroup(ctx context.Context, company, id int64) (was Group, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		was, err = one(postgres.All(ctx, tx, "locking a group", pgx.RowToStructByPos[Group],
			`SELECT `+groupColumns+` FROM contact_groups WHERE company_id = $1 AND id = $2 FOR UPDATE`, company, id))
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM contact_members WHERE group_id = $1`, id); err != nil {
			return fmt.Errorf("deleting the members of group %d: %w", id, err)
		}
		_, err = tx.Exec(ctx, `DELETE FROM contact_groups WHERE id = $1`, id)
		if postgres.SQLState(err) == "23503" { // the route's foreign key
			return &GroupUsed{}
		}
		if err != nil {
			return fmt.Errorf("deleting group %d: %w", id, err)
		}
		return nil
	})
	return was, err
}

// Join makes a number a member of a company's group in the caller's transaction, and a contact if it is none; a consent
// replaces an earlier one. joined is false if it was a member. The errors are [ErrNoGroup] and [ErrFull]: then nothing
// has changed, and the transaction can go on.
func (s *Store) Join(ctx context.Context, tx pgx.Tx, company, group int64, number sms.Number, consent Consent) (
	joined bool, err error) {
	var at *time.Time
	if consent.Source != "" {
		at = new(cmp.Or(consent.At, postgres.Now()))
	}
	var known, room bool
	// The number's row is written even if nothing changes: so it is found and locked, whoever makes or deletes it.
	err = tx.QueryRow(ctx, `WITH rows AS (
			SELECT WHERE `+groupKnown+` AND `+bookHasRoom+`
		), member AS (
			INSERT INTO contacts AS c (company_id, phone_number, consent_source, consented_at) SELECT $1, $3, $5, $6 FROM rows
			ON CONFLICT (company_id, phone_number) DO UPDATE
			SET consent_source = CASE WHEN $5 = '' THEN c.consent_source ELSE $5 END,
				consented_at = CASE WHEN $5 = '' THEN c.consented_at ELSE $6 END, updated_at = now()
			RETURNING id, xmax = 0 AS added
		), locked AS (
			SELECT id FROM contact_groups WHERE id = $2 AND company_id = $1 AND EXISTS (SELECT FROM member) FOR KEY SHARE
		), added AS (
			INSERT INTO contact_members (group_id, contact_id) SELECT locked.id, member.id FROM locked, member
			ON CONFLICT DO NOTHING RETURNING 1
		), counted AS (
			UPDATE contact_groups SET members = members + 1 WHERE id = $2 AND EXISTS (SELECT FROM added) RETURNING 1
		), book AS (
			INSERT INTO contact_books AS b (company_id, contacts)
			SELECT $1, 1 FROM member WHERE added AND (SELECT count(*) FROM counted) >= 0
			ON CONFLICT (company_id) DO UPDATE SET contacts = b.contacts + 1
		)
		SELECT `+groupKnown+`, EXISTS (SELECT FROM rows), EXISTS (SELECT FROM added)`, company, group, string(number),
		MaxContacts, consent.Source, at).Scan(
		&known, &room, &joined)
	return joined && err == nil, mayJoin(known, room, err)
}

// What a number needs to join a group: of company $1, group $2, number $3, and at most $4 contacts.
const (
	groupKnown  = `EXISTS (SELECT FROM contact_groups WHERE id = $2 AND company_id = $1)`
	bookHasRoom = `(EXISTS (SELECT FROM contacts WHERE company_id = $1 AND phone_number = $3)
		OR coalesce((SELECT contacts FROM contact_books WHERE company_id = $1), 0) < $4)`
)

// MayJoin returns [ErrNoGroup] or [ErrFull] if [Store.Join] would, as far as is known before its locks.
func (s *Store) MayJoin(ctx context.Context, tx pgx.Tx, company, group int64, number sms.Number) error {
	var known, room bool
	err := tx.QueryRow(ctx, `SELECT `+groupKnown+`, `+bookHasRoom, company, group, string(number), MaxContacts).Scan(
		&known, &room)
	return mayJoin(known, room, err)
}

func mayJoin(known, room bool, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("joining a group: %w", err)
	case !known:
		return ErrNoGroup
	case !room:
		return ErrFull
	}
	return nil
}

// Leave ends a number's membership of a company's group in the caller's transaction; it stays a contact. left is false
// if it was no member.
func (s *Store) Leave(ctx context.Context, tx pgx.Tx, company, group int64, number sms.Number) (left bool, err error) {
	// In a statement of its own: the next one sees what is committed until then.
	if _, err := lock(ctx, tx, company, `phone_number = $2`, string(number)); err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, `WITH member AS (
			SELECT id FROM contacts WHERE company_id = $1 AND phone_number = $3 FOR NO KEY UPDATE
		), locked AS (
			SELECT id FROM contact_groups WHERE id = $2 AND company_id = $1 AND EXISTS (SELECT FROM member) FOR KEY SHARE
		), gone AS (
			DELETE FROM contact_members WHERE group_id IN (SELECT id FROM locked)
			AND contact_id IN (SELECT id FROM member) RETURNING 1
		), counted AS (
			UPDATE contact_groups SET members = members - 1 WHERE id = $2 AND EXISTS (SELECT FROM gone)
		)
		SELECT EXISTS (SELECT FROM gone)`, company, group, string(number)).Scan(&left)
	if err != nil {
		return false, fmt.Errorf("leaving a group: %w", err)
	}
	return left, nil
}

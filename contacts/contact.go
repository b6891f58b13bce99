package contacts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Written is what a call of Put did.
type Written struct {
	IDs       []int64 // of the contacts, in the order of the entries
	Added     int
	Changed   int
	Unchanged int
}

// merge inserts rows(number, name, name_key, language, fields, consent_source, consented_at) into the contacts of
// company $1, or changes those with the same numbers; what is empty stays as it was. With $2 a consent
// replaces another.
const merge = `INSERT INTO contacts AS c (company_id, phone_number, name, name_key, language, fields, consent_source,
		consented_at)
	SELECT $1, number, name, name_key, language, fields, consent_source,
		CASE WHEN consent_source <> '' THEN coalesce(consented_at, now()) END FROM rows ORDER BY number
	ON CONFLICT (company_id, phone_number) DO UPDATE SET
		name = coalesce(nullif(excluded.name, ''), c.name),
		name_key = CASE WHEN excluded.name = '' THEN c.name_key ELSE excluded.name_key END,
		language = coalesce(nullif(excluded.language, ''), c.language), fields = c.fields || excluded.fields,
		consent_source = CASE WHEN ` + consents + ` THEN excluded.consent_source ELSE c.consent_source END,
		consented_at = CASE WHEN ` + consents + ` THEN excluded.consented_at ELSE c.consented_at END, updated_at = now()
	WHERE ` + differs + ` OR ` + consents + ` AND (c.consent_source, c.consented_at)
		IS DISTINCT FROM (excluded.consent_source, excluded.consented_at) RETURNING id, xmax = 0 AS added`

// consents is whether a contact c takes the consent of excluded. A consent without a date has now(), which stays the
// same in a transaction: of the source that c has, it says nothing new.
const consents = `(excluded.consent_source <> '' AND (c.consent_source = ''
	OR $2 AND (c.consent_source, now()) IS DISTINCT FROM (excluded.consent_source, excluded.consented_at)))`

// differs is whether a contact c changes by excluded, apart from its consent.
const differs = `(excluded.name NOT IN ('', c.name) OR excluded.language NOT IN ('', c.language)
	OR NOT c.fields @> excluded.fields)`

// Put adds contacts to a company, or changes those with the same numbers, in one transaction. Check the entries first;
// no number may be there twice. The errors are a [*Fault] of groups or fields, and [ErrFull].
func (s *Store) Put(ctx context.Context, company int64, entries []Entry) (done Written, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		done, err = put(ctx, tx, company, entries, true)
		return err
	})
	return done, err
}

// put is Put. With replace, groups and consents replace those of a contact; else it joins the groups, and a consent is
// that of contacts without one.
func put(ctx context.Context, tx pgx.Tx, company int64, entries []Entry, replace bool) (done Written, err error) {
	n := len(entries)
	numbers, names, keys, languages := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	fields, sources, times := make([]string, n), make([]string, n), make([]*time.Time, n)
	var used map[string]bool
	for i := range entries {
		e := &entries[i]
		numbers[i] = string(e.Number)
		if e.Name != nil {
			names[i], keys[i] = *e.Name, fold(*e.Name)
		}
		if e.Language != nil {
			languages[i] = *e.Language
		}
		given := map[string]string{}
		for name, value := range e.Fields {
			if value != nil && *value != "" {
				given[name] = *value
				if used == nil {
					used = map[string]bool{}
				}
				used[name] = true
			}
		}
		text, err := json.Marshal(given)
		if err != nil {
			return done, err
		}
		fields[i] = string(text)
		if e.Consent != nil && e.Consent.Source != "" {
			sources[i], times[i] = e.Consent.Source, postgres.OrNull(e.Consent.At)
		}
	}
	changed := map[int64]bool{} // also the added ones
	var id int64
	var added bool
	err = postgres.Each(ctx, tx, "writing contacts", []any{&id, &added}, func() error {
		changed[id] = true
		if added {
			done.Added++
		}
		return nil
	}, `WITH rows AS (SELECT unnest($3::text[]) AS number, unnest($4::text[]) AS name, unnest($5::text[]) AS name_key,
			unnest($6::text[]) AS language, unnest($7::jsonb[]) AS fields, unnest($8::text[]) AS consent_source,
			unnest($9::timestamptz[]) AS consented_at) `+merge, company, replace, numbers, names, keys,
		languages, fields, sources, times)
	if err != nil {
		return done, err
	}
	at := make(map[string]int64, n)
	var number string
	if err := postgres.Each(ctx, tx, "reading the ids of contacts", []any{&id, &number}, func() error {
		at[number] = id
		return nil
	}, `SELECT id, phone_number FROM contacts WHERE company_id = $1 AND phone_number = ANY($2)`, company,
		numbers); err != nil {
		return done, err
	}
	for _, number := range numbers {
		done.IDs = append(done.IDs, at[number])
	}
	if err := clearValues(ctx, tx, entries, done.IDs, changed); err != nil {
		return done, err
	}
	c := counts{company: company, contacts: done.Added, fields: slices.Sorted(maps.Keys(used))}
	if err := setGroups(ctx, tx, entries, done.IDs, replace, &c, changed); err != nil {
		return done, err
	}
	done.Changed = len(changed) - done.Added
	done.Unchanged = n - len(changed)
	if len(changed) == 0 { // a COMMIT without an answer may have written it, and be on no standby
		return done, postgres.ConfirmWith(ctx, tx)
	}
	return done, c.write(ctx, tx)
}

// clearValues removes what the entries say is empty.
func clearValues(ctx context.Context, tx pgx.Tx, entries []Entry, ids []int64, changed map[int64]bool) error {
	var of []int64
	var noName, noLanguage, noConsent []bool
	var gone []string
	for i := range entries {
		e := &entries[i]
		var names []string
		for name, value := range e.Fields {
			if value == nil || *value == "" {
				names = append(names, name)
			}
		}
		name, language := e.Name != nil && *e.Name == "", e.Language != nil && *e.Language == ""
		consent := e.Consent != nil && e.Consent.Source == ""
		if name || language || consent || len(names) > 0 {
			of, noConsent = append(of, ids[i]), append(noConsent, consent)
			noName, noLanguage = append(noName, name), append(noLanguage, language)
			gone = append(gone, strings.Join(names, " ")) // a name has no blank
		}
	}
	if len(of) == 0 {
		return nil
	}
	var id int64
	return postgres.Each(ctx, tx, "clearing fields of contacts", []any{&id}, func() error {
		changed[id] = true
		return nil
	}, `UPDATE contacts c SET name = CASE WHEN no_name THEN '' ELSE name END, name_key = CASE WHEN no_name THEN ''
			ELSE name_key END, language = CASE WHEN no_language THEN '' ELSE language END,
			consent_source = CASE WHEN no_consent THEN '' ELSE consent_source END,
			consented_at = CASE WHEN no_consent THEN NULL ELSE consented_at END,
			fields = fields - string_to_array(gone, ' '), updated_at = now()
		FROM (SELECT unnest($1::bigint[]) AS of, unnest($2::boolean[]) AS no_name, unnest($3::boolean[]) AS no_language,
			unnest($4::text[]) AS gone, unnest($5::boolean[]) AS no_consent) u
		WHERE c.id = of AND (no_name AND name <> '' OR no_language AND language <> ''
			OR no_consent AND consent_source <> '' OR fields ?| string_to_array(gone, ' ')) RETURNING c.id`,
		of, noName, noLanguage, gone, noConsent)
}

// Create adds a contact to a company; a [*Fault] if it has the number. It must be rolled back after an error.
func (s *Store) Create(ctx context.Context, company int64, e Entry) (made Contact, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		done, err := put(ctx, tx, company, []Entry{e}, true)
		switch {
		case err != nil:
			return err
		case done.Added == 0:
			return &Fault{"phone_number", "contact.wrong.taken", []any{done.IDs[0]}}
		}
		made, err = s.in(tx).Get(ctx, company, done.IDs[0])
		return err
	})
	return made, err
}

// Update changes a company's contact; Number "" leaves the number. The errors are [ErrNotFound] and those of Put, and a
// [*Fault] if another contact has the number. It must be rolled back after an error.
func (s *Store) Update(ctx context.Context, company, id int64, e Entry) (before, after Contact, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		in, e := s.in(tx), e // of this try
		if _, err := lock(ctx, tx, company, `id = $2`, id); err != nil {
			return err
		}
		if before, err = in.Get(ctx, company, id); err != nil {
			return err
		}
		if e.Number == "" || e.Number == before.Number {
			e.Number = before.Number
		} else if err := renumber(ctx, tx, company, id, e.Number); err != nil {
			return err
		}
		if _, err = put(ctx, tx, company, []Entry{e}, true); err == nil {
			after, err = in.Get(ctx, company, id)
		}
		return err
	})
	return before, after, err
}

func renumber(ctx context.Context, tx pgx.Tx, company, id int64, number sms.Number) error {
	if other, err := (&Store{db: tx}).ByNumber(ctx, company, number); err == nil {
		return &Fault{"phone_number", "contact.wrong.taken", []any{other.ID}}
	}
	_, err := tx.Exec(ctx, `UPDATE contacts SET phone_number = $2, updated_at = now() WHERE id = $1`, id, string(number))
	if postgres.SQLState(err) == "23505" { // made meanwhile
		return &Fault{"phone_number", "contact.wrong.taken.now", nil}
	}
	if err != nil {
		return fmt.Errorf("changing the number of contact %d: %w", id, err)
	}
	return nil
}

// in is the store within a transaction of its own.
func (s *Store) in(tx pgx.Tx) *Store { return &Store{db: tx} }

// lock locks up to [MaxAtOnce] times five contacts of company $1 and returns their ids.
func lock(ctx context.Context, tx pgx.Tx, company int64, which string, args ...any) ([]int64, error) {
	return postgres.All(ctx, tx, "locking contacts", pgx.RowTo[int64],
		`SELECT id FROM contacts WHERE company_id = $1 AND `+which+` ORDER BY phone_number FOR UPDATE`,
		append([]any{company}, args...)...)
}

// Selection is a set of contacts of a company: those of IDs, or the members of a group, or all.
type Selection struct {
	IDs   []int64
	Group int64
	All   bool
}

// deleteStep is how many contacts, or memberships of a group, one transaction deletes.
const deleteStep = 5000

// DeleteSome deletes up to 5,000 of the selected contacts with their memberships, and returns how many; 0: none is
// left, or those found have all left the group just now.
func (s *Store) DeleteSome(ctx context.Context, company int64, which Selection) (deleted int, err error) {
	condition, argument := `id = ANY($2)`, any(which.IDs)
	switch {
	case which.Group != 0:
		condition, argument = `id IN (SELECT contact_id FROM contact_members WHERE group_id = $2 LIMIT $3)`, which.Group
	case which.All:
		condition, argument = `id IN (SELECT id FROM contacts WHERE company_id = $2 LIMIT $3)`, company
	}
	err = s.tx(ctx, func(tx pgx.Tx) error {
		args := []any{argument}
		if which.Group != 0 || which.All {
			args = append(args, deleteStep)
		}
		ids, err := lock(ctx, tx, company, condition, args...)
		if err == nil && which.Group != 0 { // somebody may have left it before the lock
			ids, err = postgres.All(ctx, tx, "looking for members", pgx.RowTo[int64], `SELECT contact_id FROM contact_members
				WHERE group_id = $1 AND contact_id = ANY($2)`, which.Group, ids)
		}
		if err != nil {
			return err
		}
		deleted = len(ids)
		return deleteLocked(ctx, tx, company, ids)
	})
	return deleted, err
}

// deleteLocked deletes contacts that are locked.
func deleteLocked(ctx context.Context, tx pgx.Tx, company int64, ids []int64) error {
	c := counts{company: company, contacts: -len(ids)}
	if len(ids) == 0 {
		return postgres.ConfirmWith(ctx, tx)
	}
	if err := lockGroups(ctx, tx, company, nil, ids); err != nil {
		return err
	}
	if err := c.members(ctx, tx, -1, `DELETE FROM contact_members WHERE contact_id = ANY($1)`, ids); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM contacts WHERE id = ANY($1)`, ids); err != nil {
		return fmt.Errorf("deleting contacts: %w", err)
	}
	return c.write(ctx, tx)
}

// Erase deletes a number's contacts at all companies, and its lines of imports that are not merged; it returns the
// number of contacts. It waits for checks of imports, up to a minute: one may outlast lock_timeout.
func (s *Store) Erase(ctx context.Context, number sms.Number) (erased int64, err error) {
	for range 12 { // of 5 s: a longer lock_timeout would hold up the checks that come after it
		if erased, err = s.erase(ctx, number); !postgres.Locked(err) {
			break
		}
	}
	return erased, err
}

func (s *Store) erase(ctx context.Context, number sms.Number) (erased int64, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		erased = 0
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(`+checking+`)`); err != nil {
			return fmt.Errorf("waiting for checks of imports: %w", err)
		}
		// First, so that no step merges it again: steps lock the lines that they merge.
		if _, err := tx.Exec(ctx, `DELETE FROM contact_import_rows WHERE phone_number = $1`, string(number)); err != nil {
			return fmt.Errorf("erasing a number in imports: %w", err)
		}
		found, err := postgres.All(ctx, tx, "looking for contacts of a number",
			pgx.RowToStructByPos[struct{ ID, Company int64 }],
			`SELECT id, company_id FROM contacts WHERE company_id IN (SELECT company_id FROM contact_books)
			AND phone_number = $1 ORDER BY company_id FOR UPDATE`, string(number))
		for _, c := range found {
			if err == nil {
				err = deleteLocked(ctx, tx, c.Company, []int64{c.ID})
			}
		}
		erased = int64(len(found))
		return err
	})
	return erased, err
}

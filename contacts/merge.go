package contacts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Confirm lets an import be merged, and makes the groups of its file that are missing. again is true if it was
// confirmed before. The errors are [ErrNoImport], [ErrNoGroup] and [ErrGroups].
func Confirm(ctx context.Context, tx pgx.Tx, company, id int64) (x Import, again bool, err error) {
	found, err := postgres.All(ctx, tx, "locking an import", scanImport, `SELECT `+importColumns+` FROM contact_imports
		WHERE company_id = $1 AND id = $2 FOR UPDATE`, company, id)
	x, err = first(found, err, ErrNoImport)
	if err != nil || x.ConfirmedAt != nil {
		return x, x.ConfirmedAt != nil, err
	}
	store := (&Store{}).In(tx)
	if x.Group != nil {
		if _, err := store.Group(ctx, company, *x.Group); err != nil {
			return x, false, err
		}
	}
	for _, name := range x.GroupNames {
		_, err := store.GroupByName(ctx, company, name)
		if errors.Is(err, ErrNoGroup) {
			_, err = store.CreateGroup(ctx, company, name)
		}
		if _, taken := errors.AsType[*Fault](err); err != nil && !taken { // made meanwhile
			return x, false, err
		}
	}
	if _, err := tx.Exec(ctx, `UPDATE contact_imports SET confirmed_at = now(), due_at = now(), added = 0, changed = 0,
		unchanged = 0 WHERE id = $1`, id); err != nil {
		return x, false, fmt.Errorf("confirming import %d: %w", id, err)
	}
	return x, false, nil
}

// Run merges confirmed imports and deletes old ones until ctx ends.
func (i *Imports) Run(ctx context.Context) error {
	swept, failing := time.Time{}, false
	for ctx.Err() == nil {
		if time.Since(swept) > sweepEvery {
			if err := i.Sweep(ctx); err != nil && ctx.Err() == nil {
				i.log.Warn("old imports could not be deleted; trying again", "event", "imports_not_deleted", "error", err)
			}
			swept = time.Now()
		}
		found, err := i.MergeNext(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			i.log.Warn("contacts could not be imported further; trying again", "event", "contacts_not_imported", "error", err)
		}
		if failing = err != nil; found && !failing {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
	return nil
}

// Sweep deletes imports that nobody confirmed, refused lines after a day, and other imports after a month.
func (i *Imports) Sweep(ctx context.Context) error {
	// One import with its lines at a time: a statement has its time.
	if err := i.untilNone(ctx, `DELETE FROM contact_imports WHERE id = (SELECT id FROM contact_imports
		WHERE confirmed_at IS NULL AND created_at < now() - $1::interval OR done_at < now() - $2::interval LIMIT 1
		FOR UPDATE SKIP LOCKED)`, draftLife, recordLife); err != nil {
		return fmt.Errorf("deleting old imports: %w", err)
	}
	if err := i.untilNone(ctx, `DELETE FROM contact_import_rows WHERE import_id = (SELECT id FROM contact_imports x
		WHERE done_at < now() - $1::interval AND EXISTS (SELECT FROM contact_import_rows WHERE import_id = x.id) LIMIT 1)`,
		linesLife); err != nil {
		return fmt.Errorf("deleting the lines of old imports: %w", err)
	}
	return nil
}

// untilNone repeats a statement until it changes no row.
func (i *Imports) untilNone(ctx context.Context, statement string, args ...any) error {
	for {
		if tag, err := i.pool.Exec(ctx, statement, args...); err != nil || tag.RowsAffected() == 0 {
			return err
		}
	}
}

// MergeNext merges the next lines of the import that has waited longest, and reports whether there was one. A step is
// one transaction that also records how far it came: whoever dies, the next one goes on behind the last line merged.
func (i *Imports) MergeNext(ctx context.Context) (found bool, err error) {
	return i.merge(ctx, `due_at <= now()`)
}

// Merge merges a company's confirmed import up to its end, together with other processes, and returns it.
func (i *Imports) Merge(ctx context.Context, company, id int64) (Import, error) {
	for {
		found, err := i.merge(ctx, `id = $1`, id)
		if err != nil {
			return Import{}, err
		}
		if found {
			continue
		}
		x, err := i.Get(ctx, company, id) // another process may have it just now
		if err != nil || x.DoneAt != nil || x.ConfirmedAt == nil {
			return x, err
		}
		select {
		case <-ctx.Done():
			return x, ctx.Err()
		case <-time.After(lookEvery / 10):
		}
	}
}

func (i *Imports) merge(ctx context.Context, which string, args ...any) (found bool, err error) {
	var x Import
	var from int // the position before the step
	err = postgres.InTx(ctx, i.pool, func(tx pgx.Tx) error {
		due, err := postgres.All(ctx, tx, "taking an import", scanImport, `SELECT `+importColumns+` FROM contact_imports
			WHERE confirmed_at IS NOT NULL AND done_at IS NULL AND `+which+` ORDER BY due_at LIMIT 1
			FOR UPDATE SKIP LOCKED`, args...)
		if err != nil {
			return err
		}
		if found = len(due) > 0; !found {
			return nil
		}
		x, from = due[0], due[0].Position
		return x.step(ctx, tx)
	})
	stopped := ""
	if fault, wrong := errors.AsType[*Fault](err); wrong && fault.Key == "contact.wrong.fields" {
		stopped = StoppedFields
	} else if errors.Is(err, ErrFull) {
		stopped = StoppedFull
	}
	switch {
	case stopped != "":
		x.Stopped = stopped
		err = postgres.InTx(ctx, i.pool, func(tx pgx.Tx) error {
			same, err := tx.Exec(ctx, `SELECT FROM contact_imports WHERE id = $1 AND position = $2 AND done_at IS NULL
				FOR UPDATE`, x.ID, from)
			if err != nil || same.RowsAffected() == 0 { // another process had room for these lines meanwhile
				return err
			}
			return x.end(ctx, tx)
		})
	case err != nil && x.ID != 0:
		_, late := i.pool.Exec(ctx, `UPDATE contact_imports SET due_at = now() + $2::interval WHERE id = $1`, x.ID, again)
		err = errors.Join(err, late)
	}
	if err == nil && x.DoneAt != nil {
		i.log.Info("contacts are imported", "event", "contacts_imported", "import", x.ID, "company_id", x.Company,
			"added", x.Added, "changed", x.Changed, "unchanged", x.Unchanged, "refused", x.Refused, "stopped", x.Stopped)
	}
	return found, err
}

// step merges the next lines of an import that is locked.
func (x *Import) step(ctx context.Context, tx pgx.Tx) error {
	groups, err := postgres.All(ctx, tx, "reading groups", pgx.RowToStructByPos[struct {
		ID  int64
		Key string
	}], `SELECT id, name_key FROM contact_groups WHERE company_id = $1`, x.Company)
	if err != nil {
		return err
	}
	ids, every := map[string]int64{}, []int64(nil)
	for _, g := range groups {
		if ids[g.Key] = g.ID; x.Group != nil && *x.Group == g.ID { // it may have been deleted
			every = []int64{g.ID}
		}
	}
	var entries []Entry
	var row Line
	var repeated bool
	read := 0
	// Locked until the commit: a number that is erased meanwhile is erased after it.
	if err := postgres.Each(ctx, tx, "reading the lines of an import", []any{&row.N, &row.Number, &row.Name, &row.Language,
		&row.Fields, &row.Groups, &row.Fault, &repeated}, func() error {
		read++
		x.Position = row.N
		if row.Fault != "" || repeated {
			return nil
		}
		e := Entry{Number: row.Number, Groups: slices.Clone(every), Fields: map[string]*string{}}
		for name, value := range row.Fields {
			e.Fields[name] = &value
		}
		if row.Name != "" {
			e.Name = new(row.Name)
		}
		if row.Language != "" {
			e.Language = new(row.Language)
		}
		if x.Consent.Source != "" {
			e.Consent = &x.Consent
		}
		for _, key := range row.Groups {
			if id, known := ids[key]; known {
				e.Groups = append(e.Groups, id)
			}
		}
		entries, row.Fields, row.Groups = append(entries, e), nil, nil
		return nil
	}, `SELECT n, phone_number, name, language, fields, group_keys, coalesce(fault, ''), repeated FROM contact_import_rows
		WHERE import_id = $1 AND n > $2 ORDER BY n LIMIT $3 FOR SHARE`, x.ID, x.Position, mergeStep); err != nil {
		return err
	}
	if read == 0 {
		return x.end(ctx, tx)
	}
	if len(entries) > 0 {
		done, err := put(ctx, tx, x.Company, entries, false)
		if err != nil {
			return err
		}
		x.Added, x.Changed, x.Unchanged = x.Added+done.Added, x.Changed+done.Changed, x.Unchanged+done.Unchanged
	}
	if _, err := tx.Exec(ctx, `UPDATE contact_imports SET position = $2, added = $3, changed = $4, unchanged = $5,
		due_at = now() WHERE id = $1`, x.ID, x.Position, x.Added, x.Changed, x.Unchanged); err != nil {
		return fmt.Errorf("recording the progress of import %d: %w", x.ID, err)
	}
	return nil
}

// end ends an import. Its refused lines stay for a day: the person may correct them.
func (x *Import) end(ctx context.Context, tx pgx.Tx) error {
	if err := tx.QueryRow(ctx, `UPDATE contact_imports SET done_at = now(), stopped = $2 WHERE id = $1 AND done_at IS NULL
		RETURNING done_at`, x.ID, x.Stopped).Scan(&x.DoneAt); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("ending import %d: %w", x.ID, err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM contact_import_rows WHERE import_id = $1 AND fault IS NULL`, x.ID); err != nil {
		return fmt.Errorf("deleting the lines of import %d: %w", x.ID, err)
	}
	return nil
}

package contacts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/campaigns/sheets"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/texts"
)

const (
	MaxLines = 100_000        // of a file
	MaxFile  = sheets.MaxFile // bytes

	draftLife  = 12 * time.Hour      // of an import that nobody confirmed
	draftsKept = 10                  // of a company
	linesLife  = 24 * time.Hour      // of refused lines
	recordLife = 30 * 24 * time.Hour // of an import, without its lines

	rowsAtOnce = 1000 // per statement of a check
	mergeStep  = 2000 // lines per transaction
	lookEvery  = 2 * time.Second
	sweepEvery = time.Hour
	again      = 10 * time.Second // after an error
)

// ErrNoImport means that there is no such import, or not any longer.
var ErrNoImport = errors.New("there is no such import")

// Reasons why an import ended before its last line.
const (
	StoppedFull   = "full"   // the company has the most contacts that are kept
	StoppedFields = "fields" // or the most fields
)

// Import is a file of contacts that was checked, is being merged, or is merged.
type Import struct {
	ID          int64
	Company     int64
	Name        string // of the file
	Reading     sheets.Reading
	Columns     []Column
	Group       *int64   // that every contact joins
	GroupNames  []string // of the file
	Consent     Consent  // of contacts without one
	CreatedAt   time.Time
	ConfirmedAt *time.Time // nil: nothing is merged
	DoneAt      *time.Time
	Stopped     string // why it ended before its last line
	Position    int    // lines that are done
	Lines       int

	// Counts of lines: as the check expects them, and once it is confirmed as they are merged.
	Added, Changed, Unchanged int
	Refused, Repeated         int
}

// Percent returns how much of a confirmed import is merged, from 0 to 100.
func (x *Import) Percent() int {
	if x.DoneAt != nil || x.Lines == 0 {
		return 100
	}
	return x.Position * 100 / x.Lines
}

const importColumns = `id, company_id, name, reading, columns, group_id, group_names, consent_source,
	consented_at, created_at, confirmed_at, done_at, stopped, position, lines, added, changed, unchanged, refused,
	repeated`

func scanImport(row pgx.CollectableRow) (x Import, err error) {
	var at *time.Time
	err = row.Scan(&x.ID, &x.Company, &x.Name, &x.Reading, &x.Columns, &x.Group, &x.GroupNames, &x.Consent.Source, &at,
		&x.CreatedAt, &x.ConfirmedAt, &x.DoneAt, &x.Stopped, &x.Position, &x.Lines, &x.Added, &x.Changed, &x.Unchanged,
		&x.Refused, &x.Repeated)
	if at != nil {
		x.Consent.At = *at
	}
	return x, err
}

// Imports is safe for concurrent use, in any number of processes.
type Imports struct {
	pool *pgxpool.Pool
	plan *sms.Plan
	log  *slog.Logger
}

// NewImports returns Imports. Its Run merges confirmed imports; a process without it can check and confirm them.
func NewImports(pool *pgxpool.Pool, plan *sms.Plan, log *slog.Logger) *Imports {
	return &Imports{pool, plan, log}
}

// File is what a person wants to import.
type File struct {
	Company int64
	Name    string // of the file
	Content []byte
	Reading sheets.Reading // what the person said about it
	Group   int64          // that every contact joins; 0: none
	Consent Consent        // of contacts without one
}

// Check reads a file, checks and counts its lines and keeps them until somebody confirms the import; or it returns what
// is wrong with the file, in the user's language. The errors are [ErrNoGroup] and a [*Fault] of the consent.
func (i *Imports) Check(ctx context.Context, lang *texts.Language, f File) (made Import, wrong []sheets.Problem,
	err error) {
	store := New(i.pool)
	if f.Group != 0 {
		if _, err := store.Group(ctx, f.Company, f.Group); err != nil {
			return made, nil, err
		}
	}
	about := Entry{Consent: &f.Consent}
	if faults := about.Check(); len(faults) > 0 {
		return made, nil, faults[0]
	}
	f.Consent = *about.Consent
	book, err := store.Book(ctx, f.Company)
	if err != nil {
		return made, nil, err
	}
	table, wrong := sheets.Open(lang, i.plan, f.Content, f.Reading, nil, MaxLines)
	if len(wrong) > 0 {
		return made, wrong, nil
	}
	columns, wrong := columnsOf(lang, table, book.Fields)
	if len(wrong) > 0 && len(book.Fields) > 0 {
		used, err := fieldsInUse(ctx, i.pool, f.Company, book.Fields)
		if err != nil {
			return made, nil, err
		}
		columns, wrong = columnsOf(lang, table, used)
	}
	if len(wrong) > 0 {
		return made, wrong, nil
	}
	err = pgx.BeginFunc(ctx, i.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared(`+checking+`)`); err != nil {
			return fmt.Errorf("waiting for an erasure: %w", err)
		}
		if err := tx.QueryRow(ctx, `INSERT INTO contact_imports (company_id, name, reading, columns, group_id, group_names,
				consent_source, consented_at) VALUES ($1, $2, $3, $4, nullif($5::bigint, 0), '{}', $6, $7) RETURNING id`,
			f.Company, postgres.Text(sheets.Shorten(f.Name)), table.Reading(), columns, f.Group, f.Consent.Source,
			consentTime(f.Consent)).Scan(&made.ID); err != nil {
			return fmt.Errorf("keeping an import: %w", err)
		}
		kept := &keeping{of: made.ID, last: map[sms.Number]int{}, groups: map[string]string{}}
		if err := kept.all(ctx, tx, lang, table, columns); err != nil {
			return err
		}
		return kept.finish(ctx, tx, lang, f.Company, book.Contacts, &made)
	})
	if _, bad := errors.AsType[*sheets.Error](err); bad {
		return Import{}, []sheets.Problem{sheets.ProblemOf(lang, err)}, nil
	}
	return made, nil, err
}

// checking is the advisory lock of checks, which share it, and erasures: these must find the lines of a check.
const checking = `hashtextextended('contact imports', 0)`

func consentTime(c Consent) *time.Time {
	if c.Source == "" {
		return nil
	}
	return new(cmp.Or(c.At, postgres.Now()))
}

// keeping stores the lines of an import.
type keeping struct {
	of       int64
	n        int
	refused  int
	last     map[sms.Number]int // the last line of each number
	repeated []int              // lines whose number a later one has
	groups   map[string]string  // names by their keys
}

func (k *keeping) all(ctx context.Context, tx pgx.Tx, lang *texts.Language, table *sheets.Table,
	columns []Column) error {
	for more := true; more; {
		var rows [][]any
		for len(rows) < rowsAtOnce {
			line, err := table.Next()
			if errors.Is(err, io.EOF) {
				more = false
				break
			}
			if err != nil {
				return err
			}
			row, err := k.row(lang, table, columns, &line)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"contact_import_rows"}, []string{"import_id", "n", "line",
			"phone_number", "name", "language", "fields", "group_keys", "fault"}, pgx.CopyFromRows(rows)); err != nil {
			return fmt.Errorf("keeping the lines of an import: %w", err)
		}
	}
	return nil
}

func (k *keeping) row(lang *texts.Language, table *sheets.Table, columns []Column, line *sheets.Row) ([]any, error) {
	k.n++
	e, groups, wrong := read(lang, table, columns, line)
	keys := []string{}
	for _, name := range groups {
		key := fold(name)
		if _, known := k.groups[key]; !known && len(k.groups) == MaxGroups {
			wrong = lang.T("contact.line.groups", MaxGroups)
			break
		} else if !known {
			k.groups[key] = name
		}
		keys = append(keys, key)
	}
	if wrong != "" {
		k.refused++
		return []any{k.of, k.n, line.Line, "", "", "", "{}", []string{}, wrong}, nil
	}
	if before, twice := k.last[e.Number]; twice {
		k.repeated = append(k.repeated, before)
	}
	k.last[e.Number] = k.n
	fields, err := json.Marshal(e.Fields)
	name, language := "", ""
	if e.Name != nil {
		name = *e.Name
	}
	if e.Language != nil {
		language = *e.Language
	}
	return []any{k.of, k.n, line.Line, string(e.Number), name, language, string(fields), keys, nil}, err
}

// finish counts the lines as they would be merged now.
func (k *keeping) finish(ctx context.Context, tx pgx.Tx, lang *texts.Language, company int64, contacts int,
	made *Import) error {
	if len(k.repeated) > 0 {
		if _, err := tx.Exec(ctx, `UPDATE contact_import_rows SET repeated = true WHERE import_id = $1 AND n = ANY($2)`, k.of,
			k.repeated); err != nil {
			return fmt.Errorf("marking repeated lines of an import: %w", err)
		}
		if _, err := tx.Exec(ctx, `UPDATE contact_import_rows r SET group_keys = u.keys FROM (
				SELECT phone_number, array_agg(DISTINCT key) AS keys FROM contact_import_rows, unnest(group_keys) key
				WHERE import_id = $1 AND fault IS NULL AND phone_number IN (
					SELECT phone_number FROM contact_import_rows WHERE import_id = $1 AND repeated) GROUP BY phone_number
			) u WHERE r.import_id = $1 AND r.phone_number = u.phone_number`, k.of); err != nil {
			return fmt.Errorf("joining the groups of repeated lines of an import: %w", err)
		}
	}
	names := append([]string{}, slices.Sorted(maps.Values(k.groups))...)
	found, err := postgres.All(ctx, tx, "counting the lines of an import", scanImport,
		`UPDATE contact_imports x SET lines = $2,
			group_names = $3, refused = $4, repeated = $5, added = are_new, changed = are_changed,
			unchanged = are - are_new - are_changed
		FROM (SELECT count(*) AS are, count(*) FILTER (WHERE is_new) AS are_new,
				count(*) FILTER (WHERE is_changed) AS are_changed
			FROM (`+expected+` AND excluded.import_id = $1) e) n WHERE x.id = $1 RETURNING `+importColumns,
		k.of, k.n, names, k.refused, len(k.repeated))
	if err != nil {
		return err
	}
	*made = found[0]
	if contacts+made.Added > MaxContacts {
		return &sheets.Error{Key: "contact.file.full", Args: []any{MaxContacts, contacts, made.Added}}
	}
	if _, err := tx.Exec(ctx, `DELETE FROM contact_imports WHERE company_id = $1 AND confirmed_at IS NULL AND id IN (
		SELECT id FROM contact_imports WHERE company_id = $1 AND confirmed_at IS NULL ORDER BY id DESC OFFSET $2)`, company,
		draftsKept); err != nil {
		return fmt.Errorf("deleting old imports: %w", err)
	}
	return nil
}

// expected are the lines of imports i that would be merged, and what would come of them now.
const expected = `SELECT excluded.*, c.id IS NULL AS is_new, c.id IS NOT NULL AND (` + differs + `
		OR i.consent_source <> '' AND c.consent_source = '' OR i.group_id IS NOT NULL
		AND NOT EXISTS (SELECT FROM contact_members m WHERE m.group_id = i.group_id AND m.contact_id = c.id)
		OR cardinality(excluded.group_keys) > (SELECT count(*) FROM contact_members m
			JOIN contact_groups g ON g.id = m.group_id WHERE m.contact_id = c.id
				AND g.name_key = ANY(excluded.group_keys))) AS is_changed
	FROM contact_import_rows r JOIN contact_imports i ON i.id = r.import_id
	CROSS JOIN LATERAL (SELECT r.*) excluded
	LEFT JOIN contacts c ON c.company_id = i.company_id AND c.phone_number = r.phone_number
	WHERE r.fault IS NULL AND NOT r.repeated`

// Get returns a company's import; [ErrNoImport] if it has none, or not any longer.
func (i *Imports) Get(ctx context.Context, company, id int64) (Import, error) {
	found, err := postgres.All(ctx, i.pool, "reading an import", scanImport,
		`SELECT `+importColumns+` FROM contact_imports WHERE company_id = $1 AND id = $2`, company, id)
	return first(found, err, ErrNoImport)
}

// List returns up to limit confirmed imports of a company, the latest first.
func (i *Imports) List(ctx context.Context, company int64, limit int) ([]Import, error) {
	return postgres.All(ctx, i.pool, "listing imports", scanImport, `SELECT `+importColumns+` FROM contact_imports
		WHERE company_id = $1 AND confirmed_at IS NOT NULL ORDER BY id DESC LIMIT $2`, company, limit)
}

// Drop deletes an import that is not confirmed, and reports whether it did.
func (i *Imports) Drop(ctx context.Context, company, id int64) (bool, error) {
	tag, err := i.pool.Exec(ctx, `DELETE FROM contact_imports WHERE company_id = $1 AND id = $2 AND confirmed_at IS NULL`,
		company, id)
	if err != nil {
		return false, fmt.Errorf("dropping an import: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// Line is a line of an import.
type Line struct {
	N        int
	Line     int // as in an editor
	Number   sms.Number
	Name     string
	Language string
	Fields   map[string]string
	Groups   []string // the keys of their names
	Fault    string   // why it is refused; "": it is not
	New      bool     // before it is confirmed: it becomes a contact
	Changed  bool     // it changes one
}

// Refused returns up to limit refused lines of an import with N above after.
func (i *Imports) Refused(ctx context.Context, id int64, after, limit int) ([]Line, error) {
	return i.lines(ctx, `SELECT n, line, phone_number, name, language, fields, group_keys, fault, false, false
		FROM contact_import_rows WHERE import_id = $1 AND n > $2 AND fault IS NOT NULL ORDER BY n LIMIT $3`, id, after, limit)
}

// Preview returns the first lines of an import that is not confirmed, and what would become of them.
func (i *Imports) Preview(ctx context.Context, id int64, limit int) ([]Line, error) {
	return i.lines(ctx, `SELECT n, line, phone_number, name, language, fields, group_keys, '', is_new, is_changed
		FROM (`+expected+` AND r.import_id = $1 AND r.n > $2 ORDER BY r.n LIMIT $3) e ORDER BY n`, id, 0, limit)
}

func (i *Imports) lines(ctx context.Context, query string, args ...any) ([]Line, error) {
	return postgres.All(ctx, i.pool, "reading the lines of an import", pgx.RowToStructByPos[Line], query, args...)
}

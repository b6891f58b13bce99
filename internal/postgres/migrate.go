package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var embedded embed.FS

// ErrSchemaNewer means that a newer release has migrated the database: this binary
// must not change it.
var ErrSchemaNewer = errors.New("the database schema is newer than this binary")

// ErrSchemaOlder means that migrations are pending.
var ErrSchemaOlder = errors.New("the database schema is older than this binary: run `intumwa migrate`")

// ErrSchemaTooOld means that this binary has no migrations from the database's schema:
// it is left unchanged.
var ErrSchemaTooOld = errors.New("the database schema is too old for this binary")

// ErrSchemaForeign means that the database has tables with our names that are not
// ours: it is left unchanged.
var ErrSchemaForeign = errors.New("the database holds tables of these names that are not Intumwa's; give Intumwa a database of its own")

// ErrSchemaIncomplete means that the schema has the right version but lacks tables.
var ErrSchemaIncomplete = errors.New("the database lacks tables that its schema version should have")

// versionTable lists the applied migrations. Its name is our own, so that another
// program that uses goose in the same database does not interfere.
const versionTable = "intumwa_schema"

// oldestSchema is the oldest schema version that Migrate accepts: the first file of the
// baseline. It refuses an older schema, which a build from before the baseline made,
// before it changes anything. 0, an empty database, is accepted.
const oldestSchema = 200

// migrationLock is the key of the advisory lock of whoever migrates; lockWait is how
// long another instance waits for it.
const (
	migrationLock = lock.DefaultLockID
	lockWait      = 5 * time.Minute
)

// migrationPatience is how long a migration's commit waits for a standby.
const migrationPatience = 3 * time.Second

// Migrate brings the schema at url to this binary's version. Migrations only
// go forward, each in its own transaction. Instances that start together take
// turns (a session advisory lock, at most five minutes), and all but the first
// find nothing to do. It changes nothing and returns ErrSchemaTooOld for a schema
// older than oldestSchema, ErrSchemaNewer when a newer release was here before,
// ErrSchemaForeign when somebody else's tables have our names.
func Migrate(ctx context.Context, url string) error {
	_, err := migrate(ctx, url, migrations(), oldestSchema)
	return err
}

// MigrateFrom is Migrate, and returns the schema's version before and after: the same when there was nothing to do.
func MigrateFrom(ctx context.Context, url string) (versions [2]int64, err error) {
	return migrate(ctx, url, migrations(), oldestSchema)
}

// Current returns nil when the schema is exactly this binary's and all its tables
// exist; otherwise ErrSchemaOlder, ErrSchemaTooOld, ErrSchemaIncomplete or ErrSchemaNewer, wrapped with
// the details, or a database error. With ErrSchemaNewer all tables that this binary
// knows exist.
func Current(ctx context.Context, pool *pgxpool.Pool) error {
	return current(ctx, pool, migrations(), oldestSchema)
}

// Checksum is a short hexadecimal digest of the embedded migrations: two
// binaries with the same checksum expect the same schema.
func Checksum() string {
	hash := sha256.New()
	names, _ := fs.Glob(migrations(), "*.sql")
	for _, name := range names {
		text, err := fs.ReadFile(migrations(), name)
		if err != nil {
			panic("reading an embedded migration: " + err.Error())
		}
		hash.Write(fmt.Appendf(nil, "%s %d\n%s", name, len(text), text))
	}
	return hex.EncodeToString(hash.Sum(nil))[:12]
}

func migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic("opening the embedded migrations: " + err.Error())
	}
	return sub
}

func migrate(ctx context.Context, url string, files fs.FS, oldest int64) (versions [2]int64, err error) {
	primary := NewPrimary(nil)
	primary.Look(ctx, url)
	cfg, err := poolConfig(url, Options{Primary: primary})
	if err != nil {
		return versions, err
	}
	_ = primary.prefer(ctx, cfg.ConnConfig) // it never fails
	// A migration may take long, but must not wait for a long lock, because every later
	// statement on the table would wait behind it: it fails and is run again.
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	cfg.ConnConfig.RuntimeParams["application_name"] = SessionName("migrate")
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return versions, unreachable(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // this unlocks
	if err := lockMigrations(ctx, conn); err != nil {
		return versions, err
	}
	if err := refuseForeign(ctx, conn, files); err != nil {
		return versions, err
	}
	want, err := latest(files)
	if err != nil {
		return versions, err
	}
	have, err := schemaVersion(ctx, conn)
	if err != nil {
		return versions, err
	}
	versions = [2]int64{have, want}
	if err := judgeSchema(have, want, oldest); err == nil || !errors.Is(err, ErrSchemaOlder) {
		return versions, err
	}
	db := stdlib.OpenDB(*cfg.ConnConfig)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := newProvider(db, files)
	if err != nil {
		return versions, err
	}
	attempt := Attend(ctx, conn, migrationPatience)
	_, err = db.ExecContext(ctx, confirm)
	if away := attempt.End(); away != nil {
		return versions, fmt.Errorf("%w. Nothing was changed", away)
	}
	if err != nil {
		return versions, fmt.Errorf("trying a commit: %w", err)
	}
	attendance := Attend(ctx, conn, migrationPatience)
	defer func() {
		if away := attendance.End(); away != nil && err == nil {
			err = fmt.Errorf("the schema is migrated on this server alone: %w", away)
		}
	}()
	if _, err := provider.Up(ctx); err != nil {
		return versions, fmt.Errorf("migrating the database: %w", err)
	}
	return versions, nil
}

// lockMigrations waits until no other instance migrates, lockWait at most. The lock ends with the session.
func lockMigrations(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, fmt.Sprintf(`SET lock_timeout = %s; SELECT pg_advisory_lock(%d)`, milliseconds(lockWait), migrationLock))
	if Locked(err) {
		return fmt.Errorf("another instance has been migrating the database for %s; migrate again when it has ended", lockWait)
	}
	if err != nil {
		return fmt.Errorf("locking the migrations: %w", err)
	}
	return nil
}

func newProvider(db *sql.DB, files fs.FS) (*goose.Provider, error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("reading the embedded migrations: %w", err)
	}
	return provider, nil
}

// refuseForeign returns ErrSchemaForeign for a database with tables of our names and
// without our version table.
func refuseForeign(ctx context.Context, conn *pgx.Conn, files fs.FS) error {
	names, err := tables(files)
	if err != nil {
		return err
	}
	var there []string
	if err := conn.QueryRow(ctx, `SELECT coalesce(array_agg(name), '{}') FROM unnest($1::text[]) name
		WHERE to_regclass(quote_ident(name)) IS NOT NULL AND to_regclass($2) IS NULL`, names, versionTable).Scan(&there); err != nil {
		return fmt.Errorf("looking at the database: %w", err)
	}
	if len(there) > 0 {
		return fmt.Errorf("%w: %s", ErrSchemaForeign, strings.Join(there, ", "))
	}
	return nil
}

// schemaVersion returns the version of a database's schema, 0 before the first migration.
func schemaVersion(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
},
) (version int64, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versionTable+` WHERE is_applied`).Scan(&version)
	if SQLState(err) == "42P01" { // undefined_table
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the schema version: %w", err)
	}
	return version, nil
}

// judgeSchema compares a schema's version with the one that a binary needs, and with the oldest that it migrates from.
func judgeSchema(have, want, oldest int64) error {
	switch {
	case have > want:
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaNewer, have, want)
	case have > 0 && have < oldest:
		return fmt.Errorf("%w: the schema is version %d, and this binary needs version %d and migrates from version %d or newer. "+
			"Nothing was changed; docs/upgrade.md (A schema that is too old) describes what to do", ErrSchemaTooOld, have, want, oldest)
	case have < want:
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaOlder, have, want)
	}
	return nil
}

func current(ctx context.Context, pool *pgxpool.Pool, files fs.FS, oldest int64) error {
	want, err := latest(files)
	if err != nil {
		return err
	}
	have, err := schemaVersion(ctx, pool)
	if err != nil {
		return err
	}
	verdict := judgeSchema(have, want, oldest)
	if verdict != nil && !errors.Is(verdict, ErrSchemaNewer) {
		return verdict
	}
	names, err := tables(files)
	if err != nil {
		return err
	}
	rows, err := pool.Query(ctx, `SELECT name FROM unnest($1::text[]) name WHERE to_regclass(quote_ident(name)) IS NULL`, names)
	if err != nil {
		return fmt.Errorf("looking for the tables: %w", err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	switch {
	case err != nil:
		return fmt.Errorf("looking for the tables: %w", err)
	case len(missing) > 0:
		return fmt.Errorf("%w: %s", ErrSchemaIncomplete, strings.Join(missing, ", "))
	}
	return verdict
}

var (
	createTable = regexp.MustCompile(`(?im)^\s*CREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([a-z_][a-z0-9_]*)`)
	dropTable   = regexp.MustCompile(`(?im)^\s*DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?([a-z_][a-z0-9_]*)`)
)

// tables returns the names of the tables that exist after all migrations, sorted.
func tables(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("listing the embedded migrations: %w", err)
	}
	there := map[string]bool{}
	for _, name := range names { // in order of their numbers
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("reading an embedded migration: %w", err)
		}
		for _, made := range createTable.FindAllSubmatch(text, -1) {
			there[strings.ToLower(string(made[1]))] = true
		}
		for _, gone := range dropTable.FindAllSubmatch(text, -1) {
			delete(there, strings.ToLower(string(gone[1])))
		}
	}
	return slices.Sorted(maps.Keys(there)), nil
}

// latest returns the highest version of the migration files.
func latest(files fs.FS) (int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return 0, fmt.Errorf("listing the embedded migrations: %w", err)
	}
	var highest int64
	for _, name := range names {
		digits, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %s has no version in its name", name)
		}
		highest = max(highest, version)
	}
	return highest, nil
}

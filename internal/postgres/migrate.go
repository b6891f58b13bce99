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

// ErrSchemaForeign means that the database has tables with our names that are not
// ours: it is left unchanged.
var ErrSchemaForeign = errors.New("the database holds tables of these names that are not Intumwa's; give Intumwa a database of its own")

// ErrSchemaIncomplete means that the schema has the right version but lacks tables.
var ErrSchemaIncomplete = errors.New("the database lacks tables that its schema version should have")

// versionTable lists the applied migrations. Its name is our own, so that another
// program that uses goose in the same database does not interfere.
const versionTable = "intumwa_schema"

// lockWait is how long Migrate waits for another instance's migration, in seconds; it
// checks once a second.
const lockWait = 300

// Migrate brings the schema at url to this binary's version. Migrations only
// go forward, each in its own transaction. Instances that start together take
// turns (a session advisory lock, at most five minutes), and all but the first
// find nothing to do. It changes nothing and returns ErrSchemaNewer when a newer
// release was here before, ErrSchemaForeign when somebody else's tables have our
// names, ErrPooled when the lock would not be ours.
func Migrate(ctx context.Context, url string) error {
	_, err := migrate(ctx, url, migrations())
	return err
}

// MigrateFrom is Migrate, and returns the schema's version before and after: the same when there was nothing to do.
func MigrateFrom(ctx context.Context, url string) (versions [2]int64, err error) {
	return migrate(ctx, url, migrations())
}

// Current returns nil when the schema is exactly this binary's and all its tables
// exist; otherwise ErrSchemaOlder, ErrSchemaIncomplete or ErrSchemaNewer, wrapped with
// the details, or a database error. With ErrSchemaNewer all tables that this binary
// knows exist.
func Current(ctx context.Context, pool *pgxpool.Pool) error {
	return current(ctx, pool, migrations())
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

func migrate(ctx context.Context, url string, files fs.FS) (versions [2]int64, err error) {
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
	if err := ownSession(ctx, cfg.ConnConfig); err != nil {
		return versions, err
	}
	db := stdlib.OpenDB(*cfg.ConnConfig)
	defer func() { err = errors.Join(err, db.Close()) }()

	provider, err := newProvider(db, files)
	if err != nil {
		return versions, err
	}
	if err := refuseForeign(ctx, db, files); err != nil {
		return versions, err
	}
	if err := refuseNewer(ctx, provider); err != nil {
		return versions, err
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return versions, fmt.Errorf("migrating the database: %w", err)
	}
	if versions[1], _, err = provider.GetVersions(ctx); err != nil {
		return versions, fmt.Errorf("reading the schema version: %w", err)
	}
	if versions[0] = versions[1]; len(done) > 0 {
		versions[0] = done[0].Source.Version - 1
	}
	// A newer release may have migrated while this one waited for the lock.
	return versions, refuseNewer(ctx, provider)
}

func newProvider(db *sql.DB, files fs.FS) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockWait))
	if err != nil {
		return nil, fmt.Errorf("making the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker),
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("reading the embedded migrations: %w", err)
	}
	return provider, nil
}

// refuseForeign returns ErrSchemaForeign for a database with tables of our names in
// which none of our migrations was applied. It looks for the version table last:
// another instance that runs its first migrations creates that table first.
func refuseForeign(ctx context.Context, db *sql.DB, files fs.FS) error {
	names, err := tables(files)
	if err != nil {
		return err
	}
	var there []string
	for _, name := range names {
		var known bool
		if err := db.QueryRowContext(ctx, `SELECT to_regclass(quote_ident($1)) IS NOT NULL`, name).Scan(&known); err != nil {
			return fmt.Errorf("looking at the database: %w", err)
		}
		if known {
			there = append(there, name)
		}
	}
	if there == nil {
		return nil
	}
	var ours bool
	if err := db.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, versionTable).Scan(&ours); err != nil {
		return fmt.Errorf("looking at the database: %w", err)
	}
	if !ours {
		return fmt.Errorf("%w: %s", ErrSchemaForeign, strings.Join(there, ", "))
	}
	return nil
}

func refuseNewer(ctx context.Context, provider *goose.Provider) error {
	have, want, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading the schema version: %w", err)
	}
	if have > want {
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaNewer, have, want)
	}
	return nil
}

func current(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	want, err := latest(files)
	if err != nil {
		return err
	}
	var have int64
	err = pool.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versionTable+` WHERE is_applied`).Scan(&have)
	if SQLState(err) == "42P01" { // undefined_table: never migrated
		have, err = 0, nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("reading the schema version: %w", err)
	case have < want:
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaOlder, have, want)
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
	case have > want:
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaNewer, have, want)
	}
	return nil
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

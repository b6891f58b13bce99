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
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var embedded embed.FS

// ErrSchemaNewer says that a newer release has migrated the database: this
// binary must not touch it.
var ErrSchemaNewer = errors.New("the database schema is newer than this binary")

// ErrSchemaOlder says that migrations are pending.
var ErrSchemaOlder = errors.New("the database schema is older than this binary: run `intumwa migrate`")

// lockWait is how long Migrate waits for another instance's migration, in
// seconds; it looks once a second.
const lockWait = 300

// Migrate brings the schema at url to this binary's version. Migrations only
// go forward, each in its own transaction. Instances that start together take
// turns (a session advisory lock, at most five minutes), and all but the first
// find nothing to do. It returns ErrSchemaNewer, and changes nothing, when a
// newer release was here before.
func Migrate(ctx context.Context, url string) error {
	return migrate(ctx, url, migrations())
}

// Current returns nil when the schema is exactly this binary's, ErrSchemaOlder
// or ErrSchemaNewer (wrapped, with both versions) when it is not, and any
// database error as it came.
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

func migrate(ctx context.Context, url string, files fs.FS) (err error) {
	cfg, err := poolConfig(url, Options{})
	if err != nil {
		return err
	}
	// A migration may take its time, but may not queue up behind a long lock
	// and stop everybody who comes after it: it fails and is run again.
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = "0"
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	db := stdlib.OpenDB(*cfg.ConnConfig)
	defer func() { err = errors.Join(err, db.Close()) }()

	provider, err := newProvider(db, files)
	if err != nil {
		return err
	}
	if err := refuseNewer(ctx, provider); err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	// A newer release may have migrated while this one waited for the lock.
	return refuseNewer(ctx, provider)
}

func newProvider(db *sql.DB, files fs.FS) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockWait))
	if err != nil {
		return nil, fmt.Errorf("making the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("reading the embedded migrations: %w", err)
	}
	return provider, nil
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
	err = pool.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&have)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42P01" { // undefined_table: never migrated
		have, err = 0, nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("reading the schema version: %w", err)
	case have > want:
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaNewer, have, want)
	case have < want:
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaOlder, have, want)
	}
	return nil
}

// latest is the highest version among the migration files.
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

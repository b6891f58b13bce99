package postgres

import (
	"context"
	"crypto/sha256"
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
)

//go:embed migrations/*.sql
var embedded embed.FS

// ErrSchemaNewer means that a newer release has migrated the database: this binary must not change it.
var ErrSchemaNewer = errors.New("the database schema is newer than this binary")

// ErrSchemaOlder means that migrations are pending.
var ErrSchemaOlder = errors.New("the database schema is older than this binary: run `intumwa migrate`")

// ErrSchemaTooOld means that this binary has no migrations from the database's schema, which stays unchanged.
var ErrSchemaTooOld = errors.New("the database schema is too old for this binary")

// ErrSchemaForeign means that the database has foreign tables with our names. It stays unchanged.
var ErrSchemaForeign = errors.New("the database holds tables of these names that are not Intumwa's; give Intumwa a " +
	"database of its own")

// ErrSchemaIncomplete means that the schema has the right version but lacks tables.
var ErrSchemaIncomplete = errors.New("the database lacks tables that its schema version should have")

// versionTable lists the applied migrations.
const versionTable = "intumwa_schema"

// oldestSchema is the oldest schema version that Migrate accepts: the first file of the baseline. It refuses an older
// schema before it changes anything. 0, an empty database, is accepted.
const oldestSchema = 200

const (
	migrationLock     = 5887940537704921958 // key of the advisory lock of the instance that migrates
	lockWait          = 5 * time.Minute     // how long another instance waits for it
	migrationPatience = 3 * time.Second     // how long a migration's commit waits for a standby
)

// migration is one file. Its name begins with its version; its text runs in one transaction.
type migration struct {
	version int64
	text    string
}

// load reads the migrations of a folder, in order. It panics on invalid ones: no build may embed them.
func load(files fs.FS, folder string) (list []migration) {
	names, err := fs.Glob(files, path.Join(folder, "*.sql"))
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		digits, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			panic("migration " + name + " has no version in its name")
		}
		list = append(list, migration{version, string(text)})
	}
	return list
}

var migrations = load(embedded, "migrations")

// latest returns the version after all these migrations.
func latest(list []migration) int64 { return list[len(list)-1].version }

// Migrate migrates the schema at url to this binary's version and returns its version before and after. Migrations only
// go forward, each in its own transaction. Instances that start together take turns (a session advisory lock, at most
// five minutes), and all but the first find nothing to do. It changes nothing and returns ErrSchemaTooOld for a schema
// older than oldestSchema, ErrSchemaNewer after a newer release, ErrSchemaForeign for foreign tables with our names.
func Migrate(ctx context.Context, url string) (versions [2]int64, err error) {
	return migrate(ctx, url, migrations, oldestSchema)
}

// Current returns nil when the schema is exactly this binary's and all its tables exist; otherwise ErrSchemaOlder,
// ErrSchemaTooOld, ErrSchemaIncomplete or ErrSchemaNewer, wrapped with the details, or a database error. With
// ErrSchemaNewer all of this binary's tables exist.
func Current(ctx context.Context, pool *pgxpool.Pool) error {
	return current(ctx, pool, migrations, oldestSchema)
}

// Checksum returns a short hexadecimal digest of the embedded migrations: two binaries with the same checksum expect
// the same schema.
func Checksum() string {
	hash := sha256.New()
	for _, m := range migrations {
		hash.Write(fmt.Appendf(nil, "%d %d\n%s", m.version, len(m.text), m.text))
	}
	return hex.EncodeToString(hash.Sum(nil))[:12]
}

func migrate(ctx context.Context, url string, list []migration, oldest int64) (versions [2]int64, err error) {
	primary := NewPrimary(nil)
	primary.Look(ctx, url)
	cfg, err := poolConfig(url, Options{Primary: primary})
	if err != nil {
		return versions, err
	}
	_ = primary.prefer(ctx, cfg.ConnConfig) // it never fails
	// A migration may run for long, but must not wait long for a lock: later statements on the table would queue behind
	// it. It fails instead, and is run again.
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
	if err := refuseForeign(ctx, conn, list); err != nil {
		return versions, err
	}
	have, err := schemaVersion(ctx, conn)
	if err != nil {
		return versions, err
	}
	versions = [2]int64{have, latest(list)}
	if err := judgeSchema(have, latest(list), oldest); err == nil || !errors.Is(err, ErrSchemaOlder) {
		return versions, err
	}
	worker, err := pgx.ConnectConfig(ctx, cfg.ConnConfig) // conn watches its commits
	if err != nil {
		return versions, unreachable(err)
	}
	defer func() { _ = worker.Close(context.WithoutCancel(ctx)) }()
	attempt := Attend(ctx, conn, migrationPatience)
	_, err = worker.Exec(ctx, confirm)
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
	return versions, apply(ctx, worker, list, have)
}

// apply runs the migrations after a version, each in one transaction.
func apply(ctx context.Context, conn *pgx.Conn, list []migration, after int64) error {
	if _, err := conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS `+versionTable+
		` (version_id bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`); err != nil {
		return fmt.Errorf("making the table of versions: %w", err)
	}
	for _, m := range list {
		if m.version <= after {
			continue
		}
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := conn.PgConn().Exec(ctx, m.text).ReadAll(); err != nil { // several statements
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO `+versionTable+` (version_id) VALUES ($1)`, m.version)
			return err
		}); err != nil {
			return fmt.Errorf("applying migration %d: %w", m.version, err)
		}
	}
	return nil
}

// lockMigrations waits until no other instance migrates, at most lockWait. The lock ends with the session.
func lockMigrations(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, fmt.Sprintf(`SET lock_timeout = %s; SELECT pg_advisory_lock(%d)`, milliseconds(lockWait),
		migrationLock))
	if Locked(err) {
		return fmt.Errorf("another instance has been migrating the database for %s; migrate again when it has ended",
			lockWait)
	}
	if err != nil {
		return fmt.Errorf("locking the migrations: %w", err)
	}
	return nil
}

// refuseForeign returns ErrSchemaForeign for a database with tables of our names and without our version table.
func refuseForeign(ctx context.Context, conn *pgx.Conn, list []migration) error {
	var there []string
	if err := conn.QueryRow(ctx, `SELECT coalesce(array_agg(name), '{}') FROM unnest($1::text[]) name
		WHERE to_regclass(quote_ident(name)) IS NOT NULL AND to_regclass($2) IS NULL`, tables(list), versionTable).Scan(
		&there); err != nil {
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
	err = db.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versionTable).Scan(&version)
	if SQLState(err) == "42P01" { // undefined_table
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the schema version: %w", err)
	}
	return version, nil
}

// judgeSchema compares a schema's version with the binary's, and with the oldest that it migrates from.
func judgeSchema(have, want, oldest int64) error {
	switch {
	case have > want:
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaNewer, have, want)
	case have > 0 && have < oldest:
		return fmt.Errorf("%w: the schema is version %d, and this binary needs version %d and migrates from version "+
			"%d or newer. "+
			"Nothing was changed; docs/upgrade.md (A schema that is too old) describes what to do", ErrSchemaTooOld, have, want,
			oldest)
	case have < want:
		return fmt.Errorf("%w (schema %d, binary %d)", ErrSchemaOlder, have, want)
	}
	return nil
}

func current(ctx context.Context, pool *pgxpool.Pool, list []migration, oldest int64) error {
	have, err := schemaVersion(ctx, pool)
	if err != nil {
		return err
	}
	verdict := judgeSchema(have, latest(list), oldest)
	if verdict != nil && !errors.Is(verdict, ErrSchemaNewer) {
		return verdict
	}
	rows, err := pool.Query(ctx, `SELECT name FROM unnest($1::text[]) name WHERE to_regclass(quote_ident(name)) IS NULL`,
		tables(list))
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
	createTable = regexp.MustCompile(
		`(?i)^\s*CREATE\s+(?:UNLOGGED\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?([a-z_][a-z0-9_]*)`)
	dropTable = regexp.MustCompile(`(?i)^\s*DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?([a-z_][a-z0-9_]*)`)
)

// tables returns the sorted names of the tables after all migrations.
func tables(list []migration) []string {
	there := map[string]bool{}
	for _, m := range list {
		for line := range strings.Lines(m.text) {
			// The expressions are slow, and most lines begin with another letter.
			switch strings.ToUpper(strings.TrimLeft(line, " \t") + " ")[0] {
			case 'C':
				if made := createTable.FindStringSubmatch(line); made != nil {
					there[strings.ToLower(made[1])] = true
				}
			case 'D':
				if gone := dropTable.FindStringSubmatch(line); gone != nil {
					delete(there, strings.ToLower(gone[1]))
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(there))
}

package postgres

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Private names for the tests, which are in another package because testenv imports this one.
var (
	MajorVersion = majorVersion
)

// OldestSchema is the oldest schema version that Migrate accepts.
const OldestSchema = oldestSchema

// TimelineOf returns the recorded timeline of a connection's server; 0: unknown, so a failover closes the connection.
func TimelineOf(p *Primary, conn *pgconn.PgConn) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[lineOf(conn)]
}

func MigrateFiles(ctx context.Context, url string, files fs.FS) error {
	_, err := migrate(ctx, url, load(files, "."), 0)
	return err
}

func CurrentFiles(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	return current(ctx, pool, load(files, "."), 0)
}

// MigrateToOldest applies the embedded migrations up to OldestSchema.
func MigrateToOldest(ctx context.Context, url string) error {
	_, err := migrate(ctx, url, migrations[:1], 0)
	return err
}

// Tables are the tables after all embedded migrations; Versions are the migrations' versions.
func Tables() []string { return tables(migrations) }

func Versions() (all []int64) {
	for _, m := range migrations {
		all = append(all, m.version)
	}
	return all
}

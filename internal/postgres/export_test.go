package postgres

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What the tests, which stand outside because testenv imports this room, look
// at from within.
var (
	MajorVersion = majorVersion
)

// OldestSchema is the oldest schema version that Migrate accepts.
const OldestSchema = oldestSchema

// TimelineOf is that on which the server was found to which a connection leads; 0: it is not
// known, and so it is cut at every failover.
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

// Tables are those that exist after all embedded migrations, Versions the versions of these.
func Tables() []string { return tables(migrations) }

func Versions() (all []int64) {
	for _, m := range migrations {
		all = append(all, m.version)
	}
	return all
}

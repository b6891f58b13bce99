package postgres

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// What the tests, which stand outside because testenv imports this room, look
// at from within.
var (
	MajorVersion = majorVersion
	Embedded     = migrations
	Tables       = tables
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
	_, err := migrate(ctx, url, files, 0)
	return err
}

func CurrentFiles(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	return current(ctx, pool, files, 0)
}

// MigrateTo applies the embedded migrations up to a version, as an older binary did.
func MigrateTo(ctx context.Context, url string, version int64) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	provider, err := newProvider(db, migrations())
	if err != nil {
		return err
	}
	_, err = provider.UpTo(ctx, version)
	return err
}

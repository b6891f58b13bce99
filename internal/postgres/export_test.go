package postgres

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"
)

// What the tests, which stand outside because testenv imports this room, look
// at from within.
var (
	CurrentFiles = current
	MajorVersion = majorVersion
	Embedded     = migrations
	Tables       = tables
)

// TimelineOf is that on which the server was found to which a connection leads; 0: it is not
// known, and so it is cut at every failover.
func TimelineOf(p *Primary, conn *pgconn.PgConn) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[lineOf(conn)]
}

func MigrateFiles(ctx context.Context, url string, files fs.FS) error {
	_, err := migrate(ctx, url, files)
	return err
}

package postgres

import (
	"context"
	"io/fs"
)

// What the tests, which stand outside because testenv imports this room, look
// at from within.
var (
	CurrentFiles = current
	MajorVersion = majorVersion
	Embedded     = migrations
	Tables       = tables
)

func MigrateFiles(ctx context.Context, url string, files fs.FS) error {
	_, err := migrate(ctx, url, files)
	return err
}

package postgres

// What the tests, which stand outside because testenv imports this room, look
// at from within.
var (
	MigrateFiles = migrate
	CurrentFiles = current
	MajorVersion = majorVersion
	Embedded     = migrations
	Tables       = tables
)

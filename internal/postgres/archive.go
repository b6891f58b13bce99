package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Archive is the state of the WAL archive.
type Archive struct {
	On       bool   // archive_mode
	Command  string // archive_command; "" when there is none, or a library instead
	Library  string // archive_library
	Last     string // the last archived file; "": none since the statistics were reset
	Age      time.Duration
	Failures int64         // since the statistics were reset
	Failing  bool          // the last attempt failed
	Timeout  time.Duration // archive_timeout; 0: a file is archived when it is full
}

// ReadArchive reads the state of the WAL archive. Every role may.
func ReadArchive(ctx context.Context, pool *pgxpool.Pool) (a Archive, err error) {
	if err := pool.QueryRow(ctx, `SELECT current_setting('archive_mode') <> 'off', current_setting('archive_command'),
		coalesce(current_setting('archive_library', true), ''),
			coalesce(last_archived_wal, ''), clock_timestamp() - coalesce(last_archived_time, greatest(stats_reset,
			pg_postmaster_start_time())),
			failed_count, coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false),
			current_setting('archive_timeout')::interval
		FROM pg_stat_archiver`).Scan(&a.On, &a.Command, &a.Library, &a.Last, &a.Age, &a.Failures, &a.Failing,
		&a.Timeout); err != nil {
		return a, fmt.Errorf("looking at the archive: %w", err)
	}
	return a, nil
}

// archiveLate is the age of the last archived file, beyond archive_timeout, that is too old. The gateway's probes
// write, so there is always something to archive.
const archiveLate = 5 * time.Minute

// keepNothing are archive commands that succeed without an archive.
var keepNothing = []string{"true", "/bin/true", "/usr/bin/true", ":", "exit 0", "cd ."}

// Problem returns, in words for an operator, what a restore would lack, or "".
func (a Archive) Problem() string {
	age := a.Age.Round(time.Second)
	switch {
	case !a.On:
		return "archive_mode is off: a restore loses everything since the last backup"
	case a.Library == "" && (a.Command == "" || a.Command == "(disabled)"):
		return "archive_mode is on, and archive_command is empty: nothing is archived"
	case a.Library == "" && slices.Contains(keepNothing, a.Command):
		return fmt.Sprintf("archive_command is %q, which keeps nothing", a.Command)
	case a.Failing:
		return fmt.Sprintf("archive_command fails: %d failures; the last file, %q, is %v old", a.Failures, a.Last, age)
	case a.Timeout == 0 || a.Age <= a.Timeout+archiveLate:
		return ""
	case a.Last == "":
		return fmt.Sprintf("nothing is archived for %v, and archive_timeout is %v", age, a.Timeout)
	}
	return fmt.Sprintf("nothing is archived: the last file, %s, is %v old, and archive_timeout is %v", a.Last, age,
		a.Timeout)
}

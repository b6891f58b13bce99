package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrStandbyAway means that a commit waits for a synchronous standby that does not
// confirm it. PostgreSQL itself waits without a limit.
var ErrStandbyAway = errors.New("a commit waits for a standby")

// Unsafe returns why a commit may be lost with the primary's disk, in words for an operator:
// it waits for no standby. "" means that each commit of this pool is on a standby before
// it is answered. (While that standby is away commits wait, and [Probe] fails.)
func Unsafe(ctx context.Context, pool *pgxpool.Pool) (why string, err error) {
	var commit, standbys string
	err = pool.QueryRow(ctx, `SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names')`).Scan(&commit, &standbys)
	switch {
	case err != nil:
		return "", fmt.Errorf("asking whether commits wait for a standby: %w", err)
	case standbys == "":
		return "synchronous_standby_names is empty: no commit waits for a standby", nil
	case !slices.Contains([]string{"on", "remote_apply", "remote_write"}, commit):
		return "synchronous_commit is " + commit + ": no commit waits for a standby", nil
	}
	return "", nil
}

// attendEvery is how often Attendance looks.
const attendEvery = 250 * time.Millisecond

// Attendance ends the waits of commits for a synchronous standby that is away: each is
// then made on the primary and on no standby, as PostgreSQL warns, and its
// statement returns. [Attend] begins it.
type Attendance struct {
	stop, ended chan struct{}
	err         error // read once ended is closed
}

// Attend watches the sessions that have the application_name of db's ([Options.Name]),
// until its End. A commit of theirs waits for a standby for patience, and a look, at most; how
// long its statement took before does not count. Nothing else may use db meanwhile, if it is no pool.
func Attend(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, patience time.Duration,
) *Attendance {
	a := &Attendance{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		look := time.NewTicker(attendEvery)
		defer look.Stop()
		since := map[wait]time.Time{} // when each was seen first
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.stop:
				return
			case <-look.C:
			}
			since = a.look(context.WithoutCancel(ctx), db.Query, since, patience)
		}
	}()
	return a
}

// wait is a statement whose commit waits for a standby.
type wait struct {
	PID   int32
	Start time.Time
	Names string // of the standbys
}

// look ends the waits that have lasted for patience and returns the others. End waits for its
// answer: a wait that was ended must not go unnoticed.
func (a *Attendance) look(ctx context.Context, query func(context.Context, string, ...any) (pgx.Rows, error), before map[wait]time.Time, patience time.Duration) map[wait]time.Time {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, _ := query(ctx, `SELECT pid, query_start, current_setting('synchronous_standby_names') FROM pg_stat_activity
		WHERE application_name = current_setting('application_name') AND datname = current_database() AND wait_event = 'SyncRep'`)
	waits, err := pgx.CollectRows(rows, pgx.RowToStructByPos[wait]) // an error of the query as well
	if err != nil {
		return before // the statement that is watched fails as well
	}
	now, since := time.Now(), make(map[wait]time.Time)
	for _, w := range waits {
		first, seen := before[w]
		if !seen {
			first = now
		}
		if now.Sub(first) < patience {
			since[w] = first
			continue
		}
		rows, _ := query(ctx, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND query_start = $2 AND wait_event = 'SyncRep'`, w.PID, w.Start)
		if done, err := pgx.CollectOneRow(rows, pgx.RowTo[bool]); err != nil || !done {
			since[w] = first
			continue
		}
		a.err = fmt.Errorf("%w: %s (synchronous_standby_names); docs/runbooks/standby-missing.md describes what to do", ErrStandbyAway, w.Names)
	}
	return since
}

// End ends the watch. It returns [ErrStandbyAway], wrapped with the standbys' names, if a wait was ended.
func (a *Attendance) End() error {
	close(a.stop)
	<-a.ended
	return a.err
}

// SessionName is an application_name that no other process has.
func SessionName(of string) string {
	host, _ := os.Hostname() // without it the number is likely to be enough
	return fmt.Sprintf("intumwa %s %d %s", of, os.Getpid(), host)
}

// TryCommit tries a commit ([Probe]) and returns ErrStandbyAway, wrapped with the
// standbys' names, if it waits longer than patience for one. Other errors of the commit
// are returned as they are. The pool has [Options.Name] and two connections.
func TryCommit(ctx context.Context, pool *pgxpool.Pool, patience time.Duration) error {
	attendance := Attend(ctx, pool, patience)
	err := Probe(ctx, pool)
	if away := attendance.End(); away != nil {
		return away
	}
	return err
}

// Standby is a server that replicates from the primary.
type Standby struct {
	Name string // its application_name; "": this role may not see it (pg_monitor may)
	Sync string // sync, quorum, potential or async; "": likewise
	Lag  time.Duration
}

// Standbys lists the standbys that are connected, by name.
func Standbys(ctx context.Context, pool *pgxpool.Pool) ([]Standby, error) {
	rows, _ := pool.Query(ctx, `SELECT coalesce(application_name, ''), coalesce(sync_state, ''), coalesce(replay_lag, interval '0') FROM pg_stat_replication ORDER BY 1`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Standby]) // an error of the query as well
	if err != nil {
		return nil, fmt.Errorf("listing the standbys: %w", err)
	}
	return list, nil
}

// Archive is how the archive of PostgreSQL's log (WAL) is.
type Archive struct {
	On       bool   // archive_mode
	Last     string // the file that was archived last; "": none yet
	Age      time.Duration
	Failures int64         // since the statistics were reset
	Failing  bool          // the last try failed
	Timeout  time.Duration // archive_timeout; 0: a file is archived when it is full
}

// ReadArchive reads it.
func ReadArchive(ctx context.Context, pool *pgxpool.Pool) (a Archive, err error) {
	if err := pool.QueryRow(ctx, `SELECT current_setting('archive_mode') <> 'off', coalesce(last_archived_wal, ''), coalesce(now() - last_archived_time, interval '0'),
			failed_count, coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false), current_setting('archive_timeout')::interval
		FROM pg_stat_archiver`).Scan(&a.On, &a.Last, &a.Age, &a.Failures, &a.Failing, &a.Timeout); err != nil {
		return a, fmt.Errorf("looking at the archive: %w", err)
	}
	return a, nil
}

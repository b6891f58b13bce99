package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrStandbyAway means that a commit waits for a synchronous standby that does not
// confirm it. PostgreSQL itself waits for ever.
var ErrStandbyAway = errors.New("a commit waits for a standby")

// Unsafe says why a commit may be lost with the primary's disk, in an operator's words:
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
// then made on the primary and on no standby, as PostgreSQL's warning says, and its
// statement returns. [Attend] begins it.
type Attendance struct {
	stop, ended chan struct{}

	mu  sync.Mutex
	err error
}

// Attend watches the sessions that have the application_name of db's ([Options.Name]),
// until its End. A commit of theirs waits for a standby for patience at most. Nothing
// else may use db meanwhile, if it is no pool.
func Attend(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, patience time.Duration,
) *Attendance {
	a := &Attendance{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		look := time.NewTicker(attendEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.stop:
				return
			case <-look.C:
			}
			var names string
			// End waits for this answer: a wait that was ended must not go unnoticed.
			looking, stop := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
			// Materialized: no other session is cancelled.
			err := db.QueryRow(looking, `WITH waits AS MATERIALIZED (
					SELECT pid FROM pg_stat_activity WHERE application_name = current_setting('application_name') AND datname = current_database()
						AND wait_event = 'SyncRep' AND clock_timestamp() - query_start > $1::interval)
				SELECT current_setting('synchronous_standby_names') FROM waits WHERE pg_cancel_backend(pid) LIMIT 1`, patience).Scan(&names)
			stop()
			if err != nil {
				continue // none waits; or the statement that is watched fails as well
			}
			a.mu.Lock()
			a.err = fmt.Errorf("%w: %s (synchronous_standby_names); docs/runbooks/standby-missing.md describes what to do", ErrStandbyAway, names)
			a.mu.Unlock()
		}
	}()
	return a
}

// Err returns [ErrStandbyAway], wrapped with the standbys' names, if a wait was ended; else nil.
func (a *Attendance) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// End ends the watch, and returns Err. A look that is under way is finished: it may be
// the one that has just ended a wait.
func (a *Attendance) End() error {
	close(a.stop)
	<-a.ended
	return a.Err()
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

// ReadArchive asks for it.
func ReadArchive(ctx context.Context, pool *pgxpool.Pool) (a Archive, err error) {
	if err := pool.QueryRow(ctx, `SELECT current_setting('archive_mode') <> 'off', coalesce(last_archived_wal, ''), coalesce(now() - last_archived_time, interval '0'),
			failed_count, coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false), current_setting('archive_timeout')::interval
		FROM pg_stat_archiver`).Scan(&a.On, &a.Last, &a.Age, &a.Failures, &a.Failing, &a.Timeout); err != nil {
		return a, fmt.Errorf("looking at the archive: %w", err)
	}
	return a, nil
}

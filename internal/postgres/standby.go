package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrStandbyAway means that a synchronous standby does not confirm a commit. PostgreSQL itself waits without a limit.
var ErrStandbyAway = errors.New("a commit waits for a standby")

// Unsafe returns, in words for an operator, why a commit may be lost with the primary's disk: it waits for no standby.
// "" means that a commit of this pool is on a standby before it is acknowledged; while that standby is away commits
// wait, and [Probe] fails.
func Unsafe(ctx context.Context, pool *pgxpool.Pool) (why string, err error) {
	var commit, standbys string
	err = pool.QueryRow(
		ctx, `SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names')`).Scan(
		&commit, &standbys)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading whether commits wait for a standby: %w", err)
	case standbys == "":
		return "synchronous_standby_names is empty: no commit waits for a standby", nil
	case !slices.Contains([]string{"on", "remote_apply", "remote_write"}, commit):
		return "synchronous_commit is " + commit + ": no commit waits for a standby", nil
	}
	return "", nil
}

// errAlone is the error of a COMMIT whose wait for the standby somebody cancelled (pg_cancel_backend).
var errAlone = fmt.Errorf("%w, which was cancelled: it took effect on this server alone", ErrStandbyAway)

// alone is the key of a connection's note that a COMMIT is on its server alone.
const alone = "intumwa: alone"

// noteAlone hears PostgreSQL's warning that a wait for the standby was cancelled. The COMMIT is acknowledged
// nevertheless. The function's name is the same in every language.
func noteAlone(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		conn.CustomData()[alone] = true
	}
}

// takeAlone returns whether there is such a note, and deletes it.
func takeAlone(conn *pgx.Conn) bool {
	notes := conn.PgConn().CustomData()
	defer delete(notes, alone)
	return notes[alone] != nil
}

// attendEvery is how often Attendance looks.
const attendEvery = 250 * time.Millisecond

// Attendance ends waits of commits for a synchronous standby that is away: the commit is then on the primary only, as
// PostgreSQL warns, and its statement returns. [Attend] begins it.
type Attendance struct {
	stop, ended chan struct{}
	err         error // read after ended is closed
}

// Attend watches the sessions with the application_name of db's ([Options.Name]) until End. Their commits wait for a
// standby at most patience and the time between two looks; the earlier duration of the statement does not count.
// Nothing else may use db meanwhile, unless it is a pool.
func Attend(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, patience time.Duration,
) *Attendance {
	a := &Attendance{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(a.ended)
		look := time.NewTicker(attendEvery)
		defer look.Stop()
		since := map[wait]time.Time{} // when each was first seen
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

// look ends the waits that have lasted for patience and returns the others. End waits for its result: it must report
// every ended wait.
func (a *Attendance) look(ctx context.Context, query func(context.Context, string, ...any) (pgx.Rows, error),
	before map[wait]time.Time, patience time.Duration) map[wait]time.Time {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, _ := query(ctx, `SELECT pid, query_start, current_setting('synchronous_standby_names') FROM pg_stat_activity
		WHERE application_name = current_setting('application_name') AND datname = current_database()
		AND wait_event = 'SyncRep'`)
	waits, err := pgx.CollectRows(rows, pgx.RowToStructByPos[wait]) // also an error of the query
	if err != nil {
		return before // the watched statement fails as well
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
		rows, _ := query(ctx, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND query_start = $2
			AND wait_event = 'SyncRep'`, w.PID, w.Start)
		if done, err := pgx.CollectOneRow(rows, pgx.RowTo[bool]); err != nil || !done {
			since[w] = first
			continue
		}
		a.err = fmt.Errorf("%w: %s (synchronous_standby_names); docs/runbooks/standby-missing.md describes what to do",
			ErrStandbyAway, w.Names)
	}
	return since
}

// End ends the watch. It returns [ErrStandbyAway], wrapped with the standbys' names, if a wait was ended.
func (a *Attendance) End() error {
	close(a.stop)
	<-a.ended
	return a.err
}

// SessionName returns an application_name that no other process has.
func SessionName(of string) string {
	host, _ := os.Hostname() // without it the number should be enough
	return fmt.Sprintf("intumwa %s %d %s", of, os.Getpid(), host)
}

// TryCommit tries a commit ([Probe]) and returns ErrStandbyAway, wrapped with the standbys' names, if it waits longer
// than patience for one, or the commit's own error. The pool needs [Options.Name] and two connections.
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
	Sync string // sync, quorum, potential or async; "": the same
	Lag  time.Duration
}

// Standbys lists the connected standbys, by name.
func Standbys(ctx context.Context, pool *pgxpool.Pool) ([]Standby, error) {
	rows, _ := pool.Query(ctx, `SELECT coalesce(application_name, ''), coalesce(sync_state, ''), coalesce(replay_lag,
		interval '0') FROM pg_stat_replication ORDER BY 1`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Standby]) // also an error of the query
	if err != nil {
		return nil, fmt.Errorf("listing the standbys: %w", err)
	}
	return list, nil
}

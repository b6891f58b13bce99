package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// sessionLockKey is the first key of the session locks; the second is the
// dispatcher's id.
const sessionLockKey = 0x64697370

// processStart is what times are measured from that several goroutines share: by the
// monotonic clock, since this machine's other one may be set meanwhile.
var processStart = time.Now()

const (
	sessionPing    = 2 * time.Second       // silence after which the connection is tried
	sessionTimeout = 2 * time.Second       // of connecting, and of an answer
	reconnectPause = 50 * time.Millisecond // before connecting again
)

// sessionLock is a session of the database that does nothing but hold a lock: the
// server takes the lock back the moment that the process is gone, and the others
// see that this dispatcher is dead without waiting for its silence to grow long.
// A connection that is lost while the process lives is made again at once; until
// the lock is back nothing is submitted.
type sessionLock struct {
	d    *Dispatcher
	id   int64
	conn *pgx.Conn
	held atomic.Bool
	back atomic.Int64 // when a lost lock was had again, as time since processStart; 0: it never was lost
	end  context.CancelFunc
	done chan struct{}
}

// takeSessionLock makes a new row among the dispatchers: its lock is held before anybody can
// see the row.
func (d *Dispatcher) takeSessionLock(ctx context.Context) (*sessionLock, error) {
	l := &sessionLock{d: d, done: make(chan struct{})}
	if err := l.connect(ctx); err != nil {
		return nil, err
	}
	holding, end := context.WithCancel(context.WithoutCancel(ctx))
	l.end = end
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	err := l.conn.QueryRow(ctx, `SELECT nextval(pg_get_serial_sequence('dispatchers', 'id'))`).Scan(&l.id)
	if err == nil {
		err = l.lock(ctx)
	}
	if err == nil {
		_, err = l.conn.Exec(ctx, `INSERT INTO dispatchers (id, name, session) OVERRIDING SYSTEM VALUE VALUES ($1, $2, true)`, l.id, identity())
	}
	if err != nil {
		end()
		_ = closeQuietly(l.conn) // the first error says more
		return nil, fmt.Errorf("taking a session lock: %w", err)
	}
	go l.hold(holding)
	return l, nil
}

// connect tries every host of the URL in turn, each for sessionTimeout.
func (l *sessionLock) connect(ctx context.Context) (err error) {
	l.conn, err = postgres.Connect(ctx, l.d.opts.Sessions, sessionTimeout)
	return err
}

// sessionLocks are the rows of pg_locks that are session locks; $1 is their first key.
const sessionLocks = `locktype = 'advisory' AND granted AND classid = $1::int AND objsubid = 2
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

var errLockHeld = errors.New("another session has the lock of this dispatcher")

func (l *sessionLock) lock(ctx context.Context) error {
	var mine bool
	if err := l.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, sessionLockKey, int32(l.id)).Scan(&mine); err != nil {
		return fmt.Errorf("locking: %w", err)
	}
	if !mine { // the server has not noticed yet that our last session ended
		if _, err := l.conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE `+sessionLocks+` AND objid::bigint = $2::bigint & 4294967295`, sessionLockKey, l.id); err != nil {
			return fmt.Errorf("ending the session that had the lock: %w", err)
		}
		return errLockHeld
	}
	l.held.Store(true)
	return nil
}

// hold keeps the lock until it is released.
func (l *sessionLock) hold(ctx context.Context) {
	defer close(l.done)
	for {
		err := l.watch(ctx)
		l.held.Store(false)
		_ = closeQuietly(l.conn)
		if ctx.Err() != nil {
			return
		}
		l.d.log.Warn("session lock lost; links submit nothing until it is back", "error", err)
		for l.reacquire(ctx) != nil {
			if sleep(ctx, reconnectPause) != nil {
				return
			}
		}
		l.back.Store(int64(time.Since(processStart)))
		l.d.log.Info("session lock is back; links submit again")
	}
}

func (l *sessionLock) reacquire(ctx context.Context) error {
	if err := l.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sessionTimeout)
	defer cancel()
	err := l.lock(ctx)
	if err == nil {
		_, err = l.conn.Exec(ctx, `UPDATE dispatchers SET session_at = clock_timestamp() WHERE id = $1`, l.id)
	}
	if err != nil {
		l.held.Store(false)
		_ = closeQuietly(l.conn) // the first error says more
		return fmt.Errorf("taking the lock again: %w", err)
	}
	return nil
}

// notSeen notes that the others' absence says nothing: this server does not see our
// own lock, so it is not the one that holds the locks.
func (l *sessionLock) notSeen() { l.back.Store(int64(time.Since(processStart))) }

// stable reports whether the lock has been held for long enough that the others,
// had they lost theirs together with it, would have it back.
func (l *sessionLock) stable() bool {
	back := time.Duration(l.back.Load())
	return l.held.Load() && (back == 0 || time.Since(processStart)-back >= l.d.opts.DeadAfter)
}

// watch returns when the connection is lost or ctx ends.
func (l *sessionLock) watch(ctx context.Context) error {
	for {
		quiet, cancel := context.WithTimeout(ctx, sessionPing)
		_, err := l.conn.WaitForNotification(quiet) // there are none: it waits for the connection's end
		over := quiet.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !over:
			return err
		}
		answer, cancel := context.WithTimeout(ctx, sessionTimeout)
		err = l.conn.Ping(answer)
		cancel()
		if err != nil {
			return fmt.Errorf("the server is silent: %w", err)
		}
	}
}

// release ends the session. The caller has taken its row off the list.
func (l *sessionLock) release() {
	l.end()
	<-l.done
}

func closeQuietly(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), sessionTimeout)
	defer cancel()
	return conn.Close(ctx)
}

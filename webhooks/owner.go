package webhooks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	acquireEvery = 250 * time.Millisecond // while another process delivers
	beatEvery    = time.Second
	beatPatience = 2 * time.Second // of connecting, and of one statement of the owner's
	// Without a beat for so long no call is begun: a process that was frozen may
	// have been replaced.
	beatValid = 5 * time.Second
	// An owner that has not been heard of for so long, by the server's clock, has
	// its connection cut: it is frozen, or its host has vanished.
	beatDead = 10 * time.Second
)

// The advisory lock of the one process that delivers (table webhook_owner).
const ownerLock = `1986552683, 1` // of this database; no other lock has this pair

// tenure is the time in which this process is the one that delivers. It ends
// with its connection, which holds the lock.
type tenure struct {
	conn  *pgx.Conn
	epoch int64
	read  int64 // found at the take-over: all up to it were attempted or parked
	head  int64 // the last delivery there was then

	beat atomic.Int64  // the last one, in nanoseconds since booted
	lost chan struct{} // closed when it is over before its time
	end  context.CancelFunc
	gone chan struct{}
}

var booted = time.Now() // what beats are counted from, on a clock that nobody sets

func (t *tenure) valid() bool { return time.Since(booted)-time.Duration(t.beat.Load()) < beatValid }

// acquire waits until this process is the one that delivers, or ctx ends.
func (d *deliverer) acquire(ctx context.Context) (*tenure, error) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			hangUp(ctx, conn)
		}
	}()
	// Who delivered last asks more often, until somebody else does: it still knows
	// what was called while the database was away.
	trouble, pause := false, acquireEvery
	if d.term > 0 {
		pause = acquireEvery / 5
	}
	for {
		t, err := d.tryAcquire(ctx, &conn)
		if t != nil {
			conn = nil
			return t, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		d.logTrouble(&trouble, err)
		if err == nil {
			pause = acquireEvery
		} else if conn != nil {
			hangUp(ctx, conn)
			conn = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// tryAcquire asks for the lock on *conn, which it makes when there is none.
func (d *deliverer) tryAcquire(ctx context.Context, conn **pgx.Conn) (*tenure, error) {
	ctx, cancel := context.WithTimeout(ctx, beatPatience)
	defer cancel()
	var err error
	if *conn == nil {
		if *conn, err = pgx.ConnectConfig(ctx, d.owners.Copy()); err != nil {
			return nil, fmt.Errorf("connecting: %w", err)
		}
	}
	var mine bool
	if err := (*conn).QueryRow(ctx, `SELECT pg_try_advisory_lock(`+ownerLock+`)`).Scan(&mine); err != nil {
		return nil, fmt.Errorf("asking who delivers webhooks: %w", err)
	}
	if !mine {
		return nil, d.cutDeadOwner(ctx, *conn)
	}
	t := &tenure{conn: *conn, lost: make(chan struct{}), gone: make(chan struct{})}
	err = t.conn.QueryRow(ctx, `UPDATE webhook_owner SET epoch = epoch + 1, beat = now()
		RETURNING epoch, read, (SELECT coalesce(max(seq), 0) FROM webhook_deliveries)`).Scan(&t.epoch, &t.read, &t.head)
	if err != nil {
		return nil, fmt.Errorf("taking the delivering of webhooks over: %w", err)
	}
	// A beat that a crash of the server loses is made again a second later.
	if _, err := t.conn.Exec(ctx, `SET synchronous_commit = off`); err != nil {
		return nil, fmt.Errorf("taking the delivering of webhooks over: %w", err)
	}
	t.beat.Store(int64(time.Since(booted)))
	return t, nil
}

// cutDeadOwner ends the connection of an owner that is not heard of any more.
func (d *deliverer) cutDeadOwner(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, `
		SELECT pg_terminate_backend(l.pid) FROM webhook_owner o, pg_locks l
		WHERE o.beat < now() - $1::interval AND l.locktype = 'advisory' AND l.granted
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND (l.classid, l.objid) = (`+ownerLock+`) AND l.objsubid = 2`, beatDead)
	if err != nil {
		return fmt.Errorf("asking after the process that delivers webhooks: %w", err)
	}
	if tag.RowsAffected() > 0 {
		d.log.Warn("the process that delivers webhooks stopped its heartbeat; its connection was cut")
	}
	return nil
}

// keep holds a tenure until ctx ends or it is lost: it beats, and stores how far
// all is done, so that whoever takes over need not read it again.
func (t *tenure) keep(ctx context.Context, done func() int64) {
	defer close(t.gone)
	defer hangUp(ctx, t.conn)
	for {
		quiet, cancel := context.WithTimeout(ctx, beatEvery)
		_, err := t.conn.WaitForNotification(quiet) // there is none: it notices at once when the connection breaks
		timedOut := quiet.Err() != nil
		cancel()
		ending := ctx.Err() != nil
		if err != nil && !timedOut {
			close(t.lost)
			return
		}
		if err := t.say(ctx, done()); err != nil && !ending {
			close(t.lost)
			return
		}
		if ending {
			return
		}
	}
}

var errReplaced = errors.New("another process delivers")

func (t *tenure) say(ctx context.Context, done int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatPatience)
	defer cancel()
	began := time.Since(booted)
	tag, err := t.conn.Exec(ctx, `UPDATE webhook_owner SET beat = now(), read = $2 WHERE one AND epoch = $1`, t.epoch, done)
	if err == nil && tag.RowsAffected() == 0 {
		err = errReplaced
	}
	if err != nil {
		return fmt.Errorf("saying who delivers webhooks: %w", err)
	}
	t.beat.Store(int64(began))
	return nil
}

// over ends a tenure, which another process may begin at once.
func (t *tenure) over() {
	t.end()
	<-t.gone
}

func hangUp(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatPatience/2)
	defer cancel()
	_ = conn.Close(ctx) // it is broken, or of no more use
}

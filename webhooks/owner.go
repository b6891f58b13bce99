package webhooks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

const (
	acquireEvery     = 250 * time.Millisecond // while another process delivers
	heartbeatEvery   = time.Second
	heartbeatTimeout = 2 * time.Second // for connecting, and for one statement of the owner
	// A lease without a heartbeat for leaseValid starts no call: the process may have
	// been frozen and replaced.
	leaseValid = 5 * time.Second
	// The connection of an owner without a heartbeat for ownerDeadAfter, by the server's
	// clock, is cut: the owner is frozen or its host has vanished.
	ownerDeadAfter = 10 * time.Second
)

// The advisory lock of the owner, the process that delivers (table webhook_owner).
const ownerLock = `1986552683, 1` // per database; no other lock has this pair

// lease is the time in which this process is the owner. It ends with its connection,
// which holds the lock.
type lease struct {
	conn  *pgx.Conn
	epoch int64
	read  int64 // stored by the owner before: all deliveries up to this number were attempted or parked
	head  int64 // the last delivery at that time

	beat atomic.Int64  // the last heartbeat, in nanoseconds since processStart
	lost chan struct{} // closed when the lease is lost
	end  context.CancelFunc
	gone chan struct{}
}

var processStart = time.Now() // heartbeats are measured from here by the monotonic clock

func (t *lease) valid() bool {
	return time.Since(processStart)-time.Duration(t.beat.Load()) < leaseValid
}

// acquire waits until this process is the owner, or ctx ends.
func (d *deliverer) acquire(ctx context.Context) (*lease, error) {
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			closeConn(ctx, conn)
		}
	}()
	// The last owner asks more often than others: it still has in memory which calls
	// were made while the database was away.
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
		d.logOutage(&trouble, err)
		if err == nil {
			pause = acquireEvery
		} else if conn != nil {
			closeConn(ctx, conn)
			conn = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// tryAcquire asks for the lock on *conn, and connects first when *conn is nil.
func (d *deliverer) tryAcquire(ctx context.Context, conn **pgx.Conn) (*lease, error) {
	var err error
	if *conn == nil {
		if *conn, err = postgres.Connect(ctx, d.owners, heartbeatTimeout); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	var mine bool
	if err := (*conn).QueryRow(ctx, `SELECT pg_try_advisory_lock(`+ownerLock+`)`).Scan(&mine); err != nil {
		return nil, fmt.Errorf("taking the lock of the webhook owner: %w", err)
	}
	if !mine {
		return nil, d.cutDeadOwner(ctx, *conn)
	}
	t := &lease{conn: *conn, lost: make(chan struct{}), gone: make(chan struct{})}
	err = t.conn.QueryRow(ctx, `UPDATE webhook_owner SET epoch = epoch + 1, beat = now()
		RETURNING epoch, read, (SELECT coalesce(max(seq), 0) FROM webhook_deliveries)`).Scan(&t.epoch, &t.read, &t.head)
	if err != nil {
		return nil, fmt.Errorf("starting the lease of the webhook owner: %w", err)
	}
	// Heartbeats need not survive a crash of the server: the next one follows within a second.
	if _, err := t.conn.Exec(ctx, `SET synchronous_commit = off`); err != nil {
		return nil, fmt.Errorf("starting the lease of the webhook owner: %w", err)
	}
	t.beat.Store(int64(time.Since(processStart)))
	return t, nil
}

// cutDeadOwner cuts the connection of an owner without a heartbeat for ownerDeadAfter.
func (d *deliverer) cutDeadOwner(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, `
		SELECT pg_terminate_backend(l.pid) FROM webhook_owner o, pg_locks l
		WHERE o.beat < now() - $1::interval AND l.locktype = 'advisory' AND l.granted
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND (l.classid, l.objid) = (`+ownerLock+`) AND l.objsubid = 2`, ownerDeadAfter)
	if err != nil {
		return fmt.Errorf("looking for a dead webhook owner: %w", err)
	}
	if tag.RowsAffected() > 0 {
		d.log.Warn("the process that delivers webhooks stopped its heartbeat; its connection was cut")
	}
	return nil
}

// keep renews a lease until ctx ends or the lease is lost. With each heartbeat it
// stores up to which number everything is done.
func (t *lease) keep(ctx context.Context, done func() int64) {
	defer close(t.gone)
	defer closeConn(ctx, t.conn)
	for {
		quiet, cancel := context.WithTimeout(ctx, heartbeatEvery)
		_, err := t.conn.WaitForNotification(quiet) // none comes; waiting detects a broken connection at once
		timedOut := quiet.Err() != nil
		cancel()
		ending := ctx.Err() != nil
		if err != nil && !timedOut {
			close(t.lost)
			return
		}
		if err := t.renew(ctx, done()); err != nil && !ending {
			close(t.lost)
			return
		}
		if ending {
			return
		}
	}
}

var errReplaced = errors.New("another process is the webhook owner")

func (t *lease) renew(ctx context.Context, done int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeatTimeout)
	defer cancel()
	began := time.Since(processStart)
	tag, err := t.conn.Exec(ctx, `UPDATE webhook_owner SET beat = now(), read = $2 WHERE one AND epoch = $1`, t.epoch, done)
	if err == nil && tag.RowsAffected() == 0 {
		err = errReplaced
	}
	if err != nil {
		return fmt.Errorf("storing the heartbeat of the webhook owner: %w", err)
	}
	t.beat.Store(int64(began))
	return nil
}

// release ends a lease; another process can become the owner at once.
func (t *lease) release() {
	t.end()
	<-t.gone
}

func closeConn(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeatTimeout/2)
	defer cancel()
	_ = conn.Close(ctx) // it is broken or not needed any more
}

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
	// The connection of an owner whose heartbeat stands still for ownerDeadAfter, while a
	// process that waits looks at it all the time, is cut: the owner is frozen or its host has
	// vanished.
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

// candidate is a process that waits to be the owner, and what it saw of the one that is. For
// how long is measured by this machine's monotonic clock: the database's may be set.
type candidate struct {
	conn  *pgx.Conn     // nil: none
	dead  time.Duration // ownerDeadAfter
	epoch int64         // the owner's
	beat  time.Time     // its last heartbeat: a mark, which is compared with itself only
	heard time.Time     // when that was first seen
	asked time.Time     // when it was last looked for
}

// drop closes the connection.
func (c *candidate) drop(ctx context.Context) {
	if c.conn != nil {
		closeConn(ctx, c.conn)
		c.conn = nil
	}
}

// acquire waits until this process is the owner and returns its lease, which has begun;
// nil when ctx ends.
func (d *deliverer) acquire(ctx context.Context) *lease {
	c := candidate{dead: d.opts.ownerDeadAfter}
	defer func() { c.drop(ctx) }()
	// The last owner asks more often than others: it still has in memory which calls
	// were made while the database was away.
	trouble, pause := false, acquireEvery
	if d.term > 0 {
		pause = acquireEvery / 5
	}
	for {
		t, err := d.tryAcquire(ctx, &c)
		if t != nil {
			c.conn = nil // it is the lease's
			return t
		}
		if ctx.Err() != nil {
			return nil
		}
		d.logOutage(&trouble, err)
		if err == nil {
			pause = acquireEvery
		} else {
			c.drop(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// tryAcquire asks for the lock, connecting first where there is no connection, and begins
// the lease.
func (d *deliverer) tryAcquire(ctx context.Context, c *candidate) (*lease, error) {
	var err error
	if c.conn == nil {
		if c.conn, err = postgres.Connect(ctx, d.owners, heartbeatTimeout); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	defer cancel()
	var mine bool
	if err := c.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock(`+ownerLock+`)`).Scan(&mine); err != nil {
		return nil, fmt.Errorf("taking the lock of the webhook owner: %w", err)
	}
	if !mine {
		return nil, d.cutDeadOwner(ctx, c)
	}
	d.leasing.Lock()
	defer d.leasing.Unlock()
	t, err := beginLease(ctx, c.conn)
	if err != nil {
		return nil, err
	}
	d.takeOver(context.WithoutCancel(ctx), t)
	return t, nil
}

// beginLease makes the holder of the lock the owner.
func beginLease(ctx context.Context, conn *pgx.Conn) (*lease, error) {
	t := &lease{conn: conn, lost: make(chan struct{}), gone: make(chan struct{})}
	err := conn.QueryRow(ctx, `UPDATE webhook_owner SET epoch = epoch + 1, beat = now()
		RETURNING epoch, read, (SELECT coalesce(max(seq), 0) FROM webhook_deliveries)`).Scan(&t.epoch, &t.read, &t.head)
	if err != nil {
		return nil, fmt.Errorf("starting the lease of the webhook owner: %w", err)
	}
	// Heartbeats need not survive a crash of the server: the next one follows within a second.
	if _, err := conn.Exec(ctx, `SET synchronous_commit = off`); err != nil {
		return nil, fmt.Errorf("starting the lease of the webhook owner: %w", err)
	}
	t.beat.Store(int64(time.Since(processStart)))
	return t, nil
}

// cutDeadOwner cuts the connection of an owner whose heartbeat stands still for ownerDeadAfter.
// A process that did not look for a while begins to count anew: what kept it from it may have
// kept the owner from its heartbeat.
func (d *deliverer) cutDeadOwner(ctx context.Context, c *candidate) error {
	asked := time.Now()
	var epoch int64
	var beat time.Time
	if err := c.conn.QueryRow(ctx, `SELECT epoch, beat FROM webhook_owner`).Scan(&epoch, &beat); err != nil {
		return fmt.Errorf("looking at the webhook owner: %w", err)
	}
	if epoch != c.epoch || !beat.Equal(c.beat) || asked.Sub(c.asked) > c.dead/2 {
		c.epoch, c.beat, c.heard = epoch, beat, time.Now()
	}
	if c.asked = asked; asked.Sub(c.heard) < c.dead {
		return nil
	}
	tag, err := c.conn.Exec(ctx, `
		SELECT pg_terminate_backend(l.pid) FROM webhook_owner o, pg_locks l
		WHERE o.epoch = $1 AND o.beat = $2 AND l.locktype = 'advisory' AND l.granted
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND (l.classid, l.objid) = (`+ownerLock+`) AND l.objsubid = 2`, epoch, beat)
	if err != nil {
		return fmt.Errorf("cutting off a dead webhook owner: %w", err)
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

package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// seatLock is the first key of the advisory locks of seats; the second is the
// dispatcher's id.
const seatLock = 0x64697370

const (
	seatPulse    = 2 * time.Second       // silence after which the connection is tried
	seatPatience = 2 * time.Second       // of connecting, and of an answer
	seatPause    = 50 * time.Millisecond // before connecting again
)

// seat is a session of the database that does nothing but hold a lock: the
// server takes the lock back the moment that the process is gone, and the others
// see that this dispatcher is dead without waiting for its silence to grow long.
// A connection that is lost while the process lives is made again at once; until
// the lock is back nothing is submitted.
type seat struct {
	d    *Dispatcher
	id   int64
	conn *pgx.Conn
	held atomic.Bool
	back atomic.Int64 // Unix time in ns at which a lost lock was had again; 0: it never was lost
	end  context.CancelFunc
	done chan struct{}
}

// takeSeat makes a new seat among the dispatchers: its lock is held before anybody
// can see its row.
func (d *Dispatcher) takeSeat(ctx context.Context) (*seat, error) {
	s := &seat{d: d, done: make(chan struct{})}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	holding, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	ctx, cancel := context.WithTimeout(ctx, seatPatience)
	defer cancel()
	err := s.conn.QueryRow(ctx, `SELECT nextval(pg_get_serial_sequence('dispatchers', 'id'))`).Scan(&s.id)
	if err == nil {
		err = s.lock(ctx)
	}
	if err == nil {
		_, err = s.conn.Exec(ctx, `INSERT INTO dispatchers (id, name, session) OVERRIDING SYSTEM VALUE VALUES ($1, $2, true)`, s.id, identity())
	}
	if err != nil {
		end()
		_ = closeQuietly(s.conn) // the first error says more
		return nil, fmt.Errorf("taking a seat: %w", err)
	}
	go s.hold(holding)
	return s, nil
}

// connect tries every host of the URL in turn, each for seatPatience.
func (s *seat) connect(ctx context.Context) (err error) {
	config := s.d.pool.Config().ConnConfig.Copy()
	config.ConnectTimeout = seatPatience
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+len(config.Fallbacks))*seatPatience)
	defer cancel()
	if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	return nil
}

// seatLocks are the rows of pg_locks that are seats' whose first key is $1.
const seatLocks = `locktype = 'advisory' AND granted AND classid = $1::int AND objsubid = 2
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

var errSeatTaken = errors.New("somebody else has the lock of this dispatcher's seat")

func (s *seat) lock(ctx context.Context) error {
	var mine bool
	if err := s.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, seatLock, int32(s.id)).Scan(&mine); err != nil {
		return fmt.Errorf("locking: %w", err)
	}
	if !mine { // the server has not noticed yet that our last session ended
		if _, err := s.conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE `+seatLocks+` AND objid::bigint = $2::bigint & 4294967295`, seatLock, s.id); err != nil {
			return fmt.Errorf("ending the session that had the lock: %w", err)
		}
		return errSeatTaken
	}
	s.held.Store(true)
	return nil
}

// hold keeps the lock until the seat is given up.
func (s *seat) hold(ctx context.Context) {
	defer close(s.done)
	for {
		err := s.watch(ctx)
		s.held.Store(false)
		_ = closeQuietly(s.conn)
		if ctx.Err() != nil {
			return
		}
		s.d.log.Warn("the session that says that this dispatcher lives was lost; links submit nothing until it is back", "error", err)
		for s.regain(ctx) != nil {
			if sleep(ctx, seatPause) != nil {
				return
			}
		}
		s.back.Store(time.Now().UnixNano())
		s.d.log.Info("the session that says that this dispatcher lives is back")
	}
}

func (s *seat) regain(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, seatPatience)
	defer cancel()
	if err := s.lock(ctx); err != nil {
		_ = closeQuietly(s.conn)
		return err
	}
	return nil
}

// unseen notes that the others' absence says nothing: this server does not see our
// own lock, so it is not the one that the seats are at.
func (s *seat) unseen() { s.back.Store(time.Now().UnixNano()) }

// settled tells whether the lock has been held for long enough that the others,
// had they lost theirs together with it, would have it back.
func (s *seat) settled() bool {
	return s.held.Load() && time.Since(time.Unix(0, s.back.Load())) >= s.d.opts.DeadAfter
}

// watch returns when the connection is lost or ctx ends.
func (s *seat) watch(ctx context.Context) error {
	for {
		quiet, cancel := context.WithTimeout(ctx, seatPulse)
		_, err := s.conn.WaitForNotification(quiet) // there are none: it waits for the connection's end
		over := quiet.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !over:
			return err
		}
		answer, cancel := context.WithTimeout(ctx, seatPatience)
		err = s.conn.Ping(answer)
		cancel()
		if err != nil {
			return fmt.Errorf("the server is silent: %w", err)
		}
	}
}

// leave gives the seat up. The caller has taken its row off the list.
func (s *seat) leave() {
	s.end()
	<-s.done
}

func closeQuietly(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), seatPatience)
	defer cancel()
	return conn.Close(ctx)
}

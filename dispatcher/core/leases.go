package core

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
)

// The names of leases.
const (
	RecoveryLease     = "recovery"
	HousekeepingLease = "housekeeping"
	LinkLease         = "link " // and the link's name
)

// Leased selects links that a dispatcher holds.
const Leased = `EXISTS (SELECT FROM leases WHERE leases.name = '` + LinkLease + `' || links.name)`

// Leases holds this process's leases. A process has one row in dispatchers while it lives, and
// one row in leases for each exclusive right: to a link, to a round of recovery or housekeeping. A lease ends when
// its holder resigns it, or with its holder's row.
//
// A process renews its row twice a heartbeat, and reads the rows of the others in the same
// statement. It removes a row that was not renewed for DeadAfter. The row's time is compared
// only with itself: each process measures with its own monotonic clock from when it first saw
// that time, so a step of PostgreSQL's clock ends no process.
//
// A process whose last renewal is older than three quarters of DeadAfter is not fresh. It
// unbinds (links.Worker.Yield) and ends its round of tasks before another may take its leases. It
// stops submitting an eighth of DeadAfter earlier, so that answers come before it unbinds.
//
// The id is a fence: a process whose row was removed registers under a new id, and its writes
// under the old id change nothing. It is a random number: a sequence could issue a number again
// after an asynchronous standby was promoted, and two processes would renew one row.
type Leases struct {
	Pool *pgxpool.Pool
	Log  *slog.Logger
	Opts *setup.Options
	Gone func() // called when another dispatcher's row is gone; it must not block

	ID    atomic.Int64
	Beat  atomic.Int64 // when the last successful renewal was sent, as time since ProcessStart
	Heard atomic.Int64 // when renewals began to succeed again, likewise

	Others map[int64]Sight                 // only keep uses it
	Wanted atomic.Pointer[map[string]bool] // links that another dispatcher would take
}

// Sight is the last renewal of another dispatcher that this process has seen.
type Sight struct {
	Mark  time.Time
	Since time.Duration // when it was first seen, as time since ProcessStart
}

// ProcessStart is the origin of times that goroutines share. They use the monotonic clock,
// because the wall clock may be set.
var ProcessStart = time.Now()

// NewLeases returns the leases of a process that is not registered yet.
func NewLeases(pool *pgxpool.Pool, log *slog.Logger, opts *setup.Options) *Leases {
	l := &Leases{Pool: pool, Log: log, Opts: opts, Gone: func() {}, Others: make(map[int64]Sight)}
	l.registered(0, time.Since(ProcessStart))
	return l
}

func (l *Leases) registered(id int64, at time.Duration) {
	l.ID.Store(id)
	l.Beat.Store(int64(at))
	l.Heard.Store(int64(at))
	l.Wanted.Store(&map[string]bool{})
}

// Fresh reports whether this process still has its leases: no other can have removed its row.
func (l *Leases) Fresh() bool { return l.freshAt(time.Since(ProcessStart)) }

func (l *Leases) freshAt(now time.Duration) bool {
	return now-time.Duration(l.Beat.Load()) < l.Opts.DeadAfter*3/4
}

// Submits reports whether this process may start to submit a segment.
func (l *Leases) Submits() bool {
	return time.Since(ProcessStart)-time.Duration(l.Beat.Load()) < l.Opts.DeadAfter*5/8
}

// BindingFor is how long this process has been able to hold binds.
func (l *Leases) BindingFor() time.Duration {
	return time.Since(ProcessStart) - time.Duration(l.Heard.Load())
}

// WhileFresh returns a context that ends when this process may have lost its leases.
func (l *Leases) WhileFresh(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	id := l.ID.Load()
	go func() {
		for l.Fresh() && l.ID.Load() == id && Sleep(ctx, freshCheck) == nil {
		}
		cancel(errSilent)
	}()
	return ctx, func() { cancel(nil) }
}

const freshCheck = 100 * time.Millisecond

// Why a process no longer has its leases.
var (
	errSilent   = errors.New("the database has not heard of this dispatcher for so long that another may do its work")
	ErrReplaced = errors.New("this dispatcher was taken for dead")
)

// Register adds this process to the dispatchers under a new id. It retries with another until it
// succeeds, and returns an error if ctx ends first.
func (l *Leases) Register(ctx context.Context) error {
	for {
		sent := time.Since(ProcessStart)
		id := NewID()
		_, err := l.Pool.Exec(ctx, `INSERT INTO dispatchers (id, name) VALUES ($1, $2)`, id, identity())
		if err == nil {
			l.registered(id, sent)
			return nil
		}
		l.Log.Error("registering this dispatcher fails; retrying", "event", "dispatcher_not_registered", "error", err)
		if ended := Sleep(ctx, l.Opts.Heartbeat); ended != nil {
			return fmt.Errorf("registering this dispatcher: %w", errors.Join(ended, err))
		}
	}
}

// NewID returns a random positive number.
func NewID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return max(int64(binary.BigEndian.Uint64(b[:])>>1), 1)
}

// Keep renews until ctx ends or this process is replaced.
func (l *Leases) Keep(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	Repeat(ctx, l.Log, "renewing the leases", l.Opts.Heartbeat/2, nil, func(ctx context.Context) error {
		err := l.Renew(ctx)
		if errors.Is(err, ErrReplaced) {
			cancel()
		}
		return err
	})
}

// Listed is another dispatcher's row, or this one's.
type Listed struct {
	ID     int64
	Mark   time.Time
	Wanted []string // links
}

// Renew renews this process's row, and removes the rows of the dead.
func (l *Leases) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Opts.DeadAfter/2)
	defer cancel()
	me, sent := l.ID.Load(), time.Since(ProcessStart)
	list, err := postgres.All(ctx, l.Pool, "renewing the row of this dispatcher", pgx.RowToStructByPos[Listed],
		`WITH mine AS (UPDATE dispatchers SET seen_at = clock_timestamp() WHERE id = $1 RETURNING id, seen_at)
		SELECT id, seen_at, ARRAY(SELECT unnest(links) EXCEPT SELECT unnest(given_up)) FROM dispatchers WHERE id <> $1
		UNION ALL SELECT id, seen_at, '{}' FROM mine`, me)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(list, func(d Listed) bool { return d.ID == me })
	if len(others) == len(list) {
		l.Beat.Store(int64(sent - l.Opts.DeadAfter)) // not fresh
		return ErrReplaced
	}
	// If this process could not renew, perhaps the others could not either.
	deaf := sent-time.Duration(l.Beat.Load()) > l.Opts.DeadAfter/2
	if !l.freshAt(sent) {
		l.Heard.Store(int64(sent))
	}
	l.Beat.Store(int64(sent))
	return l.Look(ctx, others, sent, deaf)
}

// Look records the renewals of the others and removes the dead. asked is when the query was
// sent; deaf means that this process could not look for a while.
func (l *Leases) Look(ctx context.Context, others []Listed, asked time.Duration, deaf bool) error {
	seen, wanted := make(map[int64]Sight, len(others)), make(map[string]bool)
	var dead []int64
	var marks []time.Time
	for _, d := range others {
		s, known := l.Others[d.ID]
		if !known || deaf || !s.Mark.Equal(d.Mark) {
			s = Sight{d.Mark, time.Since(ProcessStart)}
		}
		if seen[d.ID] = s; asked-s.Since >= l.Opts.DeadAfter {
			dead, marks = append(dead, d.ID), append(marks, d.Mark)
		}
		for _, link := range d.Wanted {
			wanted[link] = true
		}
	}
	gone := false
	for id := range l.Others {
		_, there := seen[id]
		gone = gone || !there
	}
	l.Others = seen
	l.Wanted.Store(&wanted)
	if len(dead) > 0 {
		// A dispatcher that has renewed since stays.
		tag, err := l.Pool.Exec(ctx, `DELETE FROM dispatchers d USING unnest($1::bigint[], $2::timestamptz[]) u(id, mark)
			WHERE d.id = u.id AND d.seen_at = u.mark`, dead, marks)
		if err != nil {
			return fmt.Errorf("removing dead dispatchers: %w", err)
		}
		if n := tag.RowsAffected(); n > 0 {
			gone = true
			l.Log.Warn("a dispatcher died; its claims are freed", "event", "dispatcher_died", "dispatchers", n)
		}
	}
	if gone {
		l.Gone()
	}
	return nil
}

// Acquire takes the free leases among names, and returns those that this process has.
func (l *Leases) Acquire(ctx context.Context, names ...string) ([]string, error) {
	return postgres.All(ctx, l.Pool, "acquiring leases", pgx.RowTo[string],
		`WITH taken AS (INSERT INTO leases (name, holder) SELECT name, $1 FROM unnest($2::text[]) name ORDER BY name
			ON CONFLICT DO NOTHING RETURNING name)
		SELECT name FROM taken UNION ALL SELECT name FROM leases WHERE holder = $1 AND name = ANY($2)`, l.ID.Load(), names)
}

// resignWithin bounds giving leases up at the end of a round or of the process.
const resignWithin = 2 * time.Second

// Resign gives a lease up. If the statement fails, this process keeps the lease.
func (l *Leases) Resign(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignWithin)
	defer cancel()
	if _, err := l.Pool.Exec(ctx, `DELETE FROM leases WHERE name = $1 AND holder = $2`, name, l.ID.Load()); err != nil {
		l.Log.Debug("giving a lease up", "lease", name, "error", err)
	}
}

// Leave deletes this process's row, and with it all its leases.
func (l *Leases) Leave() {
	ctx, cancel := context.WithTimeout(context.Background(), resignWithin)
	defer cancel()
	if _, err := l.Pool.Exec(ctx, `DELETE FROM dispatchers WHERE id = $1`, l.ID.Load()); err != nil {
		l.Log.Warn("could not sign off from the database; other dispatchers notice it in a few seconds", "event",
			"dispatcher_not_signed_off", "error", err)
	}
}

// identity is this process's name for operators.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// Alive returns how many dispatchers work on the database now, by recently renewed rows. The
// rows of a restored backup are older.
func Alive(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM dispatchers WHERE seen_at BETWEEN now() - $1::interval
		AND now() + $1::interval`, setup.DeadAfter).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting the dispatchers: %w", err)
	}
	return n, nil
}

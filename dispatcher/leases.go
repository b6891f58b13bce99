package dispatcher

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

	"intumwa/internal/postgres"
)

// The names of leases.
const (
	recoveryLease     = "recovery"
	housekeepingLease = "housekeeping"
	linkLease         = "link " // and the link's name
)

// leased selects links that a dispatcher holds.
const leased = `EXISTS (SELECT FROM leases WHERE leases.name = '` + linkLease + `' || links.name)`

// leases holds this process's leases. A process has one row in dispatchers while it lives, and
// one row in leases for each exclusive right: to a link, to a round of recovery or housekeeping. A lease ends when
// its holder resigns it, or with its holder's row.
//
// A process renews its row twice a heartbeat, and reads the rows of the others in the same
// statement. It removes a row that was not renewed for DeadAfter. The row's time is compared
// only with itself: each process measures with its own monotonic clock from when it first saw
// that time, so a step of PostgreSQL's clock ends no process.
//
// A process whose last renewal is older than three quarters of DeadAfter is not fresh. It
// unbinds (linkWorker.yield) and ends its round of tasks before another may take its leases. It
// stops submitting an eighth of DeadAfter earlier, so that answers come before it unbinds.
//
// The id is a fence: a process whose row was removed registers under a new id, and its writes
// under the old id change nothing. It is a random number: a sequence could issue a number again
// after an asynchronous standby was promoted, and two processes would renew one row.
type leases struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	opts *Options
	gone func() // called when another dispatcher's row is gone; it must not block

	id    atomic.Int64
	beat  atomic.Int64 // when the last successful renewal was sent, as time since processStart
	heard atomic.Int64 // when renewals began to succeed again, likewise

	others map[int64]sight                 // only keep uses it
	wanted atomic.Pointer[map[string]bool] // links that another dispatcher would take
}

// sight is the last renewal of another dispatcher that this process has seen.
type sight struct {
	mark  time.Time
	since time.Duration // when it was first seen, as time since processStart
}

// processStart is the origin of times that goroutines share. They use the monotonic clock,
// because the wall clock may be set.
var processStart = time.Now()

// newLeases returns the leases of a process that is not registered yet.
func newLeases(pool *pgxpool.Pool, log *slog.Logger, opts *Options) *leases {
	l := &leases{pool: pool, log: log, opts: opts, gone: func() {}, others: make(map[int64]sight)}
	l.registered(0, time.Since(processStart))
	return l
}

func (l *leases) registered(id int64, at time.Duration) {
	l.id.Store(id)
	l.beat.Store(int64(at))
	l.heard.Store(int64(at))
	l.wanted.Store(&map[string]bool{})
}

// fresh reports whether this process still has its leases: no other can have removed its row.
func (l *leases) fresh() bool { return l.freshAt(time.Since(processStart)) }

func (l *leases) freshAt(now time.Duration) bool {
	return now-time.Duration(l.beat.Load()) < l.opts.DeadAfter*3/4
}

// submits reports whether this process may start to submit a segment.
func (l *leases) submits() bool {
	return time.Since(processStart)-time.Duration(l.beat.Load()) < l.opts.DeadAfter*5/8
}

// bindingFor is how long this process has been able to hold binds.
func (l *leases) bindingFor() time.Duration {
	return time.Since(processStart) - time.Duration(l.heard.Load())
}

// whileFresh returns a context that ends when this process may have lost its leases.
func (l *leases) whileFresh(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	id := l.id.Load()
	go func() {
		for l.fresh() && l.id.Load() == id && sleep(ctx, freshCheck) == nil {
		}
		cancel(errSilent)
	}()
	return ctx, func() { cancel(nil) }
}

const freshCheck = 100 * time.Millisecond

var (
	errSilent   = errors.New("the database has not heard of this dispatcher for so long that another may do its work")
	errReplaced = errors.New("this dispatcher was taken for dead")
)

// register adds this process to the dispatchers under a new id. It retries with another until it
// succeeds, and returns an error if ctx ends first.
func (l *leases) register(ctx context.Context) error {
	for {
		sent := time.Since(processStart)
		id := newID()
		_, err := l.pool.Exec(ctx, `INSERT INTO dispatchers (id, name) VALUES ($1, $2)`, id, identity())
		if err == nil {
			l.registered(id, sent)
			return nil
		}
		l.log.Error("registering this dispatcher fails; retrying", "event", "dispatcher_not_registered", "error", err)
		if ended := sleep(ctx, l.opts.Heartbeat); ended != nil {
			return fmt.Errorf("registering this dispatcher: %w", errors.Join(ended, err))
		}
	}
}

// newID returns a random positive number.
func newID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return max(int64(binary.BigEndian.Uint64(b[:])>>1), 1)
}

// keep renews until ctx ends or this process is replaced.
func (l *leases) keep(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	repeat(ctx, l.log, "renewing the leases", l.opts.Heartbeat/2, nil, func(ctx context.Context) error {
		err := l.renew(ctx)
		if errors.Is(err, errReplaced) {
			cancel()
		}
		return err
	})
}

// listed is another dispatcher's row, or this one's.
type listed struct {
	ID     int64
	Mark   time.Time
	Wanted []string // links
}

// renew renews this process's row, and removes the rows of the dead.
func (l *leases) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.opts.DeadAfter/2)
	defer cancel()
	me, sent := l.id.Load(), time.Since(processStart)
	list, err := postgres.All(ctx, l.pool, "renewing the row of this dispatcher", pgx.RowToStructByPos[listed], `WITH mine AS (UPDATE dispatchers SET seen_at = clock_timestamp() WHERE id = $1 RETURNING id, seen_at)
		SELECT id, seen_at, ARRAY(SELECT unnest(links) EXCEPT SELECT unnest(given_up)) FROM dispatchers WHERE id <> $1
		UNION ALL SELECT id, seen_at, '{}' FROM mine`, me)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(list, func(d listed) bool { return d.ID == me })
	if len(others) == len(list) {
		l.beat.Store(int64(sent - l.opts.DeadAfter)) // not fresh
		return errReplaced
	}
	// If this process could not renew, perhaps the others could not either.
	deaf := sent-time.Duration(l.beat.Load()) > l.opts.DeadAfter/2
	if !l.freshAt(sent) {
		l.heard.Store(int64(sent))
	}
	l.beat.Store(int64(sent))
	return l.look(ctx, others, sent, deaf)
}

// look records the renewals of the others and removes the dead. asked is when the query was
// sent; deaf means that this process could not look for a while.
func (l *leases) look(ctx context.Context, others []listed, asked time.Duration, deaf bool) error {
	seen, wanted := make(map[int64]sight, len(others)), make(map[string]bool)
	var dead []int64
	var marks []time.Time
	for _, d := range others {
		s, known := l.others[d.ID]
		if !known || deaf || !s.mark.Equal(d.Mark) {
			s = sight{d.Mark, time.Since(processStart)}
		}
		if seen[d.ID] = s; asked-s.since >= l.opts.DeadAfter {
			dead, marks = append(dead, d.ID), append(marks, d.Mark)
		}
		for _, link := range d.Wanted {
			wanted[link] = true
		}
	}
	gone := false
	for id := range l.others {
		_, there := seen[id]
		gone = gone || !there
	}
	l.others = seen
	l.wanted.Store(&wanted)
	if len(dead) > 0 {
		// A dispatcher that has renewed since stays.
		tag, err := l.pool.Exec(ctx, `DELETE FROM dispatchers d USING unnest($1::bigint[], $2::timestamptz[]) u(id, mark)
			WHERE d.id = u.id AND d.seen_at = u.mark`, dead, marks)
		if err != nil {
			return fmt.Errorf("removing dead dispatchers: %w", err)
		}
		if n := tag.RowsAffected(); n > 0 {
			gone = true
			l.log.Warn("a dispatcher died; its claims are freed", "event", "dispatcher_died", "dispatchers", n)
		}
	}
	if gone {
		l.gone()
	}
	return nil
}

// acquire takes the free leases among names, and returns those that this process has.
func (l *leases) acquire(ctx context.Context, names ...string) ([]string, error) {
	return postgres.All(ctx, l.pool, "acquiring leases", pgx.RowTo[string], `WITH taken AS (INSERT INTO leases (name, holder) SELECT name, $1 FROM unnest($2::text[]) name ORDER BY name
			ON CONFLICT DO NOTHING RETURNING name)
		SELECT name FROM taken UNION ALL SELECT name FROM leases WHERE holder = $1 AND name = ANY($2)`, l.id.Load(), names)
}

// resignWithin bounds giving leases up at the end of a round or of the process.
const resignWithin = 2 * time.Second

// resign gives a lease up. If the statement fails, this process keeps the lease.
func (l *leases) resign(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignWithin)
	defer cancel()
	if _, err := l.pool.Exec(ctx, `DELETE FROM leases WHERE name = $1 AND holder = $2`, name, l.id.Load()); err != nil {
		l.log.Debug("giving a lease up", "lease", name, "error", err)
	}
}

// leave deletes this process's row, and with it all its leases.
func (l *leases) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), resignWithin)
	defer cancel()
	if _, err := l.pool.Exec(ctx, `DELETE FROM dispatchers WHERE id = $1`, l.id.Load()); err != nil {
		l.log.Warn("could not sign off from the database; other dispatchers notice it in a few seconds", "event", "dispatcher_not_signed_off", "error", err)
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
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM dispatchers WHERE seen_at BETWEEN now() - $1::interval AND now() + $1::interval`, deadAfter).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting the dispatchers: %w", err)
	}
	return n, nil
}

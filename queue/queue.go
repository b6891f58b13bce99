// Package queue holds what is to be sent next, between intake and dispatcher, in
// Redis streams. It carries ids, never bodies or numbers. Postgres is
// the truth; the queue only says in which order and by whom, and may be emptied
// at any moment.
//
// # Lanes and turns
//
// Every carrier has two lanes: Single for messages that were sent alone, Batch
// for those of bulk and template sends. The single lane is one stream. The
// batch lane is a stream per company and a ring of the companies that have
// something waiting; Take goes round the ring and reads an even share from
// each, so that one company's hundred thousand recipients do not hold up
// another's fifty, while each company's own order is kept.
//
// A lane has a bell, a list that holds a token whenever somebody waits in the
// ring. Whoever finds nothing blocks on the bell, not on streams.
//
// # What may go wrong
//
// Every change is one script on keys of one slot, so the streams, the ring and
// the bell cannot contradict each other, and a push cannot slip between the
// moment a company is found empty and the moment it leaves the ring.
//
//   - Push fails or its answer is lost: the items are on the queue, or some are,
//     or none. Postgres still has them; pushing again is harmless, because
//     whoever takes an entry claims its row first and only one claim wins.
//   - A taker dies, or the answer of Take is lost on its way: the entries stay
//     pending under its name until Reclaim gives them to another.
//   - The taker was only slow: it and the reclaimer both hold the entry. The
//     claim in Postgres decides; Done by either removes it.
//   - Done fails: the entry is reclaimed later, its claim fails, and
//     it is removed.
//   - A waiter dies with the token in its hand: the others wake when their own
//     wait ends or at the next push, whichever is first.
//   - Redis is full: Push fails, Take and Done go on.
//   - One of the keys is overwritten with another type: the call that comes upon
//     it logs and deletes the key, and is made again (repair.go).
//   - Redis answers and cannot be written to, loses what it was given, answers
//     too late or nonsense: the call that meets it fails with an error whose fault
//     FaultOf tells; Probe finds out without a message. Whoever takes does without
//     the queue then.
//   - FLUSHALL, a fail-over that loses writes, eviction, a deleted group: Take
//     waits on an empty bell, as on any quiet day. The next Push makes stream,
//     group, ring and bell anew. What was lost shows in Watermarks, and the dispatcher
//     pushes it again. A group is always made at 0, so nothing that is in a
//     stream is skipped.
//
// Nothing is trimmed (no MAXLEN): an entry leaves a stream by Done alone, so a
// stream holds exactly what waits and what is pending. A company's stream is
// deleted with its last entry.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lane is one of the two streams of messages that a carrier has.
type Lane uint8

const (
	Single Lane = iota // messages sent alone; one order for all companies
	Batch              // messages of bulk and template sends; companies take turns
)

// String names the lane as it stands in keys and metrics.
func (l Lane) String() string {
	if l == Batch {
		return "batch"
	}
	return "single"
}

// Item is a message to be carried.
type Item struct {
	MessageID int64
	CompanyID int64
	Carrier   string
	Lane      Lane
}

// Entry is an item in the hands of a consumer, until Done.
type Entry struct {
	Item
	// ID names the entry within its carrier and lane, for Done. Opaque: it names
	// the stream and the place in it.
	ID string
}

// Options of a queue.
type Options struct {
	// Prefix begins every key, so that installations can share a server.
	Prefix string
	// Waiting is the client whose connections wait for the bell, one for each
	// Take or Wait that blocks. Nil means the client given to New, whose pool must
	// then be larger than the number of waiters, or they starve everything else.
	// Both clients must have ContextTimeoutEnabled, or a server that stands still
	// holds a call for as long as the client's own timeouts let it.
	Waiting redis.UniversalClient
	// Patience is how long the server may take for a call, besides the time that
	// the call is told to wait and what very many items need; default 1 s.
	Patience time.Duration
	// Log gets a line for each key of another type that was deleted; nil: none.
	Log *slog.Logger
}

// Queue is safe for concurrent use. It starts nothing, and its clients are the
// caller's to close.
type Queue struct {
	rdb      redis.UniversalClient
	waiting  redis.UniversalClient
	prefix   string
	patience time.Duration
	log      *slog.Logger
	name     string        // of this queue among all, for its probes
	forget   time.Duration // how long a consumer without pending entries is remembered
	waits    *waits

	mu       sync.Mutex
	repaired map[string]time.Time // when each lane was, by its ring's key
	canaries map[string]*canary   // by carrier
}

// New makes a queue on a server, a sentinel group or a cluster.
func New(rdb redis.UniversalClient, options Options) *Queue {
	waiting := options.Waiting
	if waiting == nil {
		waiting = rdb
	}
	log := options.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Queue{rdb: rdb, waiting: waiting, prefix: options.Prefix, patience: cmp.Or(options.Patience, time.Second), log: log,
		name: ownName(), forget: deadConsumer, waits: newWaits(), repaired: make(map[string]time.Time), canaries: make(map[string]*canary)}
}

// Now returns the clock of Redis, which also stamps the entries. In a cluster
// it is the clock of some node.
func (q *Queue) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	now, err := q.rdb.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("asking redis for the time: %w", err)
	}
	return now, nil
}

// Wait blocks until something may be waiting in one of the lanes, at most for
// block (rounded up to whole seconds, at least one). It returns whether the bell rang; when
// it did, the caller is expected to Take. When ctx ends it returns at once; a
// token that comes for it after that is handed back (Quiet waits for that).
func (q *Queue) Wait(ctx context.Context, carrier string, block time.Duration, lanes ...Lane) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	type ending struct {
		bell string
		err  error
	}
	ended, left := make(chan ending), make(chan struct{})
	number := q.waits.begin()
	go func() {
		defer q.waits.end(number)
		bell, err := q.listen(context.WithoutCancel(ctx), carrier, wholeSeconds(block), lanes)
		select {
		case ended <- ending{bell, err}:
		case <-left:
			if bell != "" { // nobody will take
				q.handBack(context.WithoutCancel(ctx), bell)
			}
		}
	}()
	select {
	case end := <-ended:
		return end.bell != "", end.err
	case <-ctx.Done():
		close(left)
		return false, ctx.Err()
	}
}

// Quiet waits until nothing is left of calls of Wait, Take and Probe that have
// returned because their context ended: as long as they would have blocked. It
// does not wait for calls that begin after it, which are another dispatcher's.
func (q *Queue) Quiet() { q.waits.over() }

// waits are those who listen for a bell, numbered.
type waits struct {
	mu      sync.Mutex
	last    uint64
	running map[uint64]struct{}
	ended   *sync.Cond
}

func newWaits() *waits {
	w := &waits{running: make(map[uint64]struct{})}
	w.ended = sync.NewCond(&w.mu)
	return w
}

func (w *waits) begin() (number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	w.running[w.last] = struct{}{}
	return w.last
}

func (w *waits) end(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, number)
	w.ended.Broadcast()
}

// over waits until those have ended that have begun by now.
func (w *waits) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for last := w.last; slices.ContainsFunc(slices.Collect(maps.Keys(w.running)), func(n uint64) bool { return n <= last }); {
		w.ended.Wait()
	}
}

// listen waits for the bell and returns the key of the one that rang.
func (q *Queue) listen(ctx context.Context, carrier string, block time.Duration, lanes []Lane) (string, error) {
	bells := make([]string, len(lanes))
	for i, lane := range lanes {
		bells[i] = q.bellKey(carrier, lane)
	}
	for again := true; ; again = false {
		limited, cancel := context.WithTimeout(ctx, block+q.patience/2)
		rung, err := q.waiting.BLPop(limited, block, bells...).Result()
		cancel()
		switch {
		case errors.Is(err, redis.Nil):
			return "", nil
		case err != nil && again && FaultOf(err) == WrongType:
			for _, lane := range lanes {
				q.repair(ctx, carrier, lane)
			}
			continue
		case err != nil:
			return "", fmt.Errorf("waiting at %s: %w", carrier, err)
		case len(rung) == 0:
			return "", &FaultError{Garbled, "waiting at " + carrier + ": an answer without a key"}
		}
		return rung[0], nil
	}
}

// handBack returns a token that nobody will use. One too many only wakes
// a waiter for nothing, one too few is made up for by the next push or the end of
// the others' waits.
func (q *Queue) handBack(ctx context.Context, bell string) {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	_ = q.rdb.RPush(ctx, bell, 1).Err()
}

// wholeSeconds rounds up: BLPOP of older servers knows no fractions.
func wholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// Package queue is the belt between intake and dispatcher: what is to be sent
// next, in Redis streams. It carries ids, never bodies or numbers. Postgres is
// the truth; the belt only says in which order and by whom, and may be emptied
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
//   - Push fails or its answer is lost: the items are on the belt, or some are,
//     or none. Postgres still has them; pushing again is harmless, because
//     whoever takes an entry claims its row first and only one claim wins.
//   - A taker dies, or the answer of Take is lost on its way: the entries stay
//     pending under its name until Reclaim gives them to another.
//   - The taker was only slow: it and the reclaimer both hold the entry. The
//     claim in Postgres decides; Done by either removes it.
//   - Done fails: the entry is reclaimed later, its claim fails, it is done
//     away with.
//   - A waiter dies with the token in its hand: the others wake when their own
//     wait ends or at the next push, whichever is first.
//   - Redis is full: Push fails, Take and Done go on.
//   - FLUSHALL, a fail-over that loses writes, eviction, a deleted group: Take
//     waits on an empty bell, as on any quiet day. The next Push makes stream,
//     group, ring and bell anew. What was lost shows in Marks, and the relay
//     pushes it again. A group is always made at 0, so nothing that is in a
//     stream is skipped.
//
// Nothing is trimmed (no MAXLEN): an entry leaves a stream by Done alone, so a
// stream holds exactly what waits and what is pending. A company's stream is
// deleted with its last entry.
package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lane is one of a carrier's two ways.
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
	// ID names the entry within its carrier and lane, for Done. Opaque: it tells
	// the stream as well as the place in it.
	ID string
}

// Options of a belt.
type Options struct {
	// Prefix begins every key, so that installations can share a server.
	Prefix string
	// Waiting is the client whose connections wait for the bell, one for each
	// Take or Wait that blocks. Nil means the client given to New, whose pool must
	// then be larger than the number of waiters, or they starve everything else.
	Waiting redis.UniversalClient
}

// Belt is safe for concurrent use. It starts nothing and owns nothing: its
// clients are the caller's to close.
type Belt struct {
	rdb     redis.UniversalClient
	waiting redis.UniversalClient
	prefix  string
	forget  time.Duration // how long a consumer without pending entries is remembered
}

// New makes a belt on a server, a sentinel group or a cluster.
func New(rdb redis.UniversalClient, options Options) *Belt {
	waiting := options.Waiting
	if waiting == nil {
		waiting = rdb
	}
	return &Belt{rdb: rdb, waiting: waiting, prefix: options.Prefix, forget: deadConsumer}
}

// Now answers the clock of Redis, which also stamps the entries. In a cluster
// it is the clock of some node.
func (b *Belt) Now(ctx context.Context) (time.Time, error) {
	now, err := b.rdb.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("asking redis for the time: %w", err)
	}
	return now, nil
}

// Wait blocks until something may be waiting in one of the lanes, at most for
// block (rounded up to whole seconds, at least one). It answers whether the bell rang; when
// it did, the caller is expected to Take. A wait under way does not hear ctx
// end: it returns when its time is up, so keep block short (a second or two).
func (b *Belt) Wait(ctx context.Context, carrier string, block time.Duration, lanes ...Lane) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	bells := make([]string, len(lanes))
	for i, lane := range lanes {
		bells[i] = b.bellKey(carrier, lane)
	}
	rung, err := b.waiting.BLPop(ctx, wholeSeconds(block), bells...).Result()
	var timeout net.Error
	switch {
	case errors.Is(err, redis.Nil):
		return false, ctx.Err()
	case errors.As(err, &timeout) && timeout.Timeout():
		return false, ctx.Err() // the connection's deadline came before the server's answer
	case err != nil:
		return false, fmt.Errorf("waiting at %s: %w", carrier, err)
	}
	if ctx.Err() != nil { // nobody will take: hand the token back
		if err := b.rdb.RPush(context.WithoutCancel(ctx), rung[0], 1).Err(); err != nil {
			return false, fmt.Errorf("handing back the bell of %s: %w", carrier, err)
		}
		return false, ctx.Err()
	}
	return true, nil
}

// wholeSeconds rounds up: BLPOP of older servers knows no fractions.
func wholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

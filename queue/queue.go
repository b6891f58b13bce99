// Package queue holds what is to be sent next, between intake and dispatcher, in
// Redis streams. It carries ids, never bodies or numbers. Postgres is
// the truth; the queue only decides on order and process, and may be emptied
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
// ring. A take that finds nothing blocks on the bell, not on streams.
//
// # What may go wrong
//
// An entry is a hint: its taker claims its row in Postgres, which one
// process alone can do. So an entry that is lost, or there twice, does no harm.
// The dispatcher finds what was lost in the outbox, and carries it from there.
//
//   - Push fails or its answer is lost: the items are on the queue, or some are,
//     or none.
//   - A taker dies, or the answer of Take is lost on its way: the entries are gone.
//   - A waiter dies with the token in its hand: the others wake when their own
//     wait ends or at the next push, whichever is first.
//   - Redis is full: Push fails, Take goes on.
//   - FLUSHALL, a failover that loses writes, eviction: Take waits on an empty
//     bell, as on any quiet day. The next Push makes stream, ring and bell anew.
//   - Redis answers too late or nonsense, or a key of ours holds something else:
//     the call that meets it fails with an error whose fault FaultOf returns.
//
// There is one repair: Empty deletes what a lane holds, and the dispatcher fills
// it again from the outbox.
//
// Every change is one script on keys of one slot, so the streams, the ring and
// the bell cannot contradict each other. Nothing is trimmed (no MAXLEN), so a
// stream holds exactly what waits. A company's stream is deleted with its last
// entry.
package queue

import (
	"cmp"
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

// String is the lane's name in keys and metrics.
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

// Options of a queue.
type Options struct {
	// Prefix begins every key, so that installations can share a server.
	Prefix string
	// Waiting is the client whose connections wait for the bell, one for each
	// Take that blocks. Nil means the client given to New, whose pool must
	// then be larger than the number of waiters, or they starve everything else.
	// Both clients must have ContextTimeoutEnabled, or a server that stands still
	// holds a call for as long as the client's own timeouts let it.
	Waiting redis.UniversalClient
	// Patience is how long the server may take for a call, besides the time that
	// the call's own wait and the time for very many items; default 1 s.
	Patience time.Duration
}

// Queue is safe for concurrent use. It starts nothing, and its clients are the
// caller's to close.
type Queue struct {
	rdb      redis.UniversalClient
	waiting  redis.UniversalClient
	prefix   string
	patience time.Duration
	probe    probe
	emptied  sync.Map // bells of the lanes of which the last Take left nothing
}

// New makes a queue on a server, a sentinel group or a cluster.
func New(rdb redis.UniversalClient, options Options) *Queue {
	waiting := options.Waiting
	if waiting == nil {
		waiting = rdb
	}
	return &Queue{rdb: rdb, waiting: waiting, prefix: options.Prefix, patience: cmp.Or(options.Patience, time.Second)}
}

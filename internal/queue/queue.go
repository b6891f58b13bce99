// Package queue is the queue between intake and dispatcher, in Redis streams. It carries ids, never texts or numbers.
// Postgres is the truth; the queue only decides on order and process, and may be emptied at any moment.
//
// # Lanes and turns
//
// Each carrier has two lanes: Single for messages sent alone, Batch for those of bulk and template sends. The single
// lane is one stream. The batch lane is a stream for each company and a ring of the companies with waiting messages;
// Take goes round the ring and reads an even share from each, so one company's hundred thousand recipients do not delay
// another's fifty, while each company's own order is kept.
//
// A lane has a bell, a list with a token whenever the ring is not empty. A take that finds nothing blocks on the bell,
// not on streams.
//
// # Faults
//
// An entry is a hint: its taker claims the row in Postgres, which only one process can do. An entry that is lost or
// duplicated does no harm: the dispatcher finds the message in the outbox.
//
//   - Push fails or its response is lost: all, some or none of the items are on the queue.
//   - A taker dies, or the response to Take is lost: the entries are gone.
//   - A waiter dies with the token: the others wake when their own wait ends or at the next push, whichever is first.
//   - Redis is full: Push fails, Take continues.
//   - FLUSHALL, a failover that loses writes, eviction: Take waits on an empty bell. The next Push makes stream, ring
//     and bell anew.
//   - Redis responds too late or with nonsense, or a key of ours has another type: the call fails with an error whose
//     fault FaultOf returns.
//
// There is one repair: Empty deletes a lane, and the dispatcher fills it again from the outbox.
//
// Every change is one script on keys of one slot, so streams, ring and bell agree. Nothing is trimmed (no MAXLEN): a
// stream has exactly the waiting messages. A company's stream is deleted with its last entry.
package queue

import (
	"cmp"
	"crypto/rand"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lane is one of a carrier's two streams of messages.
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

// Item is a queued message.
type Item struct {
	MessageID int64
	CompanyID int64
	Carrier   string
	Lane      Lane
}

// Options of a queue.
type Options struct {
	// Prefix begins every key; installations with different prefixes can share a server.
	Prefix string
	// Waiting is the client whose connections wait for the bell, one for each Take that blocks. Nil means the client
	// given to New, whose pool must then be larger than the number of waiters. Both clients need ContextTimeoutEnabled,
	// or a server that hangs blocks a call for as long as the client's own timeouts allow.
	Waiting redis.UniversalClient
	// Patience is how long the server may take for a call, besides the call's own wait and the time for very many items;
	// default 1 s.
	Patience time.Duration
}

// Queue is safe for concurrent use. It starts nothing, and the caller closes its clients.
type Queue struct {
	rdb      redis.UniversalClient
	waiting  redis.UniversalClient
	prefix   string
	patience time.Duration
	emptied  sync.Map // bells of lanes that the last Take left empty

	probing sync.Mutex
	probe   string // a key of this Queue alone
	probed  string // what the last Probe wrote there; "": nothing
}

// New returns a queue on a server, a sentinel group or a cluster.
func New(rdb redis.UniversalClient, options Options) *Queue {
	waiting := options.Waiting
	if waiting == nil {
		waiting = rdb
	}
	return &Queue{rdb: rdb, waiting: waiting, prefix: options.Prefix, patience: cmp.Or(options.Patience, time.Second),
		probe: options.Prefix + ":probe:" + rand.Text()}
}

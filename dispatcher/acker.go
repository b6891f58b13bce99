package dispatcher

import (
	"context"
	"sync"

	"intumwa/queue"
)

// acker takes entries off the queue, many in one round trip. An entry that it
// loses is harmless: it is reclaimed, cannot be claimed, and is removed.
type acker struct {
	d    *Dispatcher
	mu   sync.Mutex
	ids  map[laneKey][]string
	n    int
	wake chan struct{}
}

type laneKey struct {
	carrier string
	lane    queue.Lane
}

// maxAcks bounds what is remembered while Redis is away.
const maxAcks = 100_000

func newAcker(d *Dispatcher) *acker {
	return &acker{d: d, ids: make(map[laneKey][]string), wake: make(chan struct{}, 1)}
}

func (a *acker) ack(carrier string, lane queue.Lane, id string) {
	a.mu.Lock()
	if a.n < maxAcks {
		key := laneKey{carrier, lane}
		a.ids[key] = append(a.ids[key], id)
		a.n++
	}
	a.mu.Unlock()
	signal(a.wake)
}

func (a *acker) run(ctx context.Context) {
	for {
		select {
		case <-a.wake:
			a.flush(ctx)
		case <-ctx.Done():
			a.flush(context.WithoutCancel(ctx))
			return
		}
	}
}

func (a *acker) flush(ctx context.Context) {
	a.mu.Lock()
	ids := a.ids
	a.ids, a.n = make(map[laneKey][]string), 0
	a.mu.Unlock()
	for key, list := range ids {
		if err := a.d.queue.Done(ctx, key.carrier, key.lane, list...); err != nil {
			a.d.log.Debug("acknowledging queue entries fails; they will be reclaimed", "carrier", key.carrier, "entries", len(list), "error", err)
			a.d.health.failed(key.carrier, key.lane, err)
		}
	}
}

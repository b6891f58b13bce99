package dispatcher

import (
	"slices"
	"sync/atomic"
	"time"

	"intumwa/messages/outbox"
)

// recovery is what messages wait for: one process at a time frees the claims of the dead, walks over the outbox, refills
// the queue and hands messages over. Each of its tasks reads or moves a bounded number of rows. It also releases
// scheduled messages, which every process does.
type recovery struct {
	*core
	health *queueHealth
	walk   *outboxWalk
	deaths deaths

	handed map[handing]int64 // the id after which the next round of failover continues; 0: at the start

	retired map[string]string // carriers, with what takes over from each (rerouting.Successors), as this round has read them
}

func newRecovery(shared *core, health *queueHealth) *recovery {
	r := &recovery{core: shared, health: health, walk: newOutboxWalk(), handed: make(map[handing]int64)}
	r.deaths.wake = make(chan struct{}, 1)
	r.deaths.unfreed.Store(true) // the previous holder of the recovery lease may have left some
	return r
}

// deaths wakes recovery to free the claims of a dispatcher that died.
type deaths struct {
	unfreed atomic.Bool // there may be claims of the dead
	wake    chan struct{}
}

func (d *deaths) note() {
	d.unfreed.Store(true)
	signal(d.wake)
}

// outboxWalk is the progress of the walk over the outbox. It belongs to the recovery tasks.
//
// Each step reads the next 20,000 rows of each carrier's lane, in the order of their ids. In
// this one read it counts the rows and finds those that have expired, that the queue has lost,
// that must wait for the end of quiet hours, whose carrier is no longer configured, and whose
// claimants are dead. It reads a shorter lane whole each time. In a longer one it also reads
// the first 20,000 rows, which go out next, each time. So the cost of a step does not grow
// with the backlog; only the duration of a pass does.
type outboxWalk struct {
	lanes map[laneKey]*laneWalk

	carriers []string      // of the outbox's rows, at the last query
	stranded []string      // those of them configured nowhere
	quiet    outbox.Quiet  // the companies whose batches are not sent now
	read     time.Duration // the duration of the last read, which sets the walk's rest
	askAgain time.Time     // the next query for carriers
}

// laneWalk is the walk's progress in one lane.
type laneWalk struct {
	after int64 // the id to continue after; 0: at the start
	floor floor
	below bool           // the pass started below the floor
	midst bool           // the next stretch is not the pass's first
	pass  outbox.Counted // counted in this pass
	whole outbox.Counted // counted in the last whole pass
	ended bool           // a pass has come to the end
	rush  bool           // quiet hours have begun: this pass does not rest
}

func newOutboxWalk() *outboxWalk { return &outboxWalk{lanes: make(map[laneKey]*laneWalk)} }

// stretch returns the next rows of a lane to read.
func (w *outboxWalk) stretch(at laneKey, now time.Time) outbox.Stretch {
	l := w.lanes[at]
	if l == nil {
		l = &laneWalk{}
		w.lanes[at] = l
	}
	if l.after == 0 {
		l.after, l.below = l.floor.from(now)
		l.midst, l.pass = false, outbox.Counted{Carrier: at.carrier, Lane: int(at.lane)}
	}
	return outbox.Stretch{Carrier: at.carrier, Lane: int(at.lane), After: l.after, Stranded: slices.Contains(w.stranded, at.carrier)}
}

// saw adds the rows seen in a lane and moves on.
func (l *laneWalk) saw(seen *outbox.Seen, next int64, cost time.Duration) {
	first := l.pass.First == 0
	if l.pass.Messages += seen.Rows; first {
		l.pass.First = seen.First
		l.floor.found(firstOf(seen, next), l.below, cost)
	}
	if l.pass.Due.IsZero() || (seen.Rows > 0 && seen.Due.Before(l.pass.Due)) {
		l.pass.Due = seen.Due
	}
	if l.after, l.midst = seen.Last, true; seen.Rows < outbox.WalkRows {
		l.after, l.whole, l.ended, l.rush = 0, l.pass, true, false
	}
}

// firstOf returns the first row seen, or the id of the next new row if there was none.
func firstOf(seen *outbox.Seen, next int64) int64 {
	if seen.Rows == 0 {
		return next
	}
	return seen.First
}

// counted returns the lane's count: of the last whole pass, or of this one if it is
// already larger. It is partial until the first pass has come to the end.
func (l *laneWalk) counted() outbox.Counted {
	of := l.whole
	if l.after != 0 && l.pass.Messages > l.whole.Messages {
		of = l.pass
	}
	of.Partial = !l.ended
	return of
}

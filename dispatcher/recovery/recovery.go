// Package recovery brings waiting messages on their way again: it frees the claims of the dead, walks over the outbox,
// refills the queue, releases scheduled messages, and moves messages between carriers. It also has operators' decisions
// on messages that a carrier may have.
package recovery

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/messages/outbox"
)

// Recovery is what messages wait for: one process at a time frees the claims of the dead, walks over the outbox,
// refills the queue and hands messages over. Each of its tasks reads or moves a bounded number of rows. It also
// releases scheduled messages, which every process does.
type Recovery struct {
	*core.Core
	health *core.QueueHealth
	Walk   *OutboxWalk
	Deaths deaths

	handed map[handing]int64 // the id after which the next round of failover continues; 0: at the start

	// carriers, with what takes over from each (rerouting.Successors), as this round has read them
	retired map[string]string
}

// NewRecovery returns the recovery of a process, with the walk at its start.
func NewRecovery(shared *core.Core, health *core.QueueHealth) *Recovery {
	r := &Recovery{Core: shared, health: health, Walk: NewOutboxWalk(), handed: make(map[handing]int64)}
	r.Deaths.Wake = make(chan struct{}, 1)
	r.Deaths.Unfreed.Store(true) // the previous holder of the recovery lease may have left some
	return r
}

// Tasks returns the tasks of recovery, in their order. A failed task does not stop the next.
func (d *Recovery) Tasks() []*core.Task {
	often, seldom := d.Opts.SweepInterval, 10*d.Opts.SweepInterval
	walk := &core.Task{Name: "walk_outbox", Every: often, Rest: core.Swept, Run: d.WalkOutbox, Took: &d.Walk.read}
	return []*core.Task{
		{Name: "free_claims", Every: often, Rest: core.Swept, Run: d.freeClaims, Now: d.Deaths.Unfreed.Load},
		{Name: "quiet", Every: often, Rest: core.Swept, Run: func(ctx context.Context) error {
			begin, err := d.LookForQuiet(ctx)
			if begin { // the walk may have up to core.RestMost of rest left
				walk.Next = time.Time{}
			}
			return err
		}},
		{Name: "retire", Every: often, Rest: core.Worked, Run: d.LeaveRetired},
		{Name: "readdress", Every: seldom, Rest: core.Swept, Run: d.FindStranded},
		walk,
		{Name: "push_due", Every: often, Rest: core.Worked, Run: d.pushDue},
		{Name: "fail_over", Every: often, Rest: core.Worked, Run: d.Failover},
		{Name: "fail_back", Every: seldom, Rest: core.Worked, Run: d.TakeBack},
	}
}

// deaths wakes recovery to free the claims of a dispatcher that died.
type deaths struct {
	Unfreed atomic.Bool // there may be claims of the dead
	Wake    chan struct{}
}

// Note wakes recovery.
func (d *deaths) Note() {
	d.Unfreed.Store(true)
	core.Signal(d.Wake)
}

// OutboxWalk is the progress of the walk over the outbox. It belongs to the recovery tasks.
//
// Each step reads the next 20,000 rows of each carrier's lane, in the order of their ids. In
// this one read it counts the rows and finds those that have expired, that the queue has lost,
// that must wait for the end of quiet hours, whose carrier is no longer configured, and whose
// claimants are dead. It reads a shorter lane whole each time. In a longer one it also reads
// the first 20,000 rows, which go out next, each time. So the cost of a step does not grow
// with the backlog; only the duration of a pass does.
type OutboxWalk struct {
	Lanes map[core.LaneKey]*laneWalk

	carriers []string      // of the outbox's rows, at the last query
	stranded []string      // those of them configured nowhere
	quiet    outbox.Quiet  // the companies whose batches are not sent now
	read     time.Duration // the duration of the last read, which sets the walk's rest
	AskAgain time.Time     // the next query for carriers
}

// laneWalk is the walk's progress in one lane.
type laneWalk struct {
	After int64 // the id to continue after; 0: at the start
	Floor floor
	below bool           // the pass started below the floor
	midst bool           // the next stretch is not the pass's first
	pass  outbox.Counted // counted in this pass
	whole outbox.Counted // counted in the last whole pass
	ended bool           // a pass has come to the end
	rush  bool           // quiet hours have begun: this pass does not rest
}

// NewOutboxWalk returns a walk at its start.
func NewOutboxWalk() *OutboxWalk { return &OutboxWalk{Lanes: make(map[core.LaneKey]*laneWalk)} }

// stretch returns the next rows of a lane to read.
func (w *OutboxWalk) stretch(at core.LaneKey, now time.Time) outbox.Stretch {
	l := w.Lanes[at]
	if l == nil {
		l = &laneWalk{}
		w.Lanes[at] = l
	}
	if l.After == 0 {
		l.After, l.below = l.Floor.from(now)
		l.midst, l.pass = false, outbox.Counted{Carrier: at.Carrier, Lane: int(at.Lane)}
	}
	return outbox.Stretch{Carrier: at.Carrier, Lane: int(at.Lane), After: l.After,
		Stranded: slices.Contains(w.stranded, at.Carrier)}
}

// saw adds the rows seen in a lane and moves on.
func (l *laneWalk) saw(seen *outbox.Seen, next int64, cost time.Duration) {
	first := l.pass.First == 0
	if l.pass.Messages += seen.Rows; first {
		l.pass.First = seen.First
		l.Floor.found(firstOf(seen, next), l.below, cost)
	}
	if l.pass.Due.IsZero() || (seen.Rows > 0 && seen.Due.Before(l.pass.Due)) {
		l.pass.Due = seen.Due
	}
	if l.After, l.midst = seen.Last, true; seen.Rows < outbox.WalkRows {
		l.After, l.whole, l.ended, l.rush = 0, l.pass, true, false
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
	if l.After != 0 && l.pass.Messages > l.whole.Messages {
		of = l.pass
	}
	of.Partial = !l.ended
	return of
}

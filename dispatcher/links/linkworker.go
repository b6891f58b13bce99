// Package links carries messages over links: it takes them from the queue, submits their segments, passes answers and
// deliveries to settling, and shares the links among the dispatchers of one database.
//
// One message's way: feeder claims it, submitter writes its segments, package settling records their answers, deliver
// takes its receipt, and package settling records that too.
package links

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/smpp"
)

// Worker carries messages over one leased link. One feeder per lane takes from the queue
// and claims in Postgres (feeder.go). One goroutine submits (submitter.go).
//
// A feeder claims only as much as the prefetch holds, so that later messages can still
// overtake: at 100 segments a second a single send waits behind a quarter of a second of
// a campaign, not behind the whole campaign.
type Worker struct {
	*core.Core
	Carrier  *core.Carrier
	Settler  *settling.Settler
	health   *core.QueueHealth
	Kick     func()              // tells the member that the worker has ended
	SetBind  func(string, *Bind) // registers the bind of a running link; nil removes it
	link     string              // its name
	submits  bool                // it is not only a receiver
	conf     *setup.Link         // the current one; only the member uses it while the worker runs
	Bind     *Bind
	breaker  breaker
	refusals refusals
	Slots    *core.Slots
	Prefetch *prefetch
	pace     *pace

	claimTook atomic.Int64 // how long the last claim took, a time.Duration

	withoutID smpp.Seldom // receipts
	unmarked  smpp.Seldom
	notBegun  smpp.Seldom // messages, because the database failed

	cancel  context.CancelFunc
	done    chan struct{}
	Ending  atomic.Bool
	GivesUp atomic.Bool    // the link is given up after the worker ends
	Open    sync.WaitGroup // messages not yet settled
	paused  atomic.Bool
	retired atomic.Bool // the carrier is: the link submits nothing new

	silent time.Time // when this process could last have been taken for dead; only watch uses it
}

// settleWait is how long an ending worker waits for its last answers to be written.
const settleWait = 2 * time.Second

// adopt applies a link's configuration if only pace and window differ, which needs
// no new bind.
func (w *Worker) adopt(conf *setup.Link) bool {
	if conf == w.conf {
		return true
	}
	same := *conf
	same.TPS, same.Window = w.conf.TPS, w.conf.Window
	if !same.Equal(w.conf) {
		return false
	}
	if conf.Window != w.conf.Window {
		w.Slots.Resize(conf.Window)
		w.Bind.SetWindow(conf.Window)
	}
	w.pace.set(conf.TPS)
	w.Prefetch.resize(prefetchSize(conf.Window, conf.TPS))
	w.conf = conf
	return true
}

// state is the link's state for operators.
func (w *Worker) state() (snap smpp.Snapshot, o outage) {
	snap, o = w.Bind.Snapshot(), w.breaker.state(time.Now())
	if o.reason != "" {
		snap.LastError = o.reason
	}
	return snap, o
}

// end stops the worker; wait waits until it has ended; ended reports whether it has.
func (w *Worker) end() {
	w.Ending.Store(true)
	w.cancel()
}

// leave ends the bind within yieldWithin, even with submits unanswered, because another
// dispatcher may hold the link. The caller then calls end.
func (w *Worker) leave() {
	w.Ending.Store(true)
	w.Bind.allow(false, yieldWithin)
}

// yieldWithin is how long the bind of a process that may soon be taken for dead has to end,
// less than the time left. YieldRest is how long the process must have been fresh before it
// binds again.
const yieldWithin, YieldRest = 500 * time.Millisecond, 2 * time.Second

// Wait waits until the worker has ended.
func (w *Worker) Wait() { <-w.done }

// ended reports whether the worker has ended.
func (w *Worker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// obey applies what operators have ordered. A message of which a segment was submitted before its carrier was retired
// is submitted to its end.
func (w *Worker) obey(order linkOrder) {
	w.setPaused(order.paused)
	if w.retired.Swap(order.retired) != order.retired {
		w.Log.Info("an operator has retired the carrier, or ended that", "event", "link_retired", "carrier", w.Carrier.Name,
			"link", w.link, "retired", order.retired)
	}
}

func (w *Worker) setPaused(paused bool) {
	if w.paused.Swap(paused) == paused {
		return
	}
	w.Bind.pause(paused)
	if paused {
		w.Log.Info("link paused by an operator", "event", "link_paused_by_operator", "carrier", w.Carrier.Name, "link",
			w.link)
		return
	}
	w.Log.Info("link resumed by an operator", "event", "link_resumed_by_operator", "carrier", w.Carrier.Name, "link",
		w.link)
}

// carries reports whether the link can carry messages, or at least a probe.
func (w *Worker) carries(now time.Time) bool {
	return w.submits && !w.retired.Load() && w.Bind.up() && w.Leases.Submits() && w.breaker.ready(now) &&
		!w.Slots.Stalled(now)
}

// ready waits until the link can carry messages, or at least a probe.
func (w *Worker) ready(ctx context.Context) error {
	for {
		if err := w.Bind.WaitBound(ctx); err != nil {
			return err
		}
		if w.carries(time.Now()) {
			return nil
		}
		if err := core.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// giveBack releases messages that were claimed and not begun. They are due after wait; 0: as
// before.
func (w *Worker) giveBack(ms []*core.InFlight, wait time.Duration) {
	if len(ms) == 0 {
		return
	}
	claims := make([]messages.Claim, len(ms))
	for i, m := range ms {
		claims[i] = m.Msg.Claim()
		defer w.InFlight.Remove(m)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := w.Carrying.Outbox.Release(ctx, w.Leases.ID.Load(), claims, wait); err != nil {
		// Otherwise they would stay claimed until this process ends. The settler
		// retries until it succeeds.
		w.Settler.PutBack(claims)
	}
}

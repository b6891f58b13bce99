package dispatcher

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/messages"
	"intumwa/smpp"
)

// linkWorker carries messages over one leased link. One feeder per lane takes from the queue
// and claims in Postgres (feeder.go). One goroutine submits (submitter.go).
//
// A feeder claims only as much as the prefetch holds, so that later messages can still
// overtake: at 100 segments a second a single send waits behind a quarter of a second of
// a campaign, not behind the whole campaign.
type linkWorker struct {
	*core
	carrier  *carrier
	settler  *settler
	health   *queueHealth
	kick     func()                  // tells the member that the worker has ended
	setBind  func(string, *linkBind) // registers the bind of a running link; nil removes it
	link     string                  // its name
	submits  bool                    // it is not only a receiver
	conf     *Link                   // the current one; only the member uses it while the worker runs
	bind     *linkBind
	breaker  breaker
	refusals refusals
	slots    *slots
	prefetch *prefetch
	pace     *pace

	claimTook atomic.Int64 // how long the last claim took, a time.Duration

	withoutID smpp.Seldom // receipts
	unmarked  smpp.Seldom
	notBegun  smpp.Seldom // messages, because the database failed

	cancel  context.CancelFunc
	done    chan struct{}
	ending  atomic.Bool
	givesUp atomic.Bool    // the link is given up after the worker ends
	open    sync.WaitGroup // messages not yet settled
	paused  atomic.Bool
	retired atomic.Bool // the carrier is: the link submits nothing new

	silent time.Time // when this process could last have been taken for dead; only watch uses it
}

// settleWait is how long an ending worker waits for its last answers to be written.
const settleWait = 2 * time.Second

// adopt applies a link's configuration if only pace and window differ, which needs
// no new bind.
func (w *linkWorker) adopt(conf *Link) bool {
	if conf == w.conf {
		return true
	}
	same := *conf
	same.TPS, same.Window = w.conf.TPS, w.conf.Window
	if !same.equal(w.conf) {
		return false
	}
	if conf.Window != w.conf.Window {
		w.slots.resize(conf.Window)
		w.bind.SetWindow(conf.Window)
	}
	w.pace.set(conf.TPS)
	w.prefetch.resize(prefetchSize(conf.Window, conf.TPS))
	w.conf = conf
	return true
}

// state is the link's state for operators.
func (w *linkWorker) state() (snap smpp.Snapshot, o outage) {
	snap, o = w.bind.Snapshot(), w.breaker.state(time.Now())
	if o.reason != "" {
		snap.LastError = o.reason
	}
	return snap, o
}

// end stops the worker; wait waits until it has ended; ended reports whether it has.
func (w *linkWorker) end() {
	w.ending.Store(true)
	w.cancel()
}

// leave ends the bind within yieldWithin, even with submits unanswered, because another
// dispatcher may hold the link. The caller then calls end.
func (w *linkWorker) leave() {
	w.ending.Store(true)
	w.bind.allow(false, yieldWithin)
}

// yieldWithin is how long the bind of a process that may soon be taken for dead has to end,
// less than the time left. yieldRest is how long the process must have been fresh before it
// binds again.
const yieldWithin, yieldRest = 500 * time.Millisecond, 2 * time.Second

func (w *linkWorker) wait() { <-w.done }
func (w *linkWorker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// obey applies what operators have ordered. A message of which a segment was submitted before its carrier was retired is
// submitted to its end.
func (w *linkWorker) obey(order linkOrder) {
	w.setPaused(order.paused)
	if w.retired.Swap(order.retired) != order.retired {
		w.log.Info("an operator has retired the carrier, or ended that", "event", "link_retired", "carrier", w.carrier.name, "link", w.link, "retired", order.retired)
	}
}

func (w *linkWorker) setPaused(paused bool) {
	if w.paused.Swap(paused) == paused {
		return
	}
	w.bind.pause(paused)
	if paused {
		w.log.Info("link paused by an operator", "event", "link_paused_by_operator", "carrier", w.carrier.name, "link", w.link)
		return
	}
	w.log.Info("link resumed by an operator", "event", "link_resumed_by_operator", "carrier", w.carrier.name, "link", w.link)
}

// carries reports whether the link can carry messages, or at least a probe.
func (w *linkWorker) carries(now time.Time) bool {
	return w.submits && !w.retired.Load() && w.bind.up() && w.leases.submits() && w.breaker.ready(now) && !w.slots.stalled(now)
}

// ready waits until the link can carry messages, or at least a probe.
func (w *linkWorker) ready(ctx context.Context) error {
	for {
		if err := w.bind.WaitBound(ctx); err != nil {
			return err
		}
		if w.carries(time.Now()) {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// giveBack releases messages that were claimed and not begun. They are due after wait; 0: as
// before.
func (w *linkWorker) giveBack(ms []*inFlight, wait time.Duration) {
	if len(ms) == 0 {
		return
	}
	claims := make([]messages.Claim, len(ms))
	for i, m := range ms {
		claims[i] = m.msg.Claim()
		defer w.inFlight.remove(m)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := w.carrying.outbox.Release(ctx, w.leases.id.Load(), claims, wait); err != nil {
		// Otherwise they would stay claimed until this process ends. The settler
		// retries until it succeeds.
		w.settler.putBack(claims)
	}
}

package dispatcher

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/queue"
	"intumwa/smpp"
)

// linkWorker carries messages over one leased link. It has three goroutines
// besides those of the binds: two feeders, one for each lane, that take from the
// queue and claim in Postgres (feeder.go), and one that submits (submitter.go).
//
// A feeder claims only as much as the prefetch holds, so that what comes later can
// still overtake: at 100 segments a second a single send waits behind a
// quarter of a second of campaign, not behind the campaign.
type linkWorker struct {
	d        *Dispatcher
	carrier  *carrier
	link     string // its name
	conf     *Link  // as it is now; the member's alone once the worker runs
	binds    *binds
	breaker  breaker
	slots    *slots
	prefetch *prefetch
	pace     *pace

	withoutID smpp.Seldom // receipts
	notBegun  smpp.Seldom // messages, for want of the database

	cancel context.CancelFunc
	done   chan struct{}
	ending atomic.Bool
	parts  atomic.Bool    // the link is given up once the worker has ended
	takers atomic.Bool    // another dispatcher would take the link, by the last heartbeat
	open   sync.WaitGroup // messages not yet settled
	left   []smpp.Retry   // of a link that is given up: where its attempts have come to; the member's
	paused atomic.Bool

	// watchSilence's: when the binds were ended because this process may be taken for dead
	yielded yielding
}

// settleWait is how long a worker waits at its end for its last answers to be
// written.
const settleWait = 2 * time.Second

// newLinkWorker makes a worker. retries are where the attempts to bind had come to of whoever
// had the link before.
func newLinkWorker(d *Dispatcher, c *carrier, conf *Link, retries []smpp.Retry) (*linkWorker, error) {
	w := &linkWorker{d: d, carrier: c, link: conf.Name, conf: conf, done: make(chan struct{})}
	binds, err := newBinds(d, c.name, conf, smpp.Options{Deliver: w.deliver, OnLate: w.late,
		Class:        func(s smpp.Status) smpp.Class { return c.config().class(s) },
		OnCongestion: func(state uint8) { w.pace.congested(time.Now(), state) }, Again: w.tryAgain}, retries)
	if err != nil {
		return nil, err
	}
	w.binds = binds
	w.breaker.first = d.opts.BreakerPause
	w.slots = newSlots(binds.window)
	w.prefetch = newPrefetch(prefetchSize(binds.window, conf.TPS))
	w.pace = newPace(binds, conf.TPS)
	return w, nil
}

// adopt takes over a link's configuration if that can be done without binding
// anew: pace, window and weight.
func (w *linkWorker) adopt(conf *Link) bool {
	if conf == w.conf {
		return true
	}
	same := *conf
	same.TPS, same.Window, same.Weight = w.conf.TPS, w.conf.Window, w.conf.Weight
	if !same.equal(w.conf) {
		return false
	}
	if conf.Window != w.conf.Window {
		w.slots.resize(conf.Window)
		w.binds.setWindow(conf.Window)
	}
	w.pace.set(conf.TPS)
	w.prefetch.resize(prefetchSize(conf.Window, conf.TPS))
	w.joinShares(conf.Weight)
	w.conf = conf
	return true
}

func (w *linkWorker) joinShares(weight int) {
	for _, share := range w.carrier.shares {
		share.join(w, weight)
	}
}

// state is the link as operators see it.
func (w *linkWorker) state() (snap smpp.Snapshot, broken bool) {
	snap = w.binds.snapshot()
	broken, reason := w.breaker.state()
	if broken {
		snap.LastError = "stopped: the carrier refuses everything with " + reason
	}
	return snap, broken
}

func (w *linkWorker) start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.d.metrics.givenUp.WithLabelValues(w.carrier.name, w.link) // from the start, so that the first counts as an increase
	w.joinShares(w.conf.Weight)
	w.d.hold(w.link, w.binds)
	go w.run(ctx)
}

// end tells the worker to stop; wait waits until it has; ended looks.
func (w *linkWorker) end() {
	w.ending.Store(true)
	w.cancel()
}

// leave ends the binds within yieldWithin, whatever is unanswered, because another dispatcher
// may have the link; end is to follow.
func (w *linkWorker) leave() { w.binds.allow(false, yieldWithin) }

func (w *linkWorker) wait() { <-w.done }
func (w *linkWorker) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *linkWorker) setPaused(paused bool) {
	if w.paused.Swap(paused) == paused {
		return
	}
	w.binds.pause(paused)
	what := "link resumed by an operator"
	if paused {
		what = "link paused by an operator"
	}
	w.d.log.Info(what, "carrier", w.carrier.name, "link", w.link)
}

// run works until ctx ends: first nothing more is taken and what is
// prefetched goes back, then the link drains its window and unbinds, then the
// settler writes what was answered.
func (w *linkWorker) run(ctx context.Context) {
	defer func() {
		close(w.done)
		if w.parts.Load() {
			w.d.member.kick()
		}
	}()
	linkCtx, stopLink := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLink()
	defer w.d.hold(w.link, nil)
	var binds, loops sync.WaitGroup
	binds.Go(func() { w.binds.run(linkCtx) })
	loops.Go(func() { w.feed(ctx, queue.Single) })
	loops.Go(func() { w.feed(ctx, queue.Batch) })
	loops.Go(func() { w.submitPrefetched(ctx) })
	loops.Go(func() { w.watch(ctx) })
	loops.Go(func() { w.watchSilence(ctx) })
	loops.Go(func() { w.watchEchoes(ctx) })
	loops.Wait()
	for _, share := range w.carrier.shares {
		share.leave(w)
	}
	w.giveBack(w.prefetch.takeAll())
	stopLink()
	binds.Wait()
	w.awaitSettled()
	w.d.metrics.breakerOpen.DeleteLabelValues(w.carrier.name, w.link)
}

// awaitSettled waits until the settler has written what the link answered, but
// not for a database that is away: the others then free the claims.
func (w *linkWorker) awaitSettled() {
	settled := make(chan struct{})
	go func() {
		w.open.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-time.After(settleWait):
		w.d.log.Error("shutdown: the carrier's last answers could not be stored in time", "carrier", w.carrier.name, "link", w.link)
	}
}

// watch adjusts the link's pace and, when the link goes down or its carrier
// answers nothing, gives back what is prefetched: another link of the
// carrier may take it.
func (w *linkWorker) watch(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.pace.tick(now)
			w.binds.balance()
			if !w.binds.up() || !w.d.member.fresh() || !w.breaker.ready(now) || w.slots.stalled(now) {
				w.giveBack(w.prefetch.takeAll())
			}
		}
	}
}

// tryAgain holds up an attempt to bind of a link that is to be given up: the next is the
// other dispatcher's.
func (w *linkWorker) tryAgain(ctx context.Context) {
	for w.takers.Load() && w.d.member.fresh() && w.binds.failing().down >= w.d.opts.GiveUpAfter {
		if sleep(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
}

// watchSilence unbinds in time when the database does not hear of this process. It asks the
// database nothing itself: an answer that does not come would hold it up when it is needed.
func (w *linkWorker) watchSilence(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.yield(now)
		}
	}
}

// yieldWithin is how long the binds of a process that may soon be taken for dead have to
// end: less than what is left until then.
const yieldWithin = 500 * time.Millisecond

// yielding is what becomes of the binds of a process that the database hears late.
type yielding struct {
	now    bool          // they are ended
	silent time.Time     // when this process was last silent
	back   time.Time     // when they came up again
	rest   time.Duration // how long it must have been heard before they do
}

// Where a process is silent again and again, because the database is slow, its binds stay
// down for longer each time: a carrier takes one that binds and unbinds every few seconds
// for a fault.
const (
	yieldRest, yieldRestMost = time.Second, time.Minute
	yieldForgets             = 10 * time.Minute
)

// next returns whether the binds are to be down at a time.
func (y *yielding) next(silent bool, now time.Time) (down bool) {
	if silent {
		if y.silent = now; !y.now {
			if y.rest = min(max(2*y.rest, yieldRest), yieldRestMost); y.back.IsZero() || now.Sub(y.back) > yieldForgets {
				y.rest = 0
			}
			y.now = true
		}
		return true
	}
	if y.now && now.Sub(y.silent) >= y.rest {
		y.now, y.back = false, now
	}
	return y.now
}

// yield ends the binds before the others take this process for dead, by its heartbeats, and
// one of them binds in its place: a carrier counts both, or lets the new one wait for as long
// as the old one stands. They come up again with a heartbeat that succeeds, the first time
// at once.
func (w *linkWorker) yield(now time.Time) {
	before := w.yielded.now
	down := w.yielded.next(!w.d.member.fresh(), now)
	if down == before {
		return
	}
	if down {
		w.d.log.Warn("link unbinds: the database has not heard of this process for so long that another may bind", "carrier", w.carrier.name, "link", w.link)
	}
	w.binds.allow(!down, yieldWithin)
}

// ready waits until the link can carry something.
func (w *linkWorker) ready(ctx context.Context) error {
	for {
		if err := w.binds.waitBound(ctx); err != nil {
			return err
		}
		if now := time.Now(); w.d.member.fresh() && w.breaker.ready(now) && !w.slots.stalled(now) {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

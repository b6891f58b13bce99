package dispatcher

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/queue"
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
	conf     *Link                   // the current one; only the member uses it while the worker runs
	bind     *linkBind
	breaker  breaker
	slots    *slots
	prefetch *prefetch
	pace     *pace

	withoutID smpp.Seldom // receipts
	notBegun  smpp.Seldom // messages, because the database failed

	cancel  context.CancelFunc
	done    chan struct{}
	ending  atomic.Bool
	givesUp atomic.Bool    // the link is given up after the worker ends
	open    sync.WaitGroup // messages not yet settled
	paused  atomic.Bool

	silent time.Time // when this process could last have been taken for dead; only watch uses it
}

// settleWait is how long an ending worker waits for its last answers to be written.
const settleWait = 2 * time.Second

// newLinkWorker returns a worker that is idle until start.
func newLinkWorker(shared *core, c *carrier, settle *settler, health *queueHealth, conf *Link) (*linkWorker, error) {
	w := &linkWorker{core: shared, carrier: c, settler: settle, health: health, link: conf.Name, conf: conf, done: make(chan struct{}),
		kick: func() {}, setBind: func(string, *linkBind) {}}
	bind, err := newLinkBind(c.name, conf, smpp.Options{Log: w.log, Metrics: w.smpp, Deliver: w.deliver, OnLate: w.late,
		Class: func(s smpp.Status) smpp.Class { return c.config().class(s) }})
	if err != nil {
		return nil, err
	}
	w.bind = bind
	w.breaker.first = w.opts.BreakerPause
	w.slots = newSlots(conf.Window)
	w.prefetch = newPrefetch(prefetchSize(conf.Window, conf.TPS))
	w.pace = newPace(bind, conf.TPS)
	return w, nil
}

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
func (w *linkWorker) state() (snap smpp.Snapshot, broken bool) {
	snap = w.bind.Snapshot()
	broken, reason := w.breaker.state()
	if broken {
		snap.LastError = "stopped: the carrier refuses everything with " + reason
	}
	return snap, broken
}

func (w *linkWorker) start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.metrics.givenUp.WithLabelValues(w.carrier.name, w.link) // from the start, so that the first counts as an increase
	w.setBind(w.link, w.bind)
	w.yield(time.Now()) // before the first bind
	go w.run(ctx)
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
	w.bind.pause(paused)
	if paused {
		w.log.Info("link paused by an operator", "event", "link_paused_by_operator", "carrier", w.carrier.name, "link", w.link)
		return
	}
	w.log.Info("link resumed by an operator", "event", "link_resumed_by_operator", "carrier", w.carrier.name, "link", w.link)
}

// run works until ctx ends. Then it takes nothing more and gives back the prefetch,
// the link drains its window and unbinds, and the settler writes the answers.
func (w *linkWorker) run(ctx context.Context) {
	defer func() {
		close(w.done)
		if w.givesUp.Load() {
			w.kick()
		}
	}()
	linkCtx, stopLink := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLink()
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx)) // until the bind has ended
	defer unwatch()
	defer w.setBind(w.link, nil)
	var bind, watch, loops sync.WaitGroup
	bind.Go(func() { w.bind.run(linkCtx) })
	watch.Go(func() { w.watch(watching) })
	loops.Go(func() { w.feed(ctx, queue.Single) })
	loops.Go(func() { w.feed(ctx, queue.Batch) })
	loops.Go(func() { w.submitPrefetched(ctx) })
	loops.Go(func() { w.tidy(ctx) })
	loops.Wait()
	w.giveBack(w.prefetch.takeAll())
	stopLink()
	bind.Wait()
	unwatch()
	watch.Wait()
	w.awaitSettled()
	w.metrics.breakerOpen.DeleteLabelValues(w.carrier.name, w.link)
}

// awaitSettled waits until the settler has written the link's answers, at most
// settleWait. If the database is down, other dispatchers free the claims.
func (w *linkWorker) awaitSettled() {
	settled := make(chan struct{})
	go func() {
		w.open.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-time.After(settleWait):
		w.log.Error("shutdown: the carrier's last answers could not be stored in time", "event", "last_answers_not_stored", "carrier", w.carrier.name, "link", w.link)
	}
}

// yieldWithin is how long the bind of a process that may soon be taken for dead has to end,
// less than the time left. yieldRest is how long the process must have been fresh before it
// binds again.
const yieldWithin, yieldRest = 500 * time.Millisecond, 2 * time.Second

// watch adjusts the link's pace and yields the link. It uses no database: a missing answer
// would block it just when it is needed.
func (w *linkWorker) watch(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.pace.tick(now)
			w.yield(now)
		}
	}
}

// yield ends the bind before another process takes this one for dead and binds in its place.
// A carrier counts both binds, or makes the new one wait while the old one is up. A bind
// that is ending already must end in time too, and does not come up again.
func (w *linkWorker) yield(now time.Time) {
	if !w.leases.fresh() {
		w.silent = now
	}
	may := now.Sub(w.silent) >= yieldRest
	if may && w.ending.Load() {
		return
	}
	if w.bind.allow(may, yieldWithin) && !may {
		w.log.Warn("link unbinds: this process has not renewed its lease for so long that another may bind", "event", "lease_expired", "carrier", w.carrier.name, "link", w.link)
	}
}

// tidy gives back the prefetch while the link cannot carry it, so that another link of the
// carrier can, and stops waiting for answers that a receipt has overtaken.
func (w *linkWorker) tidy(ctx context.Context) {
	var echoes time.Time
	for sleep(ctx, 250*time.Millisecond) == nil {
		if !w.carries(time.Now()) {
			w.giveBack(w.prefetch.takeAll())
		}
		if time.Since(echoes) >= echoInterval {
			echoes = time.Now()
			w.endEchoed(ctx)
		}
	}
}

// carries reports whether the link can carry messages, or at least a probe.
func (w *linkWorker) carries(now time.Time) bool {
	return w.bind.up() && w.leases.submits() && w.breaker.ready(now) && !w.slots.stalled(now)
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

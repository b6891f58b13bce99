package links

import (
	"context"
	"sync"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/internal/queue"
	"intumwa/smpp"
)

// NewWorker returns a worker that is idle until start.
func NewWorker(shared *core.Core, c *core.Carrier, settle *settling.Settler, health *core.QueueHealth,
	conf *setup.Link) (*Worker, error) {
	w := &Worker{Core: shared, Carrier: c, Settler: settle, health: health, link: conf.Name, submits: conf.Mode.Submits(),
		conf: conf, done: make(chan struct{}),
		Kick: func() {}, SetBind: func(string, *Bind) {}}
	bind, err := NewBind(c.Name, conf, smpp.Options{Log: w.Log, Metrics: w.SMPP, Deliver: w.deliver, OnLate: w.late,
		Busy:    func() smpp.Status { return c.Config().DeliveryRefusal },
		Reading: func() smpp.Reading { return c.Config().Reading },
		Class:   func(s smpp.Status) smpp.Class { return c.Config().ClassOf(s) }})
	if err != nil {
		return nil, err
	}
	w.Bind = bind
	w.breaker.first, w.breaker.after = w.Opts.BreakerPause, w.Opts.BreakerAfter
	w.Slots = core.NewSlots(conf.Window)
	w.Prefetch = newPrefetch(prefetchSize(conf.Window, conf.TPS))
	w.Prefetch.soon = func() int { return w.Slots.Soon(max(soonWithin, 2*time.Duration(w.claimTook.Load()))) }
	w.Slots.Woken = w.Prefetch.wake
	w.pace = newPace(bind, conf.TPS)
	return w, nil
}

func (w *Worker) start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.Metrics.GivenUp.WithLabelValues(w.Carrier.Name, w.link) // from the start, so that the first counts as an increase
	w.SetBind(w.link, w.Bind)
	w.Yield(time.Now()) // before the first bind
	go w.run(ctx)
}

// run works until ctx ends. Then it takes nothing more and gives back the prefetch,
// the link drains its window and unbinds, and the settler writes the answers.
func (w *Worker) run(ctx context.Context) {
	defer func() {
		close(w.done)
		if w.GivesUp.Load() {
			w.Kick()
		}
	}()
	linkCtx, stopLink := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLink()
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx)) // until the bind has ended
	defer unwatch()
	defer w.SetBind(w.link, nil)
	var bind, watch, loops sync.WaitGroup
	bind.Go(func() { w.Bind.run(linkCtx) })
	watch.Go(func() { w.watch(watching) })
	if w.submits {
		loops.Go(func() { w.feed(ctx, queue.Single) })
		loops.Go(func() { w.feed(ctx, queue.Batch) })
		loops.Go(func() { w.submitPrefetched(ctx) })
	}
	loops.Go(func() { w.tidy(ctx) })
	loops.Wait()
	w.giveBack(w.Prefetch.takeAll(), 0)
	stopLink()
	bind.Wait()
	unwatch()
	watch.Wait()
	w.awaitSettled()
	w.Metrics.BreakerOpen.DeleteLabelValues(w.Carrier.Name, w.link)
	w.Metrics.SendersBlocked.DeleteLabelValues(w.Carrier.Name, w.link)
}

// awaitSettled waits until the settler has written the link's answers, at most
// settleWait. If the database is down, other dispatchers free the claims.
func (w *Worker) awaitSettled() {
	settled := make(chan struct{})
	go func() {
		w.Open.Wait()
		close(settled)
	}()
	select {
	case <-settled:
	case <-time.After(settleWait):
		w.Log.Error("shutdown: the carrier's last answers could not be stored in time", "event", "last_answers_not_stored",
			"carrier", w.Carrier.Name, "link", w.link)
	}
}

// watch adjusts the link's pace and yields the link. It uses no database: a missing answer
// would block it just when it is needed.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.pace.tick(now)
			w.Yield(now)
		}
	}
}

// Yield ends the bind before another process takes this one for dead and binds in its place.
// A carrier counts both binds, or makes the new one wait while the old one is up. A bind
// that is ending already must end in time too, and does not come up again.
func (w *Worker) Yield(now time.Time) {
	if !w.Leases.Fresh() {
		w.silent = now
	}
	may := now.Sub(w.silent) >= YieldRest
	if may && w.Ending.Load() {
		return
	}
	if w.Bind.allow(may, yieldWithin) && !may {
		w.Log.Warn("link unbinds: this process has not renewed its lease for so long that another may bind", "event",
			"lease_expired", "carrier", w.Carrier.Name, "link", w.link)
	}
}

// tidy gives back the prefetch while the link cannot carry it, so that another link of the
// carrier can, and stops waiting for answers that a receipt has overtaken. It also shows whether
// the breaker has stopped the link.
func (w *Worker) tidy(ctx context.Context) {
	var echoes time.Time
	var shown outage
	for core.Sleep(ctx, 250*time.Millisecond) == nil {
		shown = w.showOutage(shown)
		if !w.carries(time.Now()) {
			w.giveBack(w.Prefetch.takeAll(), 0)
		}
		if time.Since(echoes) >= echoInterval {
			echoes = time.Now()
			w.endEchoed(ctx)
		}
	}
}

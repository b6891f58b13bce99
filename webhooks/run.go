package webhooks

import (
	"context"
	"sync"
	"time"
)

const (
	surveyShare   = 10 // a survey rests this many times as long as it took
	surveyRest    = 5 * time.Millisecond
	troublePause  = 500 * time.Millisecond // after a failed statement
	censusEvery   = 15 * time.Second
	lastStatement = 3 * time.Second // for storing results and handing back leases at the end
)

// worker is one Run.
type worker struct {
	*Webhooks
	caller  *caller
	calling context.Context // ends calls under way, some time after taking has stopped
	results chan result
	wake    chan struct{} // a lane has room again
	calls   sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	lanes    map[int64]*lane
	hungry   []*lane // lanes with more to take, in turn
	pools    [classes]pool
}

// Run delivers until ctx ends. Then it takes nothing more, gives the calls under
// way at most Options.Drain, stores their results, hands back what it had not
// begun, and returns nil. Any number of processes may run at the same time.
func (w *Webhooks) Run(ctx context.Context) error {
	background := context.WithoutCancel(ctx)
	calling, endCalls := context.WithCancel(background)
	defer endCalls()
	storing, endStoring := context.WithCancel(background)
	defer endStoring()

	wk := &worker{
		Webhooks: w,
		caller:   newCaller(calling, w.opts, w.guard),
		calling:  calling,
		results:  make(chan result, w.opts.InFlight),
		wake:     make(chan struct{}, 1),
		lanes:    make(map[int64]*lane),
	}
	wk.pools[fresh].free = max(1, w.opts.InFlight/4)
	wk.pools[slow].free = max(1, w.opts.InFlight/4)
	wk.pools[quick].free = max(1, w.opts.InFlight/2)

	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		w.record(storing, wk.results)
	}()

	recovering, endRecovering := context.WithCancel(ctx)
	recovered := make(chan struct{})
	go func() {
		defer close(recovered)
		w.recoverAll(recovering)
	}()
	defer func() {
		endRecovering()
		<-recovered
	}()

	wk.take(ctx)

	defer time.AfterFunc(w.opts.Drain, endCalls).Stop()
	defer time.AfterFunc(w.opts.Drain+lastStatement, endStoring).Stop()
	handBack := wk.stop()
	wk.calls.Wait()
	close(wk.results)
	<-recorded
	wk.caller.close()
	handBack = append(handBack, wk.stop()...)
	if len(handBack) > 0 {
		if err := w.release(storing, handBack); err != nil {
			w.log.Warn("webhooks that were not begun stay leased for a while", "error", err)
		}
	}
	return nil
}

// rounds is what the taking loop remembers from one round to the next.
type rounds struct {
	timer   *time.Timer
	asked   bool      // somebody committed deliveries, or some may have become due
	rested  time.Time // no survey before
	census  time.Time // no count of endpoints before
	trouble bool
}

// take is the loop that finds and claims due deliveries, until ctx ends. It
// wakes by kick, by timer, and by calls that made room.
func (w *worker) take(ctx context.Context) {
	r := &rounds{timer: time.NewTimer(w.opts.Idle), asked: true}
	defer r.timer.Stop()
	for {
		err := w.round(ctx, r)
		if ctx.Err() != nil {
			return
		}
		w.tell(r, err)
		kick, wake := w.kick, w.wake
		if err != nil {
			kick, wake = nil, nil
			r.timer.Reset(troublePause)
		}
		select {
		case <-ctx.Done():
			return
		case <-kick:
			r.asked = true
		case <-r.timer.C:
			r.asked = true
		case <-wake:
		}
	}
}

func (w *worker) round(ctx context.Context, r *rounds) error {
	if err := w.heed(ctx); err != nil {
		return err
	}
	now := time.Now()
	if now.After(r.census) {
		if err := w.countEndpoints(ctx); err != nil {
			return err
		}
		r.census = now.Add(censusEvery)
	}
	if rest := r.rested.Sub(now); r.asked && rest > 0 {
		r.timer.Reset(rest)
	} else if r.asked {
		pause, err := w.look(ctx)
		if err != nil {
			return err
		}
		rest = max(surveyRest, surveyShare*time.Since(now))
		r.asked, r.rested = false, time.Now().Add(rest)
		r.timer.Reset(max(pause, rest))
	}
	return w.claim(ctx)
}

// tell logs when trouble begins and when it is over, not every round of it.
func (w *worker) tell(r *rounds, err error) {
	switch {
	case err != nil && !r.trouble:
		w.log.Error("webhooks cannot be taken; trying again", "error", err)
	case err == nil && r.trouble:
		w.log.Info("webhooks are taken again")
	}
	r.trouble = err != nil
}

func (w *worker) countEndpoints(ctx context.Context) error {
	active, inactive, err := w.census(ctx)
	if err != nil {
		return err
	}
	w.metrics.active.Set(float64(active))
	w.metrics.inactive.Set(float64(inactive))
	return nil
}

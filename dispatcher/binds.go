package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/smpp"
)

// binds are the one or more binds of a link: window and pace are the link's, and
// are shared by those of its binds that are up.
type binds struct {
	all    []*smpp.Bind
	window int
	turn   atomic.Uint64

	mu     sync.Mutex
	tps    float64
	shared []*smpp.Bind // binds that window and pace are shared by; nil: not yet

	may     bool                    // they may be up
	changed chan struct{}           // closed and made anew when may changes
	end     context.CancelCauseFunc // of those that are up; nil: none are
}

// newBinds makes a link's binds. The first is called like the link, the others
// by its name and a number. Of callbacks only the functions are used. retries are where the
// attempts had come to of whoever had the link before; nil: none were made.
func newBinds(d *Dispatcher, carrier string, conf *Link, callbacks smpp.Options, retries []smpp.Retry) (*binds, error) {
	n := max(conf.Binds, 1)
	b := &binds{tps: conf.TPS, may: true, changed: make(chan struct{})}
	for i := range n {
		options := conf.Options
		if i > 0 {
			options.Name = fmt.Sprintf("%s/%d", conf.Name, i+1)
		}
		options.Carrier, options.Log, options.Metrics = carrier, d.log, d.smpp
		options.Deliver, options.OnLate, options.OnCongestion, options.Class = callbacks.Deliver, callbacks.OnLate, callbacks.OnCongestion, callbacks.Class
		if options.Again = callbacks.Again; len(retries) > 0 {
			options.Retry = retries[min(i, len(retries)-1)]
		}
		b.window = options.Window
		bind, err := smpp.New(options)
		if err != nil {
			return nil, fmt.Errorf("link %s of carrier %s: %w", conf.Name, carrier, err)
		}
		b.all = append(b.all, bind)
	}
	b.balance()
	return b, nil
}

// run keeps all binds up until ctx ends, whenever they may be.
func (b *binds) run(ctx context.Context) {
	for ctx.Err() == nil {
		up, end := context.WithCancelCause(ctx)
		b.mu.Lock()
		may, changed := b.may, b.changed
		if may {
			b.end = end
		}
		b.mu.Unlock()
		if may {
			var running sync.WaitGroup
			for _, bind := range b.all {
				running.Go(func() { _ = bind.Run(up) }) // it logs its own end
			}
			running.Wait()
			b.mu.Lock()
			b.end = nil
			b.mu.Unlock()
		} else {
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
		end(nil)
	}
}

// allow says whether the binds may be up. When they may not any more they end within
// so long, whatever is unanswered.
func (b *binds) allow(may bool, within time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.may == may {
		return
	}
	b.may = may
	close(b.changed)
	b.changed = make(chan struct{})
	if !may && b.end != nil {
		b.end(smpp.Within(within))
	}
}

// up reports whether any bind can submit.
func (b *binds) up() bool {
	for _, bind := range b.all {
		if bind.Snapshot().State == smpp.Bound {
			return true
		}
	}
	return false
}

// waitBound waits until one bind can submit.
func (b *binds) waitBound(ctx context.Context) error {
	if len(b.all) == 1 {
		return b.all[0].WaitBound(ctx)
	}
	if b.up() {
		return nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	bound := make(chan error, len(b.all))
	for _, bind := range b.all {
		go func() { bound <- bind.WaitBound(waiting) }()
	}
	return <-bound
}

// next is the bind that takes the next message: they take turns, but one whose
// window is full (its carrier does not answer) holds up no message that another
// could take.
func (b *binds) next() *smpp.Bind {
	if len(b.all) == 1 {
		return b.all[0]
	}
	start := b.turn.Add(1)
	best := b.all[0]
	found := false
	for i := range uint64(len(b.all)) {
		bind := b.all[(start+i)%uint64(len(b.all))]
		snap := bind.Snapshot()
		if snap.State != smpp.Bound {
			continue
		}
		if snap.InFlight+snap.Waiting < snap.Window {
			return bind
		}
		if !found {
			best, found = bind, true
		}
	}
	return best
}

// SetTPS sets the link's pace.
func (b *binds) SetTPS(tps float64) {
	b.mu.Lock()
	b.tps, b.shared = tps, nil
	b.mu.Unlock()
	b.balance()
}

func (b *binds) setWindow(window int) {
	b.mu.Lock()
	b.window, b.shared = window, nil
	b.mu.Unlock()
	b.balance()
}

// idleRate is the pace of a bind that is not up while another is: should it
// come up, the two together stay within the link's pace until the next balance.
const idleRate = 0.1

// balance shares window and pace among the binds that are up.
func (b *binds) balance() {
	var up, down []*smpp.Bind
	for _, bind := range b.all {
		if bind.Snapshot().State == smpp.Bound {
			up = append(up, bind)
		} else {
			down = append(down, bind)
		}
	}
	if len(up) == 0 {
		up, down = b.all, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Equal(b.shared, up) {
		return
	}
	b.shared = up
	for _, bind := range down {
		bind.SetWindow(1)
		bind.SetTPS(idleRate)
	}
	for i, bind := range up {
		window := b.window / len(up)
		if i < b.window%len(up) {
			window++
		}
		bind.SetWindow(max(window, 1))
		bind.SetTPS(b.tps / float64(len(up)))
	}
}

// failing is how a link fares that may not come up.
type failing struct {
	up      time.Duration // for how long one of its binds has been up; 0: none is
	down    time.Duration // for how long the carrier was not reached by any, while they might; 0: it is
	resting bool          // some attempt has failed in that time, and none is under way
	retries []smpp.Retry
}

// failing says how the link fares.
func (b *binds) failing() (f failing) {
	failed, trying := 0, false
	for i, bind := range b.all {
		at := bind.Failing()
		f.retries = append(f.retries, at.Retry)
		failed, trying, f.up = failed+at.Failed, trying || at.Trying, max(f.up, at.Up)
		if i == 0 || at.Down < f.down {
			f.down = at.Down
		}
	}
	f.resting = failed > 0 && !trying && f.up == 0
	return f
}

func (b *binds) pause(paused bool) {
	for _, bind := range b.all {
		if paused {
			bind.Pause()
		} else {
			bind.Resume()
		}
	}
}

// snapshot is the link as a whole: as good as its best bind, its load summed.
func (b *binds) snapshot() smpp.Snapshot {
	whole := b.all[0].Snapshot()
	for _, bind := range b.all[1:] {
		snap := bind.Snapshot()
		whole.InFlight += snap.InFlight
		whole.Waiting += snap.Waiting
		whole.Overdue += snap.Overdue
		whole.Totals.Accepted += snap.Totals.Accepted
		whole.Totals.Throttled += snap.Totals.Throttled
		whole.Sessions += snap.Sessions
		whole.SessionsBound += snap.SessionsBound
		if rank(snap.State) > rank(whole.State) {
			whole.State, whole.Since = snap.State, snap.Since
		}
		if whole.LastError == "" {
			whole.LastError = snap.LastError
		}
	}
	b.mu.Lock()
	whole.Window, whole.TPS = b.window, b.tps
	b.mu.Unlock()
	return whole
}

func rank(s smpp.State) int {
	switch s {
	case smpp.Bound:
		return 3
	case smpp.Paused:
		return 2
	case smpp.Connecting:
		return 1
	}
	return 0
}

package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"intumwa/smpp"
)

// binds is one link of one or more binds: window and pace are the link's, and
// are shared by those of its binds that are up.
type binds struct {
	links  []*smpp.Link
	window int
	turn   atomic.Uint64

	mu     sync.Mutex
	tps    float64
	shared []*smpp.Link // binds that window and pace are shared by; nil: not yet
}

// newBinds makes a link's binds. The first is called like the link, the others
// by its name and a number. Of heed only what listens, and Class, is used.
func newBinds(d *Dispatcher, carrier string, conf *Link, heed smpp.Options) (*binds, error) {
	n := max(conf.Binds, 1)
	b := &binds{tps: conf.TPS}
	for i := range n {
		options := conf.Options
		if i > 0 {
			options.Name = fmt.Sprintf("%s/%d", conf.Name, i+1)
		}
		options.Carrier, options.Log, options.Metrics, options.Allowance = carrier, d.log, d.smpp, d.unsettled
		options.Deliver, options.OnLate, options.OnCongestion, options.Class = heed.Deliver, heed.OnLate, heed.OnCongestion, heed.Class
		b.window = options.Window
		link, err := smpp.New(options)
		if err != nil {
			return nil, fmt.Errorf("link %s of carrier %s: %w", conf.Name, carrier, err)
		}
		b.links = append(b.links, link)
	}
	b.balance()
	return b, nil
}

// run keeps all binds up until ctx ends.
func (b *binds) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, link := range b.links {
		running.Go(func() { _ = link.Run(ctx) }) // it logs its own end
	}
	running.Wait()
}

// up tells whether any bind can submit.
func (b *binds) up() bool {
	for _, link := range b.links {
		if link.Snapshot().State == smpp.Bound {
			return true
		}
	}
	return false
}

// waitBound waits until one bind can submit.
func (b *binds) waitBound(ctx context.Context) error {
	if len(b.links) == 1 {
		return b.links[0].WaitBound(ctx)
	}
	if b.up() {
		return nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	bound := make(chan error, len(b.links))
	for _, link := range b.links {
		go func() { bound <- link.WaitBound(waiting) }()
	}
	return <-bound
}

// next is the bind that takes the next message: they take turns, but one whose
// window is full (its carrier does not answer) holds up no message that another
// could take.
func (b *binds) next() *smpp.Link {
	if len(b.links) == 1 {
		return b.links[0]
	}
	start := b.turn.Add(1)
	best := b.links[0]
	found := false
	for i := range uint64(len(b.links)) {
		link := b.links[(start+i)%uint64(len(b.links))]
		snap := link.Snapshot()
		if snap.State != smpp.Bound {
			continue
		}
		if snap.InFlight+snap.Waiting < snap.Window {
			return link
		}
		if !found {
			best, found = link, true
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
	var up, down []*smpp.Link
	for _, link := range b.links {
		if link.Snapshot().State == smpp.Bound {
			up = append(up, link)
		} else {
			down = append(down, link)
		}
	}
	if len(up) == 0 {
		up, down = b.links, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Equal(b.shared, up) {
		return
	}
	b.shared = up
	for _, link := range down {
		link.SetWindow(1)
		link.SetTPS(idleRate)
	}
	for i, link := range up {
		window := b.window / len(up)
		if i < b.window%len(up) {
			window++
		}
		link.SetWindow(max(window, 1))
		link.SetTPS(b.tps / float64(len(up)))
	}
}

func (b *binds) pause(paused bool) {
	for _, link := range b.links {
		if paused {
			link.Pause()
		} else {
			link.Resume()
		}
	}
}

// snapshot is the link as a whole: as good as its best bind, its load summed.
func (b *binds) snapshot() smpp.Snapshot {
	whole := b.links[0].Snapshot()
	for _, link := range b.links[1:] {
		snap := link.Snapshot()
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

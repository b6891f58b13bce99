package links

import (
	"context"
	"fmt"
	"sync"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/smpp"
)

// Bind is a link's bind. It stays down while another process may hold the link.
type Bind struct {
	*smpp.Bind

	mu      sync.Mutex
	May     bool               // run may keep it up
	changed chan struct{}      // closed and replaced when may changes
	end     context.CancelFunc // of the current Run; nil: none
}

// NewBind makes the bind of a configured link. It uses only the log, the metrics and the functions of use.
func NewBind(carrier string, conf *setup.Link, use smpp.Options) (*Bind, error) {
	options := conf.Options
	options.Carrier, options.Log, options.Metrics = carrier, use.Log, use.Metrics
	options.Deliver, options.OnLate, options.Class, options.Busy, options.Reading = use.Deliver, use.OnLate, use.Class,
		use.Busy, use.Reading
	bind, err := smpp.New(options)
	if err != nil {
		return nil, fmt.Errorf("link %s of carrier %s: %w", conf.Name, carrier, err)
	}
	return &Bind{Bind: bind, May: true, changed: make(chan struct{})}, nil
}

// run keeps the bind up whenever allowed, until ctx ends.
func (b *Bind) run(ctx context.Context) {
	for ctx.Err() == nil {
		up, end := context.WithCancel(ctx)
		b.mu.Lock()
		may, changed := b.May, b.changed
		if may {
			b.end = end
		}
		b.mu.Unlock()
		if may {
			_ = b.Run(up) // it logs its own end
			b.mu.Lock()
			b.end = nil
			b.mu.Unlock()
		} else {
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
		end()
	}
}

// allow sets whether the bind may be up, and reports whether that changed. A bind that is no
// longer allowed ends in time within, even with submits unanswered, and also if it is ending already.
func (b *Bind) allow(may bool, within time.Duration) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.May == may {
		return false
	}
	b.May = may
	close(b.changed)
	b.changed = make(chan struct{})
	if !may && b.end != nil {
		b.end()
		b.EndWithin(within)
	}
	return true
}

// up reports whether the bind can submit.
func (b *Bind) up() bool { return b.Snapshot().State == smpp.Bound }

func (b *Bind) pause(paused bool) {
	if paused {
		b.Pause()
	} else {
		b.Resume()
	}
}

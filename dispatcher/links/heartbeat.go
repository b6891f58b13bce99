package links

import (
	"context"
	"slices"
	"sync"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/setup"
)

// Run keeps the leases until ctx ends, then stops the workers. A process that was taken for dead
// starts over.
func (m *Member) Run(ctx context.Context) {
	for registered := true; registered; registered = ctx.Err() == nil && m.Register(ctx) == nil {
		serving, replaced := context.WithCancel(ctx)
		renewing, end := context.WithCancel(context.WithoutCancel(ctx)) // also while the windows drain
		var keeper sync.WaitGroup
		keeper.Go(func() {
			m.Keep(renewing)
			replaced()
		})
		core.Repeat(serving, m.Log, "reporting the links", m.Opts.Heartbeat, m.Wake, m.Heartbeat)
		if ctx.Err() == nil {
			m.Log.Error("this dispatcher was taken for dead; it begins anew", "event", "dispatcher_replaced")
			for _, at := range m.Workers {
				at.leave() // another may hold the links
			}
		}
		m.Stop() // writes by the workers of a replaced process use its old id and change nothing
		end()
		keeper.Wait()
	}
}

// Heartbeat requests the leases of the configured links, reports the links' state, and starts
// and stops link workers accordingly.
func (m *Member) Heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.Opts.DeadAfter)
	defer cancel()
	wishes, now := m.wishes(), time.Now()
	if err := m.announce(ctx, wishes, now); err != nil {
		return err
	}
	if err := m.giveUp(ctx); err != nil {
		return err
	}
	held, err := m.lease(ctx, wishes, now)
	if err != nil {
		return err
	}
	if err := m.arrange(wishes, held); err != nil {
		return err
	}
	m.chooseGivenUp(held, now)
	return m.disown(ctx, wishes)
}

// arrange starts and ends link workers by configuration and leases. An ending worker
// first drains its window; only then may another start in its place.
func (m *Member) arrange(wishes map[string]wantedLink, held leasedLinks) error {
	for name, at := range m.Workers {
		w, wanted := wishes[name]
		_, ours := held[name]
		if wanted && !ours {
			at.leave() // another dispatcher holds the link
		}
		if !ours || !wanted || at.Carrier != w.carrier || !at.adopt(w.link) {
			at.end() // also if it is another link now
		}
		if at.ended() && !at.GivesUp.Load() {
			delete(m.Workers, name)
		}
	}
	for name, order := range held {
		at, w := m.Workers[name], wishes[name]
		if at == nil && m.drains(w.link) {
			continue
		}
		if at == nil {
			var err error
			if at, err = m.newWorker(w.carrier, w.link); err != nil {
				return err
			}
			m.Workers[name] = at
			at.start()
		}
		at.obey(order)
	}
	return nil
}

// drains reports whether an ending worker, under another name, still uses the bind of
// a link. A carrier may allow only one.
func (m *Member) drains(link *setup.Link) bool {
	for _, at := range m.Workers {
		if at.Ending.Load() && slices.Equal(at.conf.Addresses, link.Addresses) && at.conf.SystemID == link.SystemID {
			return true
		}
	}
	return false
}

// Stop ends all workers in parallel and waits for them.
func (m *Member) Stop() {
	for _, at := range m.Workers {
		at.end()
	}
	for name, at := range m.Workers {
		at.Wait()
		delete(m.Workers, name)
	}
}

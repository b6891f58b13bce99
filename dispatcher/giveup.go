package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A link whose carrier one machine alone cannot reach goes to another dispatcher: whoever
// holds it and for GiveUpAfter can neither bind it nor is refused gives it up, if another would take it, and
// leaves it to the others for a while (rests). Nobody can know from one machine whether it or
// the carrier is to blame. So the carrier must not notice: the other goes on with the attempts
// where this one stopped, at the pause that they had come to (smpp.Retry), and while the
// others rest the link stays with whoever has it.
//
// Who had the link bound last is the likeliest to bind it again when the carrier is back:
// another may never have reached it. So that one rests shortly, and the others for longer each
// time that they could not bind it.
//
// As with any lease one dispatcher has the link at a time: it is given up when the worker has
// ended, and with it every session.

const (
	giveUpAfter = 10 * time.Second
	// restFirst and restLongest are how long a link that was given up is left to the others; a
	// part of restFirst, if it was bound here last.
	restFirst, restLongest = time.Minute, 5 * time.Minute
	restPart               = 3
	// The next rest is the first again when the link has been bound here for restForgets, or
	// was not given up for restForgetsUnheld after the last one.
	restForgets, restForgetsUnheld = time.Minute, 30 * time.Minute
)

// givenUp is a link whose carrier this process could not reach.
type givenUp struct {
	until time.Time // it is left to the others
	rest  time.Duration
}

// again has the link rest once more, from now on: shortly if it was bound here last, else twice
// as long as the last time, if that is not long ago.
func (g *givenUp) again(first time.Duration, boundHere bool, now time.Time) {
	if now.Sub(g.until) > restForgetsUnheld {
		g.rest = 0
	}
	if boundHere {
		g.until = now.Add(first / restPart)
		return
	}
	g.rest = min(max(2*g.rest, first), max(first, restLongest))
	g.until = now.Add(g.rest)
}

// rests reports whether this process leaves a link to the others.
func (m *member) rests(link string, now time.Time) bool {
	g := m.givenUp[link]
	return g != nil && now.Before(g.until)
}

// chooseGivenUp ends the workers of links whose carrier was not reached for GiveUpAfter and that
// another dispatcher would take; they are given up once they have ended.
func (m *member) chooseGivenUp(held map[string]leasedLink, now time.Time) {
	others := *m.wanted.Load()
	for name, at := range m.workers {
		h, ours := held[name]
		if !ours || at.ending.Load() {
			continue
		}
		at.takers.Store(others[name])
		failing := at.binds.failing()
		if failing.up >= restForgets {
			delete(m.givenUp, name)
		}
		if !others[name] || !failing.resting || failing.down < m.d.opts.GiveUpAfter {
			continue
		}
		g := m.givenUp[name]
		if g == nil {
			g = &givenUp{}
			m.givenUp[name] = g
		}
		g.again(m.d.opts.RestFirst, h.boundHere, now)
		at.left = failing.retries
		at.parts.Store(true)
		at.end()
		m.d.metrics.givenUp.WithLabelValues(at.carrier.name, name).Inc()
		m.d.log.Warn("link is given up to another dispatcher: this one cannot reach the carrier", "carrier", at.carrier.name, "link", name,
			"for", failing.down.Round(time.Second).String(), "rests", g.until.Sub(now).String(), "error", at.binds.snapshot().LastError)
	}
}

// giveUp gives up the links whose workers have ended for it.
func (m *member) giveUp(ctx context.Context) error {
	for name, at := range m.workers {
		if !at.parts.Load() || !at.ended() {
			continue
		}
		left, err := json.Marshal(at.left)
		if err == nil {
			_, err = m.d.pool.Exec(ctx, `WITH given AS (DELETE FROM leases WHERE name = '`+linkLease+`' || $2 AND holder = $1 RETURNING 1)
				UPDATE links SET state = 'down', updated_at = now(), retries = $3::json WHERE name = $2 AND EXISTS (SELECT FROM given)`, m.id.Load(), name, string(left))
		}
		if err != nil {
			return fmt.Errorf("giving up a link: %w", err)
		}
		delete(m.workers, name)
	}
	return nil
}

package links

import (
	"context"
	"fmt"
	"time"

	"intumwa/dispatcher/core"
)

// A process may be the only one that cannot reach a carrier. If it cannot for GiveUpAfter and
// another process would take the link, it ends its worker and gives the lease up. Then it
// leaves the link to the others for GiveUpFor. While all others do the same, it keeps the link.

// gaveUp reports whether this process leaves a link to the others.
func (m *Member) gaveUp(link string, now time.Time) bool { return now.Before(m.givenUp[link]) }

// chooseGivenUp ends the workers of links whose carrier was unreachable for GiveUpAfter and
// that another dispatcher would take. giveUp then gives up their leases.
func (m *Member) chooseGivenUp(held leasedLinks, now time.Time) {
	others := *m.Wanted.Load()
	for name, at := range m.Workers {
		unreached := at.Bind.Unreached()
		if _, ours := held[name]; !ours || at.Ending.Load() || !others[name] || unreached < m.Opts.GiveUpAfter {
			continue
		}
		m.givenUp[name] = now.Add(m.Opts.GiveUpFor)
		at.GivesUp.Store(true)
		at.end()
		m.GivenUpTotal.WithLabelValues(at.Carrier.Name, name).Inc()
		m.Log.Warn("link is given up to another dispatcher: this one cannot reach the carrier", "event", "link_given_up",
			"carrier", at.Carrier.Name, "link", name,
			"for", unreached.Round(time.Second).String(), "rests", m.Opts.GiveUpFor.String(), "error",
			at.Bind.Snapshot().LastError)
	}
}

// giveUp gives up the links that chooseGivenUp chose and whose workers have ended.
func (m *Member) giveUp(ctx context.Context) error {
	for name, at := range m.Workers {
		if !at.GivesUp.Load() || !at.ended() {
			continue
		}
		if _, err := m.Pool.Exec(ctx, `WITH given AS (DELETE FROM leases WHERE name = '`+core.LinkLease+
			`' || $2 AND holder = $1 RETURNING 1)
			UPDATE links SET state = 'down', updated_at = now() WHERE name = $2 AND EXISTS (SELECT FROM given)`, m.ID.Load(),
			name); err != nil {
			return fmt.Errorf("giving up a link: %w", err)
		}
		delete(m.Workers, name)
	}
	return nil
}

package stories

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// apart has a story played in a network of its own; false: it was. Such a story begins
// with it. needs are what it wants built, each as a variable.
func apart(t *testing.T, needs ...func(*testing.T) string) bool {
	t.Helper()
	t.Parallel()
	busy(t)
	env := []string{binaryVariable + "=" + built.get(t)}
	for _, need := range needs {
		env = append(env, need(t))
	}
	return testenv.Apart(t, env...)
}

// fleet is four gateways, each on a host of its own: two take requests, two send.
func fleet(t *testing.T, s scene) *world {
	t.Helper()
	s.hosts = true
	s.gateways = []tree{
		{"name": "api-1", "roles": "api"}, {"name": "api-2", "roles": "api"},
		{"name": "dispatcher-1", "roles": "dispatcher,webhooks"}, {"name": "dispatcher-2", "roles": "dispatcher,webhooks"},
	}
	return play(t, s)
}

// apis and dispatchers are a fleet's.
func (w *world) apis() []*gateway        { return w.gateways[:2] }
func (w *world) dispatchers() []*gateway { return w.gateways[2:] }

// leader is the dispatcher that holds a link, nil: none, and the one that does not.
func (w *world) leader(link string) (leader, other *gateway) {
	w.t.Helper()
	name := ask[string](w, `SELECT coalesce((SELECT d.name FROM leases l JOIN dispatchers d ON d.id = l.holder WHERE l.name = 'link ' || $1), '')`, link)
	for _, g := range w.dispatchers() {
		if g.cmd != nil && strings.HasSuffix(name, "/"+g.process()) {
			leader = g
		} else {
			other = g
		}
	}
	return leader, other
}

// leads waits until a dispatcher holds a link, and answers which.
func (w *world) leads(link string) (leader, other *gateway) {
	w.t.Helper()
	w.eventually(15*time.Second, "a dispatcher holds "+link, func() bool {
		leader, other = w.leader(link)
		return leader != nil
	})
	return leader, other
}

// turns has the senders of a load use a fleet's APIs in turn.
func (w *world) turns(n int) *gateway { return w.apis()[n%2] }

// stalls measures for how long at most this machine lets wait what is due: by so much a
// carrier may see together what was apart.
type stalls struct{ worst atomic.Int64 }

func watchStalls(t *testing.T) *stalls {
	s, end, ended := new(stalls), make(chan struct{}), make(chan struct{})
	const nap = 2 * time.Millisecond
	go func() {
		defer close(ended)
		tick := time.NewTicker(nap)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-end:
				return
			case <-tick.C:
				now := time.Now()
				s.worst.Store(max(s.worst.Load(), int64(now.Sub(last)-nap)))
				last = now
			}
		}
	}()
	t.Cleanup(func() {
		close(end)
		<-ended
	})
	return s
}

// unseen is for how long another process may stand still without this one's seeing it.
const unseen = 100 * time.Millisecond

// above is how many submit_sm a second a carrier may see that is sent no more than tps.
func (s *stalls) above(tps int) int {
	return int(math.Ceil(float64(tps) * (1 + max(unseen, time.Duration(s.worst.Load())).Seconds())))
}

// keptBounds asks a carrier whose links have a system_id each, with so many binds and such
// a pace, whether it ever saw more.
func (s *smsc) keptBounds(machine *stalls, binds, tps int) {
	s.w.t.Helper()
	for _, a := range s.Accounts() {
		s.w.t.Logf("%s: %d binds at once at most, %d of %d submit_sm in a second at most (this machine stood still for %v)",
			a.SystemID, a.MostBound, a.Peak, tps, time.Duration(machine.worst.Load()).Round(time.Millisecond))
		if a.MostBound > binds {
			s.w.t.Errorf("%s had %d binds at once, and may have %d", a.SystemID, a.MostBound, binds)
		}
		if most := machine.above(tps); a.Peak > most {
			s.w.t.Errorf("%s sent %d in a second, and may send %d", a.SystemID, a.Peak, tps)
		}
	}
}

// silence is the longest time between two moments, of those that end after from and begin
// before until; both count as moments.
func silence(moments []time.Time, from, until time.Time) (longest time.Duration) {
	slices.SortFunc(moments, time.Time.Compare)
	last := from
	for _, at := range moments {
		switch {
		case at.Before(from):
			continue
		case at.After(until):
			return max(longest, until.Sub(last))
		}
		longest, last = max(longest, at.Sub(last)), at
	}
	return max(longest, until.Sub(last))
}

// carried are the moments at which the carrier took something.
func (s *smsc) carried() (moments []time.Time) {
	for _, submit := range s.accepted() {
		moments = append(moments, submit.At)
	}
	return moments
}

// acceptedBy are the moments at which an API of a fleet accepted something of a load that
// is over.
func (l *load) acceptedBy(api int) (moments []time.Time) {
	for i := range l.outcomes {
		if o := &l.outcomes[i]; o.accepted && o.sender%2 == api {
			moments = append(moments, o.at)
		}
	}
	return moments
}

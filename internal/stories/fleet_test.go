package stories

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// fleet is four gateways: two serve the API, two dispatch.
func fleet(t *testing.T, s scene) *world {
	t.Helper()
	s.gateways = []tree{
		{"name": "api-1", "roles": "api"}, {"name": "api-2", "roles": "api"},
		{"name": "dispatcher-1", "roles": "dispatcher,webhooks"}, {"name": "dispatcher-2", "roles": "dispatcher,webhooks"},
	}
	return play(t, s)
}

// apis and dispatchers are a fleet's gateways by role.
func (w *world) apis() []*gateway        { return w.gateways[:2] }
func (w *world) dispatchers() []*gateway { return w.gateways[2:] }

// leader returns the dispatcher that holds a link (nil: none), and the other.
func (w *world) leader(link string) (leader, other *gateway) {
	w.t.Helper()
	name := scalar[string](w, `SELECT coalesce((SELECT d.name FROM leases l JOIN dispatchers d ON d.id = l.holder
		WHERE l.name = 'link ' || $1), '')`, link)
	for _, g := range w.dispatchers() {
		if g.cmd != nil && strings.HasSuffix(name, "/"+g.process()) {
			leader = g
		} else {
			other = g
		}
	}
	return leader, other
}

// leads waits until a dispatcher holds a link, and returns both.
func (w *world) leads(link string) (leader, other *gateway) {
	w.t.Helper()
	w.eventually(15*time.Second, "a dispatcher holds "+link, func() bool {
		leader, other = w.leader(link)
		return leader != nil
	})
	return leader, other
}

// turns alternates a load's senders between the fleet's APIs.
func (w *world) turns(n int) *gateway { return w.apis()[n%2] }

// leaseOver exceeds the lifetime of a dispatcher's lease.
const leaseOver = 8 * time.Second

// Two APIs and two dispatchers. A dispatcher with links is frozen beyond its lease, then wakes. No carrier has two
// binds of one link at once, and no message is lost. One carrier closes the older of two binds; the other refuses the
// newer until the older has been silent for too long.
func TestFleetShares(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	const links, sleeps = 2, 4
	closing := steady()
	closing.own, closing.links = true, links
	closing.sim.MaxSessions, closing.sim.ClosesOlder = 1, true
	counting := carrier{own: true, link: tree{"enquire_link": "2s"},
		sim: carriersim.Options{NoFates: true, MaxSessions: 1, IdleTimeout: 6 * time.Second}}
	w := fleet(t, scene{carriers: []carrier{closing, counting}})
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 100_000, keyed: true, pause: 200 * time.Millisecond, at: w.turns})
	for sleep := range sleeps {
		leader, other := w.leads("lumitel-1")
		signal(t, leader, syscall.SIGSTOP)
		slept := time.Now()
		w.eventually(15*time.Second, "the other dispatcher has the links, bound", func() bool {
			holds, _ := w.leader("lumitel-1")
			also, _ := w.leader("lumitel-2")
			return holds == other && also == other && w.lumitel.Stats().Sessions == links
		})
		before := w.lumitel.Stats().Accepted
		w.eventually(10*time.Second, "it sends", func() bool { return w.lumitel.Stats().Accepted > before+20 })
		if sleep == 0 {
			counting := w.carriers[1]
			w.eventually(100*time.Second, "the carrier that counts binds takes the other's", func() bool {
				holds, _ := w.leader("leo-1")
				return holds == other && counting.Stats().Sessions == 1 && counting.Stats().Binds == 2
			})
		}
		<-time.After(time.Until(slept.Add(leaseOver))) // frozen at least this long
		signal(t, leader, syscall.SIGCONT)
		w.eventually(15*time.Second, "both dispatchers are there",
			func() bool { return scalar[int](w, `SELECT count(*) FROM dispatchers`) == 2 && leader.isReady() })
		if holds, _ := w.leads("lumitel-1"); holds != other {
			t.Errorf("%s woke and took its link back", leader.name)
		}
	}
	l.ends()
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * links * sleeps)
	for _, c := range w.carriers {
		for _, a := range c.Accounts() {
			if a.MostBound > 1 {
				t.Errorf("%s had %d binds at once", a.SystemID, a.MostBound)
			}
		}
	}
	if st := w.lumitel.Stats(); st.BindRefused != 0 || st.Replaced > uint64(links*sleeps) {
		t.Errorf("the carrier refused %d binds and closed %d in favour of newer ones; of %d sleepers it may close %d each",
			st.BindRefused, st.Replaced, sleeps, links)
	}
}

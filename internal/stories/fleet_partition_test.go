package stories

import (
	"net/http"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// recovered is by when all flows again after a cut; what was on its way is tried again at
// growing distances, as TCP does.
const recovered = 60 * time.Second

// Of a fleet two hosts at a time cannot reach each other, for as long as a few seconds, or
// longer than a lease: everything that is said between them is lost, without a word.
// Customers get 200 or 503, nothing is lost, nothing is charged that was refused, and no
// carrier sees more binds than there are: who is cut off from the database unbinds before
// another takes its place.
func TestFleetPartition(t *testing.T) {
	testenv.Long(t)
	if !apart(t) {
		return
	}
	one := steady()
	one.own, one.link = true, tree{"window": window, "enquire_link": "2s", "response_timeout": "2s"}
	// The carrier ends what is silent sooner than another dispatcher takes over, which may be
	// three and a half seconds after a cut, if a renewal was just due. Else the carrier has the binds
	// of both for a while, if the first cannot unbind.
	one.sim.IdleTimeout = 2500 * time.Millisecond
	w := fleet(t, scene{carriers: []carrier{one}})
	machine := watchStalls(t)
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 60_000, senders: 16, pause: 80 * time.Millisecond, at: w.turns})
	l.reaches(200)
	leading := func() *testenv.Host { g, _ := w.leads("lumitel-1"); return g.host }
	waiting := func() *testenv.Host { _, g := w.leads("lumitel-1"); return g.host }
	api := func() *testenv.Host { return w.apis()[0].host }
	// noticed is long enough for the carrier, too, to end what it does not hear. A cut that
	// ends before it does leaves it with the old bind beside the new one until TCP brings it
	// the end of the old one.
	const short, noticed, long = 3 * time.Second, 6 * time.Second, 9 * time.Second
	type cut struct {
		what  string
		host  func() *testenv.Host
		from  []*testenv.Host // nil: the dispatcher that waits
		lasts time.Duration
		twice bool // what was on the wire may arrive twice
		moves bool // another has the link by the end
	}
	cuts := []cut{
		{"the dispatcher that leads, from PostgreSQL", leading, []*testenv.Host{w.postgres}, long, true, false},
		{"the dispatcher that leads, from the carrier", leading, []*testenv.Host{w.lumitel.host}, noticed, true, false},
		{"one API, from everything but its customers", api, []*testenv.Host{w.postgres, w.stores, w.lumitel.host}, short, false, false},
		{"the dispatcher that leads, from Redis", leading, []*testenv.Host{w.stores}, short, false, false},
		{"the two dispatchers, from each other", leading, nil, short, false, false},
		{"one API, from PostgreSQL", api, []*testenv.Host{w.postgres}, short, false, false},
		{"one API, from Redis", api, []*testenv.Host{w.stores}, short, false, false},
		{"the dispatcher that leads, from PostgreSQL, for a blink", leading, []*testenv.Host{w.postgres}, time.Second, true, false},
		{"the dispatcher that waits, from PostgreSQL", waiting, []*testenv.Host{w.postgres}, long, false, false},
		{"the dispatcher that leads, from the carrier, until another has its link", leading, []*testenv.Host{w.lumitel.host}, time.Minute, true, true},
		{"the dispatcher that leads, from all three", leading, []*testenv.Host{w.lumitel.host, w.stores, w.postgres}, long, true, false},
		{"one API, from PostgreSQL, for longer", api, []*testenv.Host{w.postgres}, 20 * time.Second, false, false},
	}
	type span struct{ from, until time.Time }
	spans := make([]span, len(cuts))
	twice := 0
	for i, c := range cuts {
		from := c.from
		host := c.host()
		if from == nil {
			from = []*testenv.Host{waiting()}
		}
		if c.twice {
			twice += window
		}
		spans[i].from = time.Now()
		for _, other := range from {
			w.network.Cut(host, other)
		}
		<-time.After(c.lasts)
		if holds, _ := w.leader("lumitel-1"); c.moves && (holds == nil || holds.host == host) {
			t.Errorf("%s: nobody else has its link after %v", c.what, c.lasts)
		}
		for _, other := range from {
			w.network.Heal(host, other)
		}
		w.flows(l)
		spans[i].until = time.Now()
	}
	l.ends()
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(twice)
	for i, c := range cuts {
		at := spans[i]
		t.Logf("%s, cut off for %v: nothing carried for %v at most, nothing accepted by api-1 for %v, by api-2 for %v; all flows %v after it was healed",
			c.what, c.lasts, silence(w.lumitel.carried(), at.from, at.until).Round(10*time.Millisecond),
			silence(l.acceptedBy(0), at.from, at.until).Round(10*time.Millisecond), silence(l.acceptedBy(1), at.from, at.until).Round(10*time.Millisecond),
			(at.until.Sub(at.from) - c.lasts).Round(10*time.Millisecond))
	}
	w.lumitel.keptBounds(machine, 1, 10_000)
}

// flows waits until both APIs accept, a dispatcher carries, and both dispatchers are there.
func (w *world) flows(l *load) {
	w.t.Helper()
	for i, api := range w.apis() {
		w.eventually(recovered, api.name+" accepts", func() bool {
			return l.from.triesAt(w.apis()[i], w.number(), "Amahoro "+word()).status == http.StatusOK
		})
	}
	before := w.lumitel.Stats().Accepted
	w.eventually(recovered, "messages are carried", func() bool { return w.lumitel.Stats().Accepted > before+10 })
	w.eventually(recovered, "both dispatchers are there", func() bool {
		return ask[int](w, `SELECT count(*) FROM dispatchers WHERE seen_at > now() - interval '3 seconds'`) == 2
	})
}

package stories

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

// A carrier goes away for a while. Messages are accepted meanwhile, and all
// arrive when it is back.
func TestCarrierAwayForAWhile(t *testing.T) {
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}})
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 1500})
	l.reaches(400)
	w.lumitel.close()
	l.finishes()
	var links []struct {
		Link  string `json:"link"`
		State string `json:"state"`
	}
	w.eventually(5*time.Second, "operators see the link down or connecting", func() bool {
		w.orders(&links, "", "links")
		return len(links) == 1 && (links[0].State == "down" || links[0].State == "connecting")
	})
	w.lumitel.open()
	w.drains()
	l.onlyAnswers(http.StatusOK)
	l.adds(window)
	w.eventually(5*time.Second, "operators see the link bound", func() bool {
		w.orders(&links, "", "links")
		return len(links) == 1 && links[0].State == "bound"
	})
}

// The carrier breaks the connection in the middle of a window, again and
// again. What had no answer may arrive twice, nothing else.
func TestConnectionDroppedMidWindow(t *testing.T) {
	t.Parallel()
	busy(t)
	drops := 3 * chaos(10)
	w := play(t, scene{carriers: []carrier{steady()}})
	shop := w.company("Isoko", 1_000_000)
	messages := 500 * drops
	l := shop.sendsMany(&load{messages: messages})
	for drop := range drops {
		before := w.lumitel.Stats()
		w.eventually(20*time.Second, "messages flow", func() bool { return w.lumitel.Stats().Accepted > before.Accepted+50 })
		if drop%2 == 0 {
			w.lumitel.DropAll()
		} else {
			w.lumitel.ResetAll()
		}
		broken := time.Now()
		// The more often it breaks, the longer is waited: 1 s growing to 30 s.
		w.eventually(35*time.Second, "a new bind", func() bool { return w.lumitel.Stats().Binds > before.Binds })
		t.Logf("drop %d: bound again after %v", drop+1, time.Since(broken).Round(time.Millisecond))
	}
	l.finishes()
	l.onlyAnswers(http.StatusOK)
	l.adds(window * drops)
}

// The carrier answers nothing any more but keeps the connection: nothing is
// sent twice while it says that it lives.
func TestCarrierThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	busy(t)
	sim := steady()
	sim.link["response_timeout"], sim.link["enquire_link"] = "1s", "1s"
	w := play(t, scene{carriers: []carrier{sim}})
	shop := w.company("Isoko", 1_000_000)
	w.lumitel.Faults(func(f *carriersim.Faults) { f.SubmitSilent = true })
	const messages = 3 * window
	l := shop.sendsMany(&load{messages: messages, senders: 8})
	l.finishes()
	w.eventually(10*time.Second, "the window is full", func() bool { return w.lumitel.Stats().Submits >= window })
	asked := w.lumitel.Stats().Enquiries
	w.eventually(15*time.Second, "the carrier is asked whether it lives", func() bool { return w.lumitel.Stats().Enquiries >= asked+3 })
	if stats := w.lumitel.Stats(); stats.Submits != window || stats.Duplicates != 0 || stats.Binds != 1 {
		t.Errorf("while nothing is answered the carrier got %d submit_sm, %d of them twice, over %d binds; want a window of %d over one",
			stats.Submits, stats.Duplicates, stats.Binds, window)
	}
	// It comes to its senses, but what it owes it has forgotten.
	w.lumitel.Faults(func(f *carriersim.Faults) { f.SubmitSilent = false })
	w.lumitel.DropAll()
	l.adds(window)
}

// Two gateways on one database and one Redis: each link is bound once. The one
// that holds it is killed; the other takes over.
func TestTwoGateways(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(10)
	pair := steady()
	pair.links = 2
	w := play(t, scene{carriers: []carrier{pair}, gateways: []tree{{}, {}}})
	shop := w.company("Isoko", 1_000_000)
	messages := 1500 * kills
	l := shop.sendsMany(&load{messages: messages, keyed: true, at: func(n int) *gateway { return w.gateways[n%2] }})
	for kill := range kills {
		l.reaches(kill*messages/kills + 300)
		for _, c := range w.carriers {
			if n := c.Stats().Sessions; n != c.binds {
				t.Errorf("the carrier has %d binds of two links, want %d", n, c.binds)
			}
		}
		holder, other := w.holder("lumitel-1")
		holder.kill()
		killed := time.Now()
		w.eventually(12*time.Second, "the other gateway holds the link", func() bool {
			now, _ := w.holder("lumitel-1")
			return now == other && w.lumitel.Stats().Sessions == w.lumitel.binds
		})
		before := w.lumitel.Stats().Accepted
		w.eventually(5*time.Second, "messages flow", func() bool { return w.lumitel.Stats().Accepted > before })
		t.Logf("kill %d of %s: messages flow again after %v", kill+1, holder.name, time.Since(killed).Round(time.Millisecond))
		holder.start()
	}
	l.adds(2 * window * kills)
	if n := w.lumitel.Stats().Sessions; n != w.lumitel.binds {
		t.Errorf("in the end the carrier has %d binds of two links, want %d", n, w.lumitel.binds)
	}
}

// holder is the gateway that holds a link, and one that does not.
func (w *world) holder(link string) (holder, other *gateway) {
	w.t.Helper()
	name := ask[string](w, `SELECT coalesce((SELECT d.name FROM leases l JOIN dispatchers d ON d.id = l.holder WHERE l.name = 'link ' || $1), '')`, link)
	for _, g := range w.gateways {
		if g.cmd != nil && strings.HasSuffix(name, "/"+g.process()) {
			holder = g
		} else if g.cmd != nil {
			other = g
		}
	}
	return holder, other
}

// Each role is a process of its own.
func TestRolesApart(t *testing.T) {
	t.Parallel()
	busy(t)
	w := play(t, scene{
		carriers: []carrier{steady()},
		gateways: []tree{{"roles": "api"}, {"roles": "dispatcher"}, {"roles": "webhooks"}},
	})
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 600})
	l.finishes()
	l.onlyAnswers(http.StatusOK)
	l.adds(0)
	for _, g := range w.gateways[1:] {
		if a := shop.triesAt(g, w.number(), "Amahoro mwese"); a.err == nil {
			t.Errorf("%s has no API and answers %d", g.name, a.status)
		}
	}
}

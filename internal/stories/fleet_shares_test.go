package stories

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// leaseOver is longer than a dispatcher may be silent.
const leaseOver = 8 * time.Second

// Two hosts take requests and two send, over links with a pace. The
// carriers see neither exceeded, whoever holds the links, also while the one that did
// sleeps for longer than its lease, and when it wakes. Nothing is lost, and the pace is kept.
// Of two carriers, one closes the older of two binds, and one refuses the newer until the
// older has been silent for too long.
func TestFleetShares(t *testing.T) {
	testenv.Long(t)
	if !apart(t) {
		return
	}
	const tps, links = 60, 2
	const sleeps = 4
	closing := steady()
	closing.own, closing.links, closing.link = true, links, tree{"window": window, "tps": tps}
	closing.sim.MaxSessions, closing.sim.ClosesOlder = 1, true
	counting := carrier{own: true, link: tree{"tps": tps, "enquire_link": "2s"},
		sim: carriersim.Options{NoFates: true, MaxSessions: 1, IdleTimeout: 6 * time.Second}}
	w := fleet(t, scene{carriers: []carrier{closing, counting}})
	shop := w.company("Isoko", 1_000_000)
	machine := watchStalls(t)
	const messages = 1800*sleeps + 60*tps*links // the carrier that counts binds may be waited for so long
	l := shop.sendsMany(&load{messages: messages, keyed: true, at: w.turns})
	for sleep := range sleeps {
		w.carriesAt(tps*links, 2*time.Second)
		leader, other := w.leads("lumitel-1")
		refused := w.carriers[1].Stats().BindRefused
		signal(t, leader, syscall.SIGSTOP)
		slept := time.Now()
		w.eventually(15*time.Second, "the other dispatcher has the links, bound", func() bool {
			holds, _ := w.leader("lumitel-1")
			also, _ := w.leader("lumitel-2")
			return holds == other && also == other && w.lumitel.Stats().Sessions == links
		})
		before := w.lumitel.Stats().Accepted
		w.eventually(10*time.Second, "it sends", func() bool { return w.lumitel.Stats().Accepted > before+20 })
		t.Logf("sleep %d of %s: sending again after %v", sleep+1, leader.name, time.Since(slept).Round(time.Millisecond))
		if sleep == 0 {
			counting := w.carriers[1]
			w.eventually(100*time.Second, "the carrier that counts binds takes the other's", func() bool {
				holds, _ := w.leader("leo-1")
				return holds == other && counting.Stats().Sessions == 1 && counting.Stats().Binds == 2
			})
			t.Logf("the carrier that counts binds, and closes those that were silent for 6 s, took the other's after %v, having refused %d",
				time.Since(slept).Round(time.Millisecond), counting.Stats().BindRefused-refused)
		}
		<-time.After(time.Until(slept.Add(leaseOver))) // so long it sleeps at least
		signal(t, leader, syscall.SIGCONT)
		w.eventually(15*time.Second, "both dispatchers are there", func() bool { return ask[int](w, `SELECT count(*) FROM dispatchers`) == 2 && leader.isReady() })
		if holds, _ := w.leads("lumitel-1"); holds != other {
			t.Errorf("%s woke and took its link back", leader.name)
		}
	}
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * links * sleeps)
	w.lumitel.keptBounds(machine, 1, tps)
	w.carriers[1].keptBounds(machine, 1, tps)
	if st := w.lumitel.Stats(); st.BindRefused != 0 || st.Replaced > uint64(links*sleeps) {
		t.Errorf("the carrier refused %d binds and closed %d in favour of newer ones; of %d sleepers it may close %d each",
			st.BindRefused, st.Replaced, sleeps, links)
	}
}

// carriesAt waits until the carrier has got so many a second for a while, and says at which
// rate it did. A machine with much else to do may be half as quick.
func (w *world) carriesAt(tps int, while time.Duration) {
	w.t.Helper()
	want := uint64(float64(tps) * while.Seconds())
	began, before := time.Now(), w.lumitel.Stats().Accepted
	w.eventually(2*while+5*time.Second, "messages flow at their pace", func() bool { return w.lumitel.Stats().Accepted >= before+want })
	w.t.Logf("%.0f a second of %d", float64(w.lumitel.Stats().Accepted-before)/time.Since(began).Seconds(), tps)
}

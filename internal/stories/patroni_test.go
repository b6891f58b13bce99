package stories

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// event is a fault of a cluster under load.
type event struct {
	name string
	// play causes the fault and returns when it is over.
	play func(*under)
	// at most so long without a 200; a busy machine takes longer than docs/patroni.md says.
	within time.Duration
}

// under is a cluster under load.
type under struct {
	*world
	load *load
}

// refused waits until requests get 503 after a fault.
func (u *under) refused(fault func()) { u.t.Helper(); u.load.isRefused(fault, time.Minute) }

// lasts lets traffic run for a span of an outage.
func lasts(span time.Duration) { <-time.After(span) }

// Three PostgreSQL servers run under Patroni with strict synchronous mode. Nodes are killed, suspended and switched,
// standbys and etcd are lost. Customers get only 200 or 503; every 200 arrives, and the ledger is exact. The longest
// times without a 200 are logged.
func TestPatroni(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}, patroni: true,
		config: tree{"database": tree{"require_standby": true}}})
	c := w.patroni
	events := []event{
		{"the leader is killed with its Patroni", func(u *under) {
			old := c.Leader()
			u.refused(old.Crash)
			u.goesOn(u.load)
			old.Start()
		}, time.Minute},
		{"the leader is suspended with its Patroni, and wakes", func(u *under) {
			old := c.Leader()
			u.refused(old.Freeze)
			u.goesOn(u.load)
			old.Thaw()
		}, time.Minute},
		{"a switchover", func(u *under) {
			old := c.Leader()
			c.Ctl("switchover", "--leader", old.Name, "--candidate", c.Synchronous().Name, "--force")
			u.goesOn(u.load)
			if now := c.Leader(); now == nil || now.Name == old.Name {
				t.Errorf("%s leads still", old.Name)
			}
		}, 30 * time.Second},
		{"the synchronous standby is killed", func(u *under) {
			lost := c.Synchronous()
			lost.Crash()
			lasts(10 * time.Second)
			u.goesOn(u.load)
			lost.Start()
		}, 30 * time.Second},
		{"both standbys are away for ten seconds", func(u *under) {
			lost := u.standbys()
			u.refused(func() { lost[0].Crash(); lost[1].Crash() })
			lasts(10 * time.Second)
			lost[0].Start()
			u.goesOn(u.load)
			lost[1].Start()
		}, 2 * time.Minute},
		{"both standbys are lost, and the operator does without", func(u *under) {
			lost := u.standbys()
			u.refused(func() { lost[0].Crash(); lost[1].Crash() })
			c.Set("synchronous_mode=false")
			begin := time.Now()
			u.goesOn(u.load)
			t.Logf("20 messages are accepted %v after synchronous_mode=false", time.Since(begin).Round(100*time.Millisecond))
			lost[0].Start()
			lost[1].Start()
			c.Set("synchronous_mode=true")
		}, time.Minute},
		{"etcd is away for 30 s", func(u *under) {
			u.refused(c.Etcd.Stop)
			lasts(30 * time.Second)
			c.Etcd.Start()
			u.goesOn(u.load)
		}, 90 * time.Second},
		{"etcd is away for 30 s, with failsafe_mode", func(u *under) {
			c.Set("failsafe_mode=true")
			u.eventually(time.Minute, "every node knows the others", func() bool { return c.Failsafe() })
			c.Etcd.Stop()
			lasts(30 * time.Second)
			c.Etcd.Start()
			u.goesOn(u.load)
		}, 5 * time.Second},
	}
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 200_000, pause: time.Second})
	u := &under{w, l}
	var begins []time.Time
	for _, e := range events {
		l.reaches(int(l.accepted.Load()) + 50)
		begins = append(begins, time.Now())
		e.play(u)
		c.Healthy()
		w.goesOn(l)
	}
	l.ends()
	begins = append(begins, time.Now())
	for i, e := range events {
		pause := l.silence(begins[i], begins[i+1])
		t.Logf("%s: %v without a 200", e.name, pause.Round(100*time.Millisecond))
		if pause > e.within {
			t.Errorf("%s: %v without a 200, want at most %v", e.name, pause, e.within)
		}
	}
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * len(events))
}

// standbys are the two nodes that do not lead.
func (u *under) standbys() []*testenv.PatroniNode {
	u.t.Helper()
	leader := u.patroni.Leader()
	return slices.DeleteFunc(slices.Clone(u.patroni.Nodes), func(n *testenv.PatroniNode) bool { return n == leader })
}

// silence is the longest time without a 200 in a span of a load that has ended.
func (l *load) silence(from, to time.Time) time.Duration {
	l.running.Wait()
	at := []time.Time{from, to}
	for _, o := range l.outcomes {
		if o.accepted && o.at.After(from) && o.at.Before(to) {
			at = append(at, o.at)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	longest := time.Duration(0)
	for i := range at[1:] {
		longest = max(longest, at[i+1].Sub(at[i]))
	}
	return longest
}

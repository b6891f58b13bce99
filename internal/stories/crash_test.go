package stories

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

const (
	// window of the links in the stories that count duplicates.
	window = 20
	// submittingWithin is promised after a start (rule choices 7.7).
	submittingWithin = 10 * time.Second
)

// steady is a carrier that delivers everything and takes a moment to answer, so
// that its window is always in use.
func steady() carrier {
	return carrier{
		sim:  carriersim.Options{NoFates: true, RespDelay: 10 * time.Millisecond, ReceiptDelay: 20 * time.Millisecond, RedeliverDelay: 500 * time.Millisecond},
		link: tree{"window": window},
	}
}

// The gateway is killed while it works, and started again. Nothing is lost,
// nothing is charged twice, and of what was on the wire at that moment at most
// a window arrives twice.
func TestKilledMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(20)
	w := play(t, scene{carriers: []carrier{steady()}})
	shop := w.company("Isoko", 1_000_000)
	messages := 1500 * kills
	l := shop.sendsMany(&load{messages: messages, keyed: true})
	for kill := range kills {
		// A random moment within this kill's share of the load.
		share := messages / (kills + 1)
		l.reaches(kill*share + share/2 + rand.IntN(share/2))
		w.gateway.kill()
		before := w.lumitel.left()
		waiting := ask[int](w, `SELECT count(*) FROM outbox`)
		w.gateway.start()
		if !w.comesTrue(submittingWithin-time.Since(w.gateway.started), func() bool { return w.lumitel.Stats().Accepted > before }) {
			t.Errorf("after kill %d nothing was submitted within %v of the start, %d messages waited", kill+1, submittingWithin, waiting)
		}
		t.Logf("kill %d: %d messages waited; submitting again %v after the start", kill+1, waiting, time.Since(w.gateway.started).Round(time.Millisecond))
	}
	l.finishes()
	w.drains()
	l.adds(window * kills)
}

// The same with a carrier that is not to be sent again what it may have
// (on_ambiguous: hold): nothing arrives twice. What was on the wire is settled by
// its receipts, which echo the reference; what was only about to go out waits
// for the deadline, and that is never more than a window a kill.
func TestKilledWithHold(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(10)
	holding := steady()
	holding.sim.EchoReference = true
	holding.config = tree{"on_ambiguous": "hold"}
	w := play(t, scene{carriers: []carrier{holding}})
	shop := w.company("Isoko", 1_000_000)
	messages := 1000 * kills
	l := shop.sendsMany(&load{messages: messages, keyed: true})
	for kill := range kills {
		share := messages / (kills + 1)
		l.reaches(kill*share + share/2 + rand.IntN(share/2))
		w.gateway.kill()
		before := w.lumitel.left()
		w.gateway.start()
		w.eventually(submittingWithin, "the gateway submits again", func() bool { return w.lumitel.Stats().Accepted > before })
	}
	l.finishes()
	w.drains()
	pending := func() int { return ask[int](w, `SELECT count(*) FROM messages WHERE status = 0`) }
	w.eventually(settledWithin, "all are settled but those that were about to go out", func() bool { return pending() <= window*kills })
	st := w.lumitel.Stats()
	if st.Duplicates != 0 {
		t.Errorf("%d messages arrived twice", st.Duplicates)
	}
	w.eventually(settledWithin, "every message that the carrier has is settled", func() bool {
		return ask[int](w, `SELECT count(*) FROM messages WHERE status = 1`) == int(st.Accepted)
	})
	if n := ask[int](w, `SELECT count(*) FROM messages`); n != messages || pending()+int(st.Accepted) != messages {
		t.Errorf("%d messages: %d came to the carrier, %d wait for the deadline; want %d", n, st.Accepted, pending(), messages)
	}
	w.audited()
	t.Logf("%d kills: %d of %d messages wait for the deadline, none arrived twice", kills, pending(), messages)
}

// The gateway is told to end while it works. It ends in good order within ten
// seconds; nothing is lost and nothing arrives twice.
func TestTerminatedMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	ends := chaos(10)
	w := play(t, scene{carriers: []carrier{steady()}})
	shop := w.company("Isoko", 1_000_000)
	messages := 1500 * ends
	l := shop.sendsMany(&load{messages: messages, keyed: true})
	for end := range ends {
		l.reaches((2*end + 1) * messages / (2*ends + 1))
		before := w.lumitel.Stats().Unbinds
		code, took := w.gateway.terminate()
		if code != 0 || took > endWithin {
			t.Errorf("the gateway ended with code %d, %v after SIGTERM; want 0 within %v", code, took, endWithin)
		}
		w.eventually(finalWithin, "the carrier saw an unbind", func() bool { return w.lumitel.Stats().Unbinds > before })
		t.Logf("end %d took %v", end+1, took.Round(time.Millisecond))
		w.gateway.start()
	}
	l.adds(0)
}

// The gateway's process sleeps longer than it may, and another takes its links.
// When it wakes, it changes nothing that is the other's by now.
func TestFrozenMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	sleeps := chaos(20)
	w := play(t, scene{carriers: []carrier{steady()}, gateways: []tree{{}, {}}})
	shop := w.company("Isoko", 1_000_000)
	for sleep := range sleeps {
		holder, other := w.holder("lumitel-1")
		l := shop.sendsMany(&load{messages: 1200, keyed: true, at: func(int) *gateway { return other }})
		l.reaches(200 + rand.IntN(200))
		signal(t, holder, syscall.SIGSTOP)
		frozen := time.Now()
		w.eventually(12*time.Second, "the other gateway has the link", func() bool { now, _ := w.holder("lumitel-1"); return now == other })
		before := w.lumitel.Stats().Accepted
		w.eventually(10*time.Second, "the other gateway submits", func() bool { return w.lumitel.Stats().Accepted > before+2*window })
		t.Logf("sleep %d: replaced after %v", sleep+1, time.Since(frozen).Round(time.Millisecond))
		l.reaches(800)
		signal(t, holder, syscall.SIGCONT)
		l.finishes()
		l.adds(window)
	}
}

func signal(t *testing.T, g *gateway, s syscall.Signal) {
	t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

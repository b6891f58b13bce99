package stories

import (
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// window of the links in stories that count duplicates.
const window = 20

// steady is a carrier that delivers everything with a short delay, so that its window is
// always in use.
func steady() carrier {
	return carrier{
		sim: carriersim.Options{NoFates: true, RespDelay: 10 * time.Millisecond, ReceiptDelay: 20 * time.Millisecond,
			RedeliverDelay: 500 * time.Millisecond},
		link: tree{"window": window},
	}
}

// sendsWhileKilled kills and restarts the gateway at random moments under load, until the carrier has everything.
func (c *company) sendsWhileKilled(kills int) *load {
	w := c.w
	w.t.Helper()
	messages := 800 * kills
	l := c.sendsMany(&load{messages: messages, keyed: true})
	for kill := range kills {
		share := messages / (kills + 1)
		l.reaches(kill*share + share/2 + rand.IntN(share/2))
		w.gateway.kill()
		before := w.lumitel.left()
		w.gateway.start()
		w.eventually(onTheWayWithin, "messages are submitted again",
			func() bool { return w.lumitel.Stats().Accepted > before })
	}
	l.finishes()
	w.drains()
	return l
}

// The gateway is killed under load and restarted. No message is lost or charged twice,
// and at most one window of submits arrives twice.
func TestKilledMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(20)
	w := play(t, scene{carriers: []carrier{steady()}})
	w.company("Isoko", 1_000_000).sendsWhileKilled(kills).adds(window * kills)
}

// The carrier drops its connections and stays away for a while. No message is lost, and each
// time at most one window arrives twice.
func TestCarrierGoneMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	times := chaos(10)
	w := play(t, scene{carriers: []carrier{steady()}})
	l := w.company("Isoko", 1_000_000).sendsMany(&load{messages: 1000 * times})
	for n := range times {
		l.reaches(1000*n + 300)
		w.lumitel.ResetAll()
		l.reaches(1000*n + 600)
		w.lumitel.close()
		l.reaches(1000*n + 900)
		w.lumitel.open()
	}
	l.onlyAnswers(http.StatusOK)
	l.adds(2 * window * times)
}

// With on_ambiguous: hold, nothing arrives twice. Submits in flight are settled by their
// receipts, which echo the reference. Unwritten ones wait for the deadline, at most a
// window per kill.
func TestKilledWithHold(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	const kills = 10
	holding := steady()
	holding.sim.EchoReference = true
	holding.config = tree{"on_ambiguous": "hold"}
	w := play(t, scene{carriers: []carrier{holding}})
	messages := w.company("Isoko", 1_000_000).sendsWhileKilled(kills).messages
	pending := func() int { return scalar[int](w, `SELECT count(*) FROM messages WHERE status = 0`) }
	w.shrinks("pending that were not about to go out", settledWithin, func() int { return pending() - window*kills })
	st := w.lumitel.Stats()
	if st.Duplicates != 0 {
		t.Errorf("%d messages arrived twice", st.Duplicates)
	}
	w.shrinks("pending at the carrier", settledWithin,
		func() int { return int(st.Accepted) - scalar[int](w, `SELECT count(*) FROM messages WHERE status = 1`) })
	if n := scalar[int](w, `SELECT count(*) FROM messages`); n != messages || pending()+int(st.Accepted) != messages {
		t.Errorf("%d messages: %d came to the carrier, %d wait for the deadline; want %d", n, st.Accepted, pending(),
			messages)
	}
	t.Logf("%d kills: %d of %d messages wait for the deadline, none arrived twice", kills, pending(), messages)
}

// PostgreSQL hangs with open connections when the gateway gets SIGTERM. The gateway ends in time, and the next one
// continues.
func TestTerminatedWhilePostgresHangs(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}, ownPostgres: true})
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 1000, keyed: true})
	l.reaches(300)
	w.postgresServer.Freeze()
	t.Logf("with the database hanging it ended with code %d", w.gateway.ends())
	w.postgresServer.Thaw()
	w.gateway.start()
	l.adds(window)
}

func signal(t *testing.T, g *gateway, s syscall.Signal) {
	t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

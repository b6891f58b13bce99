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

// window of the links in the stories that count duplicates.
const window = 20

// steady is a carrier that delivers everything and takes a moment to answer, so
// that its window is always in use.
func steady() carrier {
	return carrier{
		sim:  carriersim.Options{NoFates: true, RespDelay: 10 * time.Millisecond, ReceiptDelay: 20 * time.Millisecond, RedeliverDelay: 500 * time.Millisecond},
		link: tree{"window": window},
	}
}

// sendsWhileKilled sends under load while the gateway is killed at random moments and started again, until all is with the carrier.
func (c *company) sendsWhileKilled(kills int) *load {
	w := c.w
	w.t.Helper()
	messages := 1500 * kills
	l := c.sendsMany(&load{messages: messages, keyed: true})
	for kill := range kills {
		share := messages / (kills + 1)
		l.reaches(kill*share + share/2 + rand.IntN(share/2))
		w.gateway.kill()
		before := w.lumitel.left()
		w.gateway.start()
		w.eventually(onTheWayWithin, "messages are submitted again", func() bool { return w.lumitel.Stats().Accepted > before })
	}
	l.finishes()
	w.drains()
	return l
}

// The gateway is killed while it works, and started again. Nothing is lost,
// nothing is charged twice, and of what was on the wire at that moment at most
// a window arrives twice.
func TestKilledMidLoad(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(20)
	w := play(t, scene{carriers: []carrier{steady()}})
	w.company("Isoko", 1_000_000).sendsWhileKilled(kills).adds(window * kills)
}

// The carrier breaks its connections and is then away. Nothing is lost, and of what was on the
// wire each time at most a window arrives twice.
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

// The same with a carrier that is not to be sent again what it may have
// (on_ambiguous: hold): nothing arrives twice. What was on the wire is settled by
// its receipts, which echo the reference; what was only about to go out waits
// for the deadline, and that is never more than a window a kill.
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
	t.Logf("%d kills: %d of %d messages wait for the deadline, none arrived twice", kills, pending(), messages)
}

// PostgreSQL hangs, its connections open, and the gateway is told to end. It ends within its time; the next one carries
// everything on.
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

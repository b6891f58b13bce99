package stories

import (
	"net/http"
	"testing"
	"time"
)

// All processes of the PostgreSQL primary die at once, and its synchronous standby is
// promoted. Customers get only 200 or 503; every 200 arrives, the ledger is exact, and
// sending continues after the promotion. A metric shows that the new primary has no
// standby until it gets one.
func TestPostgresFailsOver(t *testing.T) {
	t.Parallel()
	busy(t)
	deaths := chaos(4)
	w := play(t, scene{carriers: []carrier{steady()}, standby: true,
		config: tree{"database": tree{"require_standby": true}}})
	shop := w.company("Isoko", 1_000_000)
	// more than outages can use up
	l := shop.sendsMany(&load{messages: 40_000 * deaths, senders: 16, pause: 50 * time.Millisecond})
	for death := range deaths {
		l.reaches(int(l.accepted.Load()) + 300)
		l.isRefused(w.postgresPair.Crash, 15*time.Second)
		w.postgresPair.Promote()
		w.goesOn(l)
		w.pool.Reset()
		if deaths > 1 && death == deaths-1 { // probed once a minute
			w.eventually(90*time.Second, "it is output that commits wait for no standby", func() bool {
				return w.gateway.metric("intumwa_database_standby_ok") == 0
			})
		}
		w.postgresPair.Follow()
	}
	l.ends()
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * deaths)
	if deaths > 1 {
		w.eventually(90*time.Second, "commits wait for the new standby", func() bool {
			return w.gateway.metric("intumwa_database_standby_ok") == 1
		})
	}
}

// goesOn waits until messages are accepted and delivered again.
func (w *world) goesOn(l *load) {
	w.t.Helper()
	accepted, carried := l.accepted.Load(), w.lumitel.Stats().Accepted
	w.eventually(time.Minute, "messages are accepted and carried again", func() bool {
		return l.accepted.Load() > accepted+20 && w.lumitel.Stats().Accepted > carried+20
	})
}

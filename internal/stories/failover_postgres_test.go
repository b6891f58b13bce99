package stories

import (
	"net/http"
	"testing"
	"time"
)

// sendingWithin is promised after a standby was promoted.
const sendingWithin = 10 * time.Second

// The primary of PostgreSQL dies, all of its processes at once, and its synchronous
// standby is promoted. Customers get 200 or 503 and nothing else; every 200 arrives, the
// ledger is exact, and sending goes on within ten seconds of the promotion. That the new
// primary has no standby is said; then it gets one.
func TestPostgresFailsOver(t *testing.T) {
	t.Parallel()
	busy(t)
	deaths := chaos(4)
	w := play(t, scene{carriers: []carrier{steady()}, standby: true, config: tree{"database": tree{"require_standby": true}}})
	shop := w.company("Isoko", 1_000_000)
	messages := 4000 * deaths
	l := shop.sendsMany(&load{messages: messages, pause: 40 * time.Millisecond})
	for death := range deaths {
		l.reaches(min(int(l.accepted.Load())+400, messages))
		l.isRefused(w.postgresPair.Crash, 15*time.Second)
		w.goesOnAfter(l, death, w.postgresPair.Promote)
		w.pool.Reset()
		if deaths > 1 && death == deaths-1 { // it is asked once a minute
			w.eventually(90*time.Second, "it is said that commits wait for no standby", func() bool {
				return w.gateway.metric("intumwa_database_standby_ok") == 0
			})
		}
		w.postgresPair.Follow()
	}
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * deaths)
	if deaths > 1 {
		w.eventually(90*time.Second, "commits wait for the new standby", func() bool {
			return w.gateway.metric("intumwa_database_standby_ok") == 1
		})
	}
}

// goesOnAfter promotes, and measures until when messages are accepted and carried again.
func (w *world) goesOnAfter(l *load, death int, promote func()) {
	w.t.Helper()
	began := time.Now()
	promote()
	promoted := time.Now()
	accepted, carried := l.accepted.Load(), w.lumitel.Stats().Accepted
	w.eventually(time.Minute, "messages are accepted and carried again", func() bool {
		return l.accepted.Load() > accepted+20 && w.lumitel.Stats().Accepted > carried+20
	})
	took := time.Since(promoted)
	w.t.Logf("death %d: promoted within %v; accepting and carrying again %v later", death+1,
		promoted.Sub(began).Round(time.Millisecond), took.Round(time.Millisecond))
	if took > sendingWithin {
		w.t.Errorf("death %d: accepting and carrying again only %v after the promotion, want %v", death+1, took, sendingWithin)
	}
}

package stories

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/testenv"
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

// databaseOf leads to one server of a pair.
func databaseOf(server *testenv.Server) string {
	return strings.Replace(server.URL(), "/postgres?", "/intumwa?", 1)
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

// The primary hangs, its standby is promoted, and then the old primary is back, first in
// the URL, and takes writes for all that it knows. Nothing is sent to it: neither by the
// gateway that knew it, nor by one that starts now.
func TestPostgresOldPrimary(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}, standby: true, gateways: []tree{{}, {"roles": "api"}}})
	shop := w.company("Isoko", 1_000_000)
	const messages = 16_000
	l := shop.sendsMany(&load{messages: messages, pause: 40 * time.Millisecond})
	l.reaches(400)
	old := w.postgresPair.Primary
	l.isRefused(old.Freeze, 45*time.Second)
	w.goesOnAfter(l, 0, w.postgresPair.Promote)
	w.asks(databaseOf(w.postgresPair.Primary)) // it knows of no timelines
	old.Thaw()
	l.reaches(min(int(l.accepted.Load())+400, messages))
	direct, err := pgx.Connect(t.Context(), databaseOf(old))
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close(t.Context())
	var back time.Time // by when what was under way there had its time
	var writable bool
	if err := direct.QueryRow(t.Context(), `SELECT now(), NOT pg_is_in_recovery()`).Scan(&back, &writable); err != nil || !writable {
		t.Fatalf("the old primary is back and takes writes: %v, %v", writable, err)
	}
	w.gateways[1].kill()
	w.gateways[1].start()
	for range 20 {
		if a := shop.triesAt(w.gateways[1], w.number(), "Amahoro mwese"); a.status != http.StatusOK {
			t.Errorf("the gateway that has just started answers %d %s %v", a.status, a.body, a.err)
		}
	}
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window)
	var written, begun int
	err = direct.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM messages WHERE created_at > $1),
		(SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'intumwa%' AND backend_xid IS NOT NULL AND xact_start > $1)`, back).Scan(&written, &begun)
	if err != nil || written != 0 || begun != 0 {
		t.Errorf("the old primary has %d new messages, and %d transactions that write (%v)", written, begun, err)
	}
}

// The standby that every commit waits for is away for a while. Nothing is accepted, since
// nothing would be safe; when it is back, all goes on. Of what was under way nobody knows at
// first whether it is recorded: who repeats it under its key has it once.
func TestStandbyAway(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}, standby: true, config: tree{"database": tree{"require_standby": true}}})
	shop := w.company("Isoko", 1_000_000)
	const aways = 3
	l := shop.sendsMany(&load{messages: 60_000, pause: 40 * time.Millisecond, keyed: true})
	for away := range aways {
		l.reaches(int(l.accepted.Load()) + 400)
		frozen := time.Now()
		l.isRefused(w.postgresPair.Standby.Freeze, 75*time.Second)
		told, accepted := time.Since(frozen), l.accepted.Load()
		<-time.After(3 * time.Second) // during which nothing must happen
		if more := l.accepted.Load() - accepted; more != 0 {
			t.Errorf("%d messages were accepted without the standby", more)
		}
		w.postgresPair.Standby.Thaw()
		back, carried := time.Now(), w.lumitel.Stats().Accepted
		w.eventually(time.Minute, "messages are accepted and carried again", func() bool {
			return l.accepted.Load() > accepted+20 && w.lumitel.Stats().Accepted > carried+20
		})
		t.Logf("away %d: the first 503 after %v; accepting and carrying again %v after it was back", away+1,
			told.Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
	}
	l.ends()
	l.onlyAnswers(http.StatusOK, http.StatusServiceUnavailable)
	l.adds(window * aways)
}

// The primary is lost, and with it what its standby, for which no commit waited, had not
// heard. That much is lost and no more; what is left is exact, and no message_id is given
// out twice once the gateway was told (`admin restored`). Receipts are lost as well, which the
// carrier does not repeat: their messages wait for their deadline.
func TestAsynchronousStandby(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}, standby: true, brokenProtocol: true}) // it has ids that the database has lost
	pair := w.postgresPair
	pair.Unsynchronized()
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 60_000, pause: 40 * time.Millisecond})
	l.reaches(400)
	caught := time.Now()
	pair.CatchUp()
	pair.FallBehind()
	l.reaches(int(l.accepted.Load()) + 400)
	pair.Crash()
	w.gateway.kill()
	l.ends()
	pair.Standby.Thaw()
	pair.Promote()
	w.pool.Reset()
	var restored struct{}
	w.orders(&restored, "", "restored", "--pending", "send")
	w.gateway.start()
	known := map[string]bool{}
	for _, r := range shop.records() {
		known[r.ID] = true
	}
	var before, after, lost int
	for _, o := range l.outcomes {
		switch {
		case !o.accepted:
		case o.at.Before(caught):
			if before++; !known[o.id] {
				t.Errorf("message %s is lost, which the standby had", o.id)
			}
		default:
			if after++; !known[o.id] {
				lost++
			}
		}
	}
	if lost == 0 {
		t.Error("nothing is lost, so this shows nothing")
	}
	t.Logf("of %d messages accepted before the standby lost the primary none is lost; of %d after that, %d", before, after, lost)
	w.drains()
	w.audited()
	w.becomes(shop.sends(w.number(), "Amahoro "+word()).ID, "sent")
	t.Logf("%d messages wait for receipts that the old primary had taken", ask[int](w, `SELECT count(*) FROM messages WHERE status = 0`))
	seen := map[int64]int{}
	for _, told := range shop.webhooks() {
		seen[told.Data.MessageID]++
	}
	for id, n := range seen {
		if n > 1 && !ofOne(shop.webhooksOf(id)) {
			t.Errorf("message_id %d was given out twice", id)
		}
	}
}

// ofOne reports whether webhooks of one message_id are of one message.
func ofOne(calls []call) bool {
	for _, c := range calls[1:] {
		if c.Data.PhoneNumber != calls[0].Data.PhoneNumber {
			return false
		}
	}
	return true
}

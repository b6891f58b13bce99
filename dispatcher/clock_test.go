package dispatcher_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// sendLasting sends short texts that are valid for days: this process does not hear what time it
// is by the database's clock that the test has set.
func (w *world) sendLasting(n int) []int64 {
	w.Helper()
	notes := make([]note, n)
	for i := range notes {
		notes[i] = note{to: w.number("00"), validity: 72 * time.Hour}
	}
	return w.send(notes...)
}

// TestClockSteps: the database's clock is set ahead by an hour, back by two, and ahead again,
// while two dispatchers work: nobody is taken for dead, no link changes hands, and what is
// sent is carried at once.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clock := testenv.NewClock(t, w.pool, w.hot)
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.start(mno.mno())
	w.startWith(dispatcher.Options{}, mno.mno())
	w.until("there are two", func() bool { return w.count(`SELECT count(*) FROM dispatchers`) == 2 })
	const who = `SELECT string_agg(id::text, ' ' ORDER BY id) || ', ' || (SELECT string_agg(holder::text, ' ') FROM leases WHERE name LIKE 'link %') FROM dispatchers`
	before := w.text(who)
	w.await("sent", 10*time.Second, w.sendLasting(1)...)
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, 0, 24 * time.Hour} {
		clock.Set(ahead)
		w.stays(1500*time.Millisecond, "both live, and the link stays where it is", func() bool { return w.text(who) == before })
		w.await("sent", 10*time.Second, w.sendLasting(5)...)
		if at := w.linkState("lumitel-1"); at.State != "bound" || at.Unheld {
			t.Errorf("the clock is %v ahead, and the link %+v", ahead, at)
		}
	}
	if w.log.has("a dispatcher died") {
		t.Error("somebody was taken for dead")
	}
	if st := mno.Stats(); st.Connections != 1 || st.Duplicates != 0 {
		t.Errorf("%d connections, %d arrived twice", st.Connections, st.Duplicates)
	}
}

// TestDeathWhileTheClockGoesBack: a dispatcher that died just before the database's clock was
// set back by an hour is found dead as soon as any, and so is one whose heartbeat seems to be
// an hour old only because the clock was set ahead: not before.
func TestDeathWhileTheClockGoesBack(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"back": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			clock := testenv.NewClock(t, w.pool, w.hot)
			mno := w.carrier(carriersim.Options{NoFates: true})
			if _, err := w.pool.Exec(t.Context(), `INSERT INTO dispatchers (id, name) OVERRIDING SYSTEM VALUE VALUES (77, 'sleeps');
				INSERT INTO leases (name, holder) VALUES ('link lumitel-1', 77)`); err != nil {
				t.Fatal(err)
			}
			const deadAfter = 3 * time.Second
			start := time.Now() // it has not been seen before
			w.startWith(dispatcher.Options{DeadAfter: deadAfter}, mno.mno())
			w.until("it is there", func() bool { return w.count(`SELECT count(*) FROM dispatchers`) == 2 })
			clock.Set(ahead)
			w.awaitLink("lumitel-1", "bound")
			if d := time.Since(start); d < deadAfter {
				t.Errorf("it was taken for dead after %v", d)
			}
			if n := w.count(`SELECT count(*) FROM dispatchers WHERE id = 77`); n != 0 {
				t.Error("it is on the list still")
			}
		})
	}
}

// TestFailoverAfterTheClockWentBack: a carrier that was down when the database's clock was set
// back by an hour is stood in for after the ten seconds of a failover, not in an hour.
func TestFailoverAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clock := testenv.NewClock(t, w.pool, w.hot)
	first, second := w.carrier(carriersim.Options{Name: "first", NoFates: true}), w.carrier(carriersim.Options{Name: "second", NoFates: true})
	w.start(first.mno(func(c *dispatcher.Carrier) { c.Failover, c.FailoverAfter = []string{"leo"}, 3*time.Second }), named("leo", second))
	first.stop()
	w.until("it is down", func() bool { return w.linkState("lumitel-1").State != "bound" })
	clock.Set(-time.Hour)
	w.await("sent", 20*time.Second, w.sendLasting(3)...)
	if n := second.Stats().Accepted; n != 3 {
		t.Errorf("the stand-in carried %d", n)
	}
}

// TestBacklogAfterTheClockWentBack: what waited for a carrier when the database's clock was set
// back by an hour is sent at once by the statement of the runbook; what waits for the end of
// quiet hours is not.
func TestBacklogAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/runbooks/clock.md")
	if err != nil {
		t.Fatal(err)
	}
	_, statement, _ := strings.Cut(string(page), `-c "update outbox`)
	statement, _, found := strings.Cut(statement, `"`)
	if !found {
		t.Fatal("the runbook has no statement")
	}
	w := newWorld(t)
	clock := testenv.NewClock(t, w.pool, w.hot)
	mno := w.carrier(carriersim.Options{NoFates: true})
	ids := w.sendLasting(10)
	quiet := w.sendLasting(1)[0]
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := w.pool.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	clock.Set(-time.Hour)
	exec(`UPDATE outbox SET due_at = now() + interval '30 minutes', since = now() + interval '30 minutes', pushed_at = NULL WHERE message_id = $1`, quiet)
	w.start(mno.mno())
	w.await("sent", 10*time.Second, w.sendLasting(1)...) // what comes now is not delayed
	w.stays(time.Second, "what waited waits", func() bool { return mno.Stats().Accepted == 1 })
	exec("update outbox" + statement)
	w.await("sent", 10*time.Second, ids...)
	if status, _ := w.statusOf(quiet); status != "pending" {
		t.Errorf("what waits for the end of quiet hours is %s", status)
	}
}

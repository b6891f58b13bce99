package dispatcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"intumwa/dispatcher/setup"
	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// TestEnd: a dispatcher that ends while working drains its window, gives back messages
// it has not begun, and leaves nothing running. The next one sends the rest. Nothing
// is lost or arrives twice.
func TestEnd(t *testing.T) {
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{RespDelay: 20 * time.Millisecond})
	w.count(`SELECT 1`)
	before := goleak.IgnoreCurrent()
	const n = 600
	long := strings.Repeat("a", 400)
	notes := make([]note, n)
	for i := range notes {
		notes[i] = note{to: w.number("00")}
		if i%10 == 0 {
			notes[i].text = long
		}
	}
	ids := w.send(notes...)
	w.start(mno.mno(func(c *setup.Carrier) { // a busy machine answers within
		c.Links[0].DrainTimeout, c.Links[0].UnbindTimeout, c.Links[0].TPS = 10*time.Second, 10*time.Second, 50
	}))
	w.until("some are out", func() bool { return mno.Stats().Accepted > 50 })
	w.stop()
	if left := w.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NOT NULL`); left != 0 {
		t.Errorf("%d messages are still claimed", left)
	}
	if left := w.count(`SELECT count(*) FROM outbox`); left == 0 || left == n {
		t.Fatalf("%d of %d wait: the end did not come in the middle", left, n)
	}
	if left := w.count(`SELECT count(*) FROM dispatchers`); left != 0 {
		t.Errorf("%d dispatchers on the list", left)
	}
	if s := w.linkState("lumitel-1"); s.State != "down" || s.InFlight != 0 {
		t.Errorf("link %+v", s)
	}
	if st := mno.Stats(); st.Unbinds != 1 || int(st.Accepted) != w.count(`SELECT count(*) FROM segments`) {
		t.Errorf("%d unbinds; the carrier took %d segments, %d are recorded", st.Unbinds, st.Accepted,
			w.count(`SELECT count(*) FROM segments`))
	}
	mno.stop()
	// The driver reads ahead on a slow connection until the next query.
	ignored := goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead")
	var leak error // pgx closes a connection whose statement was cancelled in a goroutine
	w.eventually(10*time.Second, func() bool { leak = goleak.Find(before, ignored); return leak == nil },
		func() string { return fmt.Sprint(leak) })

	again := w.listen(mno.Carrier)
	w.start(again.mno())
	w.await("sent", 30*time.Second, ids...)
	if st := mno.Stats(); st.Duplicates != 0 {
		t.Errorf("%d segments arrived twice", st.Duplicates)
	}
	w.clean(again)
}

// TestReplacedUnbindsAtOnce: a process that was taken for dead, or whose link another holds,
// unbinds without waiting for answers: the other may already have bound.
func TestReplacedUnbindsAtOnce(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]string{
		"replaced": `DELETE FROM dispatchers`,
		"taken": `INSERT INTO dispatchers (id, name) VALUES (7777, 'other');
			UPDATE leases SET holder = 7777 WHERE name LIKE 'link %'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{SubmitSilent: true}})
			w.startWith(setup.Options{DeadAfter: time.Minute}, mno.mno(func(c *setup.Carrier) {
				c.Links[0].DrainTimeout, c.Links[0].UnknownHold = 2*time.Minute, 5*time.Minute
			}))
			w.awaitLink("lumitel-1", "bound")
			defer mno.stop() // otherwise the end drains too
			w.sendTo("00")
			w.until("the carrier has it", func() bool { return mno.Stats().Submits == 1 })
			w.exec(taken)
			w.until("it unbinds", func() bool { return mno.Stats().Unbinds == 1 })
		})
	}
}

// TestClaimsBehindAFullWindow: behind a full window nothing is claimed. So another link can carry it, and it can be
// cancelled, even after this process was killed.
func TestClaimsBehindAFullWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{SubmitSilent: true}})
	w.sendMany(30, "00")
	w.start(mno.mno(func(c *setup.Carrier) { c.Links[0].Window, c.Links[0].UnknownHold = 10, 5*time.Minute }))
	w.until("the window is full", func() bool { return mno.Stats().Submits == 10 })
	others := func() bool { return w.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL`) == 20 }
	w.until("one that was claimed as the last slot was taken is given back", others)
	w.stays(300*time.Millisecond, "the others are not claimed", others)
}

// TestDrainEndsInTime: a process whose bind drains and that the database cannot hear unbinds before another takes it
// for dead and binds. At no time are both bound.
//
// Source: rule choices 7.13.
func TestDrainEndsInTime(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]func(w *world, c setup.Carrier) error{
		"shutdown":            func(w *world, _ setup.Carrier) error { go w.stop(); return nil },
		"reload without link": func(w *world, c setup.Carrier) error { c.Links = nil; return w.d.Reload([]setup.Carrier{c}) },
		"reload with another": func(w *world, c setup.Carrier) error {
			c.Links = slices.Clone(c.Links)
			c.Links[0].SystemType = "VMA"
			return w.d.Reload([]setup.Carrier{c})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{SubmitSilent: true}})
			conf := mno.mno(func(c *setup.Carrier) {
				c.Links[0].DrainTimeout, c.Links[0].UnbindTimeout, c.Links[0].UnknownHold = 2*time.Minute, 2*time.Minute,
					5*time.Minute
			})
			var line testenv.Line
			one := *w
			one.pool, one.hot = testenv.Unheard(t, w.pool, &line), testenv.Unheard(t, w.hot, &line)
			one.startWith(setup.Options{DeadAfter: 8 * time.Second}, conf)
			w.awaitLink("lumitel-1", "bound")
			w.sendTo("00")
			w.until("the carrier has it", func() bool { return mno.Stats().Submits == 1 })
			w.startWith(setup.Options{DeadAfter: 8 * time.Second}, conf)
			defer mno.stop() // otherwise the end drains too
			if err := drain(&one, conf); err != nil {
				t.Fatal(err)
			}
			one.until("it drains", func() bool { return one.metric("intumwa_smpp_session_state", "state", "down") == 1 })
			line.LoseAndCut()
			_ = pgx.BeginFunc(t.Context(), one.pool, func(pgx.Tx) error { return nil })
			w.eventually(20*time.Second, func() bool { return mno.Stats().Binds == 2 },
				func() string { return "the other binds" })
			if n := mno.Accounts()[0].MostBound; n != 1 {
				t.Errorf("%d were bound at once", n)
			}
		})
	}
}

// TestSingleOvertakesCampaign: only a few messages of a running campaign go out before
// a single send of the same company.
func TestSingleOvertakesCampaign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{})
	w.start(mno.mno(func(c *setup.Carrier) { c.Links[0].TPS = 5 }))
	campaign := w.campaign(1, 400, "campaign")
	w.until("the campaign is on its way", func() bool { return mno.Stats().Accepted > 3 })
	to := w.number("00")
	single := w.send(note{to: to, company: 1})
	before := int(mno.Stats().Accepted)
	w.await("sent", 10*time.Second, single...)
	w.stop()
	at := slices.IndexFunc(mno.Submits(), func(m carriersim.Submit) bool { return m.Destination.Addr == to.Digits() })
	if overtaken := len(campaign) - before; at-before > 60 || overtaken < 100 {
		t.Errorf("%d messages went out before the single send, %d of the campaign waited", at-before, overtaken)
	}
}

package dispatcher_test

import (
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/tools/carriersim"
)

// TestHabitOfLateAnswers: an answer that comes after unknown_hold, on a link
// that lives, is taken: the message is not sent again, and its receipt finds
// it.
//
// Source: rule carriers 6.5.
func TestHabitOfLateAnswers(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]dispatcher.Ambiguous{"resend": dispatcher.AmbiguousResend, "hold": dispatcher.AmbiguousHold} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mno := w.carrier(carriersim.Options{NoFates: true, RespDelay: 3 * time.Second, Faults: carriersim.Faults{HoldReceipts: true}})
			w.start(mno.mno(func(c *dispatcher.Carrier) {
				c.OnAmbiguous, c.NoReference = policy, true
				holds(c, 2*time.Second, 200*time.Millisecond)
			}))
			to := w.number("00")
			id := w.send(note{to: to})[0]
			w.until("the answer is taken", func() bool {
				return w.count(`SELECT count(*) FROM segments WHERE message_id = $1 AND key NOT LIKE '?%'`, id) == 1
			})
			mno.Faults(func(f *carriersim.Faults) { f.HoldReceipts = false })
			w.await("sent", 10*time.Second, id)
			w.stays(5*time.Second, "it is not sent again", func() bool { return len(mno.submitsTo(to)) == 1 })
			if n := w.count(`SELECT count(*) FROM outbox`); n != 0 {
				t.Error("it waits to be sent again")
			}
			if n := w.metric("intumwa_smpp_late_responses_total"); n != 1 {
				t.Errorf("%v late answers are counted, want 1", n)
			}
			w.clean(mno)
		})
	}
}

// TestHabitOfSilentLink: one of two links binds, answers enquire_link and no
// submit_sm: it keeps its window, and nothing that waits behind it.
//
// Source: rule carriers 6.4.
func TestHabitOfSilentLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	silent, good := w.carrier(carriersim.Options{Name: "silent", NoFates: true, Faults: carriersim.Faults{SubmitSilent: true}}), w.carrier(carriersim.Options{Name: "good", NoFates: true})
	const window = 5
	conf := silent.mno(func(c *dispatcher.Carrier) {
		c.Links = append(c.Links, good.link("lumitel-2"))
		for i := range c.Links {
			c.Links[i].Window, c.Links[i].TPS, c.Links[i].UnknownHold = window, 200, 5*time.Minute
		}
	})
	w.start(conf)
	ids := w.sendMany(200, "00")
	w.eventually(20*time.Second, func() bool {
		return w.count(`SELECT count(*) FROM messages WHERE id = ANY($1) AND status = 1`, ids) >= len(ids)-window
	}, func() string { return "all but the silent link's window are sent" })
	if n := silent.Stats().Submits; n > window {
		t.Errorf("the silent link got %d submit_sm, more than its window", n)
	}
}

// TestHeldIsNotRerouted: a carrier that holds what it did not answer is not
// stood in for there: the other could only send it twice.
//
// Source: rule carriers 6.6.
func TestHeldIsNotRerouted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.carrier(carriersim.Options{Name: "first"}), w.carrier(carriersim.Options{Name: "second"})
	w.start(first.mno(func(c *dispatcher.Carrier) {
		c.Failover, c.FailoverAfter, c.OnAmbiguous = []string{"leo"}, time.Second, dispatcher.AmbiguousHold
		c.Links[0].Window = 1
	}), named("leo", second))
	to := w.number("06")
	id := w.send(note{to: to, text: strings.Repeat("a", 300)})[0]
	w.until("it got the first segment", func() bool { return len(first.submitsTo(to)) == 1 })
	first.stop()
	other := w.send(note{to: w.number("00")})
	w.await("sent", 15*time.Second, other...)
	w.stays(2*time.Second, "the other takes nothing of it", func() bool { return len(second.submitsTo(to)) == 0 })
	if status, _ := w.statusOf(id); status != "pending" {
		t.Errorf("it is %s", status)
	}
}

// TestHoldingStandIn: what another carrier did not answer, and does send again,
// is nothing that a stand-in has to hold.
func TestHoldingStandIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.carrier(carriersim.Options{Name: "first"}), w.carrier(carriersim.Options{Name: "second"})
	w.start(first.mno(func(c *dispatcher.Carrier) {
		c.Failover, c.FailoverAfter, c.NoReference = []string{"leo"}, time.Second, true
	}), named("leo", second, func(c *dispatcher.Carrier) { c.OnAmbiguous = dispatcher.AmbiguousHold }))
	to := w.number("06")
	w.send(note{to: to})
	w.until("the first got it", func() bool { return len(first.submitsTo(to)) == 1 })
	first.stop()
	w.eventually(20*time.Second, func() bool { return len(second.submitsTo(to)) == 1 }, func() string { return "the stand-in got it" })
}

// TestReturnFromStandIn: what a stand-in has not sent when the carrier serves
// again goes back to it; the stand-in was given no more than it can soon carry.
func TestReturnFromStandIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.carrier(carriersim.Options{Name: "first", NoFates: true}), w.carrier(carriersim.Options{Name: "second", NoFates: true})
	first.Faults(func(f *carriersim.Faults) { f.RefuseConnections = true })
	w.startWith(dispatcher.Options{}, first.mno(func(c *dispatcher.Carrier) { c.Failover, c.FailoverAfter = []string{"leo"}, time.Second }),
		named("leo", second, func(c *dispatcher.Carrier) { c.Links[0].TPS = 2 }))
	ids := append(w.sendMany(70, "00"), w.campaign(1, 70, "")...)
	w.until("it stands in", func() bool { return second.Stats().Accepted >= 2 })
	// 30 s of its own pace in each lane, and what it has sent meanwhile.
	if n := w.count(`SELECT count(*) FROM messages WHERE carrier = 'leo'`); n > 120+int(second.Stats().Accepted) {
		t.Errorf("%d messages were handed over to a link of 2 a second", n)
	}
	first.Faults(func(f *carriersim.Faults) { f.RefuseConnections = false })
	w.await("sent", 30*time.Second, ids...)
	if n := second.Stats().Accepted; n > 100 {
		t.Errorf("the stand-in sent %d of 140", n)
	}
	if d := first.Stats().Duplicates + second.Stats().Duplicates; d != 0 {
		t.Errorf("%d arrived twice", d)
	}
}

// TestExpiredInHand: what waited too long in hand is not sent any more.
func TestExpiredInHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{SubmitSilent: true}})
	w.start(mno.mno(func(c *dispatcher.Carrier) {
		c.OnAmbiguous = dispatcher.AmbiguousFail
		c.Links[0].Window = 1
		holds(c, 2*time.Second, time.Second)
	}))
	w.sendTo("00")
	w.until("the window is full", func() bool { return mno.Stats().Submits == 1 })
	to := w.number("00")
	id := w.send(note{to: to, validity: time.Second})[0]
	w.await("failed", 10*time.Second, id)
	if _, reason := w.statusOf(id); reason != "expired" {
		t.Errorf("it failed for %q, want expired", reason)
	}
	if n := len(mno.submitsTo(to)); n != 0 {
		t.Errorf("it was sent %d times, after its validity", n)
	}
}

// TestRenamedLink: a link that is only called otherwise takes over the one bind
// that its carrier allows, as soon as that is free.
func TestRenamedLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{MaxSessions: 1})
	w.start(mno.mno())
	w.sendTo("06") // unanswered: the old bind drains for a while
	w.until("it is out", func() bool { return mno.Stats().Submits == 1 })
	if err := w.d.Reload([]dispatcher.Carrier{mno.mno(func(c *dispatcher.Carrier) { c.Links[0].Name = "renamed" })}); err != nil {
		t.Fatal(err)
	}
	w.awaitLink("renamed", "bound")
	if st := mno.Stats(); st.BindRefused != 0 {
		t.Errorf("%d binds were refused: the old one was still there", st.BindRefused)
	}
}

// TestReloadWithoutDatabase: a link that is added while the database is away
// binds when it is back.
func TestReloadWithoutDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno, added := w.carrier(carriersim.Options{}), w.carrier(carriersim.Options{})
	w.startWith(dispatcher.Options{DeadAfter: 30 * time.Second}, mno.mno())
	w.awaitLink("lumitel-1", "bound")
	if _, err := w.pool.Exec(t.Context(), `ALTER TABLE links RENAME TO away`); err != nil {
		t.Fatal(err)
	}
	if err := w.d.Reload([]dispatcher.Carrier{mno.mno(), named("leo", added)}); err != nil {
		t.Fatal(err)
	}
	w.until("the database is missed", func() bool { return w.log.has("level=ERROR", "reporting the links fails") })
	if _, err := w.pool.Exec(t.Context(), `ALTER TABLE away RENAME TO links`); err != nil {
		t.Fatal(err)
	}
	w.awaitLink("leo-1", "bound")
	w.await("sent", 10*time.Second, w.send(note{to: w.number("00"), carrier: "leo"})...)
}

// TestForgottenLinks: links that are no longer configured leave the list, also
// when nobody was there to take them off; others' do not.
func TestForgottenLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO dispatchers (id, name) OVERRIDING SYSTEM VALUE VALUES (77, 'other');
		INSERT INTO links (name, carrier, updated_at) VALUES ('left', 'x', now() - interval '11 minutes'), ('fresh', 'x', now()),
			('living', 'x', now() - interval '11 minutes'), ('lumitel-1', 'lumitel', now() - interval '1 day');
		INSERT INTO leases (name, holder) VALUES ('link living', 77)`); err != nil {
		t.Fatal(err)
	}
	mno := w.carrier(carriersim.Options{})
	w.startWith(dispatcher.Options{DeadAfter: time.Minute}, mno.mno())
	w.awaitLink("lumitel-1", "bound")
	w.until("they are gone", func() bool {
		return w.text(`SELECT string_agg(name, ' ' ORDER BY name) FROM links`) == "fresh living lumitel-1"
	})
}

package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/tools/carriersim"
)

// TestHabitOfLateAnswers: an answer after unknown_hold on a live link counts: the message
// is not sent again, and its receipt matches.
//
// Source: rule carriers 6.5.
func TestHabitOfLateAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, RespDelay: 3 * time.Second})
	w.start(mno.mno(func(c *setup.Carrier) {
		c.OnAmbiguous, c.NoReference = setup.AmbiguousAwaitReceipt, true
		holds(c, 2*time.Second, 200*time.Millisecond)
	}))
	w.await("sent", 10*time.Second, w.sendTo("00"))
	if n := w.metric("intumwa_smpp_late_responses_total"); n != 1 {
		t.Errorf("%v late answers are counted, want 1", n)
	}
	w.settledAll()
	w.clean(mno)
}

// TestHabitOfSilentLink: one of two links binds and answers enquire_link but no
// submit_sm. It delays only the segments in its window.
//
// Source: rule carriers 6.4.
func TestHabitOfSilentLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	silent, good := w.carrier(carriersim.Options{Name: "silent", NoFates: true,
		Faults: carriersim.Faults{SubmitSilent: true}}), w.carrier(carriersim.Options{Name: "good", NoFates: true})
	const window = 5
	conf := silent.mno(func(c *setup.Carrier) {
		c.Links = append(c.Links, good.link("lumitel-2"))
		for i := range c.Links {
			c.Links[i].Window, c.Links[i].TPS, c.Links[i].UnknownHold = window, 200, 5*time.Minute
		}
		c.Links[1].ResponseTimeout = time.Minute // it is not silent, whatever the machine does
	})
	w.start(conf)
	ids := w.sendMany(200, "00")
	sent := 0
	w.eventually(20*time.Second, func() bool {
		sent = w.count(`SELECT count(*) FROM messages WHERE id = ANY($1) AND status = 1`, ids)
		return sent >= len(ids)-window
	}, func() string {
		return fmt.Sprintf("all but the silent link's window are sent; %d are, the good link got %d submit_sm, %d messages "+
			"are in the outbox, %d of them claimed", sent, good.Stats().Submits, w.count(`SELECT count(*) FROM outbox`),
			w.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NOT NULL`))
	})
	if n := silent.Stats().Submits; n > window {
		t.Errorf("the silent link got %d submit_sm, more than its window", n)
	}
}

// TestReturnFromStandIn: when the first carrier serves again, it gets back the messages
// that the failover carrier has not sent. That one got no more than it can soon carry.
func TestReturnFromStandIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.carrier(carriersim.Options{Name: "first", NoFates: true}),
		w.carrier(carriersim.Options{Name: "second", NoFates: true})
	first.Faults(func(f *carriersim.Faults) { f.RefuseConnections = true })
	w.startWith(setup.Options{}, first.mno(func(c *setup.Carrier) {
		c.Failover, c.FailoverAfter = []string{"leo"},
			time.Second
	}),
		named("leo", second, func(c *setup.Carrier) { c.Links[0].TPS = 2 }))
	ids := append(w.sendMany(70, "00"), w.campaign(1, 70, "")...)
	claimed := 0
	w.until("it stands in", func() bool {
		claimed += w.count(`SELECT count(*) FROM outbox WHERE carrier = 'lumitel' AND claimed_by IS NOT NULL`)
		return second.Stats().Accepted >= 2
	})
	if claimed > 0 {
		t.Error("messages are claimed for a link that is not bound")
	}
	// 30 s at its own pace in each lane, plus the messages sent meanwhile.
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

// TestExpiredInHand: a message that expires while claimed is not sent.
func TestExpiredInHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{SubmitSilent: true}})
	w.start(mno.mno(func(c *setup.Carrier) {
		c.OnAmbiguous = setup.AmbiguousFail
		c.Links[0].Window = 1
		holds(c, time.Minute, time.Second) // longer than the other is valid
	}))
	w.sendTo("00")
	w.until("the window is full", func() bool { return mno.Stats().Submits == 1 })
	to := w.number("00")
	id := w.send(note{to: to, validity: time.Second})[0]
	w.await("failed", 45*time.Second, id) // on a busy machine the task that ends it rests up to core.RestMost
	if _, reason := w.statusOf(id); reason != "expired" {
		t.Errorf("it failed for %q, want expired", reason)
	}
	if n := len(mno.submitsTo(to)); n != 0 {
		t.Errorf("it was sent %d times, after its validity", n)
	}
}

// TestRenamedLink: a renamed link takes over the only bind that its carrier allows,
// as soon as that is free.
func TestRenamedLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{MaxSessions: 1})
	w.start(mno.mno())
	w.sendTo("06") // unanswered: the old bind drains for a while
	w.until("it is out", func() bool { return mno.Stats().Submits == 1 })
	if err := w.d.Reload([]setup.Carrier{mno.mno(func(c *setup.Carrier) { c.Links[0].Name = "renamed" })}); err != nil {
		t.Fatal(err)
	}
	w.awaitLink("renamed", "bound")
	if st := mno.Stats(); st.BindRefused != 0 {
		t.Errorf("%d binds were refused: the old one was still there", st.BindRefused)
	}
}

// TestForgottenLinks: links that are no longer configured are deleted, even if no
// process was there to do it; links of other processes stay.
func TestForgottenLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`INSERT INTO dispatchers (id, name) VALUES (77, 'other');
		INSERT INTO links (name, carrier, updated_at) VALUES ('left', 'x', now() - interval '11 minutes'), ('fresh', 'x',
			now()),
			('living', 'x', now() - interval '11 minutes'), ('lumitel-1', 'lumitel', now() - interval '1 day');
		INSERT INTO leases (name, holder) VALUES ('link living', 77)`)
	mno := w.carrier(carriersim.Options{})
	w.startWith(setup.Options{DeadAfter: time.Minute}, mno.mno())
	w.awaitLink("lumitel-1", "bound")
	w.until("they are gone", func() bool {
		return w.text(`SELECT string_agg(name, ' ' ORDER BY name) FROM links`) == "fresh living lumitel-1"
	})
}

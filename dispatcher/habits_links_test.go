package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/dispatcher/setup"
	"intumwa/internal/notices"
	"intumwa/smpp"
	"intumwa/tools/carriersim"
)

// TestFailover: another carrier takes the messages of a carrier that has been down,
// paused or broken for a while, but not of one that only throttles. When the first
// is back it carries its own again.
//
// Source: rule choices 7.4.
func TestFailover(t *testing.T) {
	t.Parallel()
	down := map[string]func(w *world, s *sim){
		"connection lost": func(_ *world, s *sim) {
			s.Faults(func(f *carriersim.Faults) { f.RefuseConnections = true })
			s.DropAll()
		},
		"breaker open": func(_ *world, s *sim) {
			s.Faults(func(f *carriersim.Faults) { f.SubmitStatus = carriersim.InvalidSourceTON })
		},
	}
	for name, goDown := range down {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, second := w.carrier(carriersim.Options{Name: "first", NoFates: true}),
				w.carrier(carriersim.Options{Name: "second", NoFates: true})
			w.startWith(setup.Options{BreakerPause: 3 * time.Second},
				first.mno(func(c *setup.Carrier) { c.Failover, c.FailoverAfter = []string{"leo"}, time.Second }),
				named("leo", second))
			w.awaitLink("lumitel-1", "bound")
			w.awaitLink("leo-1", "bound")
			w.await("sent", 10*time.Second, w.sendMany(5, "00")...)
			goDown(w, first)
			if name != "breaker open" { // opening it needs messages
				w.until("the link is not bound", func() bool {
					return w.metric("intumwa_smpp_session_state", "link", "lumitel-1", "state", "bound") == 0
				})
			}
			ids := w.sendMany(20, "00")
			w.await("sent", 20*time.Second, ids...)
			if n := second.Stats().Accepted; n != 20 {
				t.Errorf("the second carrier accepted %d, want 20", n)
			}
			w.until("they are counted as handed over",
				func() bool { return w.metric("intumwa_messages_rerouted_total", "carrier", "lumitel") == 20 })
			first.Faults(func(f *carriersim.Faults) { *f = carriersim.Faults{} })
			w.until("it carries its own again", func() bool {
				before := first.Stats().Accepted
				w.await("sent", 10*time.Second, w.sendTo("00"))
				return first.Stats().Accepted > before
			})
			w.settledAll()
			w.clean(second)
		})
	}
	t.Run("throttled is not down", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		first, second := w.carrier(carriersim.Options{Name: "first", NoFates: true,
			Faults: carriersim.Faults{SubmitStatus: carriersim.Throttled}}), w.carrier(carriersim.Options{Name: "second"})
		w.start(first.mno(func(c *setup.Carrier) {
			c.Failover, c.FailoverAfter, c.Links[0].TPS = []string{"leo"}, time.Second, 100
		}), named("leo", second))
		ids := w.sendMany(5, "00")
		w.until("the link slows", func() bool {
			return w.metric("intumwa_smpp_pace_limit_per_second", "link",
				"lumitel-1") < 50
		})
		w.stays(2*time.Second, "the other takes nothing", func() bool { return second.Stats().Submits == 0 })
		first.Faults(func(f *carriersim.Faults) { f.SubmitStatus = 0 })
		w.await("sent", 20*time.Second, ids...)
	})
}

// TestLinksShare: the links of one carrier share its messages about evenly while all keep
// up; one that takes nothing does not delay the others. The two SMSCs assign the same
// ids, and receipts are still matched to the right link.
//
// Source: rule choices 7.10; rule carriers 1.4.
func TestLinksShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.carrier(carriersim.Options{Name: "one", NoFates: true}),
		w.carrier(carriersim.Options{Name: "two", NoFates: true})
	conf := one.mno(func(c *setup.Carrier) {
		c.Links[0].TPS = 400
		c.Links = append(c.Links, two.link("lumitel-2", func(l *setup.Link) { l.TPS = 400 }))
	})
	w.start(conf)
	var ids []int64
	for range 50 { // both keep up: earlier messages are out before more come
		w.until("what was sent is out", func() bool { return int(one.Stats().Accepted+two.Stats().Accepted) == len(ids) })
		ids = append(ids, w.campaign(0, 10, "")...)
	}
	w.await("sent", 20*time.Second, ids...)
	a, b := one.Stats().Accepted, two.Stats().Accepted
	// A link may take all of a round: like 50 throws of a coin, which a busy machine may load.
	if share := float64(b) / float64(a+b); share > 0.9 || share < 0.1 {
		t.Errorf("two links carried %d and %d messages", a, b)
	}
	// One link crawls: it does not slow the other.
	two.Faults(func(f *carriersim.Faults) { f.SubmitStatus = carriersim.Throttled })
	before := one.Stats().Accepted
	w.campaign(0, 600, "more")
	w.eventually(12*time.Second, func() bool { return one.Stats().Accepted-before > 400 },
		func() string { return "the other link goes on" })
	w.clean(one)
}

// TestPauseIsHeard: a link that is paused or resumed elsewhere, by a command or by
// hand, reacts to the notification without waiting for its heartbeat, even after the
// listening connection was cut.
//
// Source: rule choices 11.3.
func TestPauseIsHeard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.carrier(carriersim.Options{Name: "a", NoFates: true})
	w.startWith(setup.Options{Heartbeat: time.Minute, DeadAfter: 3 * time.Minute, StrandedAfter: time.Hour}, a.mno())
	ears := notices.New(w.pool, notices.Options{})
	ears.On(notices.Link, w.d.LinkChanged)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := ears.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer ended.Wait()
	defer cancel()
	listening := func() int {
		return w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name LIKE '% notices' AND state = 'idle' AND query <> ''`)
	}
	w.until("somebody listens", func() bool { return listening() == 1 })
	w.until("the link is there", func() bool { return w.count(`SELECT count(*) FROM links`) == 1 })
	obeys := func(paused float64) {
		t.Helper()
		w.eventually(10*time.Second, func() bool { return w.metric("intumwa_smpp_link_paused") == paused },
			func() string { return "the link does not obey" })
	}
	for _, paused := range []float64{1, 0, 1} {
		if _, err := dispatcher.SetPaused(t.Context(), w.pool, "lumitel-1", paused == 1); err != nil {
			t.Fatal(err)
		}
		obeys(paused)
	}
	w.count(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()
		AND application_name LIKE '% notices' AND state = 'idle' AND query <> ''`)
	if _, err := w.pool.Exec(t.Context(), `UPDATE links SET paused = false`); err != nil { // by hand; a trigger notifies
		t.Fatal(err)
	}
	obeys(0)
}

// TestOperatorsHands: pause and resume, and reloads: links stay bound where possible,
// and a configuration that cannot work is refused as a whole.
//
// Source: rule choices 7.11.
func TestOperatorsHands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.carrier(carriersim.Options{Name: "a", NoFates: true}),
		w.carrier(carriersim.Options{Name: "b", NoFates: true})
	conf := func(change ...func(*setup.Carrier)) setup.Carrier { return a.mno(change...) }
	w.start(conf())

	pause := func(paused bool) {
		if _, err := dispatcher.SetPaused(t.Context(), w.pool, "lumitel-1", paused); err != nil {
			t.Fatal(err)
		}
	}
	pause(true)
	w.awaitLink("lumitel-1", "paused")
	w.until("its holder has heard", func() bool { return w.metric("intumwa_smpp_link_paused") == 1 })
	ids := w.sendMany(10, "00")
	w.stays(500*time.Millisecond, "nothing is sent over a paused link", func() bool { return a.Stats().Submits == 0 })
	pause(false)
	w.await("sent", 10*time.Second, ids...)

	reload := func(carriers ...setup.Carrier) {
		t.Helper()
		if err := w.d.Reload(carriers); err != nil {
			t.Fatal(err)
		}
	}
	// Another pace and window: the bind stays.
	faster := func(c *setup.Carrier) { c.Links[0].TPS, c.Links[0].Window = 50, 5 }
	reload(conf(faster))
	w.until("the new pace is shown", func() bool { l := w.linkState("lumitel-1"); return l.TPS == 50 && l.Window == 5 })
	ids = w.sendMany(60, "00")
	w.await("sent", 10*time.Second, ids...)
	if st := a.Stats(); st.Binds != 1 || st.Peak > 100 {
		t.Errorf("%d binds, at most %d segments in a second", st.Binds, st.Peak)
	}
	// A second link and a second carrier beside it.
	two := func(c *setup.Carrier) {
		faster(c)
		c.Links = append(c.Links, b.link("lumitel-2"))
	}
	// A separate account, because an SMSC delivers over any bind of one account.
	own := func(c *setup.Carrier) { c.Links[0].SystemID = "leo" }
	reload(conf(two), named("leo", b, own))
	w.awaitLink("lumitel-2", "bound")
	w.awaitLink("leo-1", "bound")
	w.await("sent", 10*time.Second, w.send(note{to: w.number("00"), carrier: "leo"})...)
	// A configuration that cannot work changes nothing.
	for name, bad := range map[string][]setup.Carrier{
		"no address":         {conf(func(c *setup.Carrier) { c.Links[0].Addresses = []string{"nowhere"} })},
		"two links alike":    {conf(func(c *setup.Carrier) { c.Links = append(c.Links, c.Links[0]) })},
		"two carriers alike": {conf(), conf()},
		"password too long": {conf(two), named("leo", b, own,
			func(c *setup.Carrier) { c.Links[0].Password = strings.Repeat("x", 256) })},
		"TLV of ours": {conf(func(c *setup.Carrier) { c.TLVs = []smpp.TLV{{Tag: smpp.TagMessagePayload}} })},
	} {
		if err := w.d.Reload(bad); err == nil {
			t.Errorf("%s: the configuration was taken", name)
		}
	}
	w.stays(500*time.Millisecond, "all links stay", func() bool {
		return w.linkState("leo-1").State == "bound" &&
			w.linkState("lumitel-2").State == "bound"
	})
	// A link with another address binds again; a removed link unbinds and is deleted.
	reload(conf(faster, func(c *setup.Carrier) { c.Links[0].Addresses = []string{b.address} }))
	w.until("the gone links are off the list", func() bool {
		return w.linkState("leo-1").State == "unknown" && w.linkState("lumitel-2").State == "unknown"
	})
	w.until("the moved link is bound there", func() bool { return a.Stats().Sessions == 0 && b.Stats().Sessions == 1 })
	w.awaitLink("lumitel-1", "bound")
	w.await("sent", 10*time.Second, w.sendMany(10, "00")...)
	if n := a.Stats().Unbinds; n != 1 {
		t.Errorf("the link left its old place with %d unbinds", n)
	}
	w.settledAll()
	w.clean(a, b)
}

// TestLinkLease: one process at a time binds a link, and another takes it over when
// the first ends.
//
// Source: rule carriers 5.2.
func TestLinkLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.start(mno.mno())
	first, firstD := w.stop, w.d
	w.startWith(setup.Options{}, mno.mno())
	ids := w.sendMany(50, "00")
	w.await("sent", 10*time.Second, ids...)
	if n := mno.Stats().Binds; n != 1 {
		t.Fatalf("%d binds by two processes", n)
	}
	nothing := func(smpp.TracedPDU) error { return nil }
	if err := w.d.Trace(t.Context(), "lumitel-1", nothing); !errors.Is(err, dispatcher.ErrNotHeld) ||
		!strings.Contains(err.Error(), "/") {
		t.Errorf("tracing a link of another process: %v", err)
	}
	if err := firstD.Trace(t.Context(), "nobody", nothing); !errors.Is(err, dispatcher.ErrNoLink) {
		t.Errorf("tracing a link that is not: %v", err)
	}
	first()
	w.until("the other has it", func() bool { return mno.Stats().Sessions == 1 && mno.Stats().Binds == 2 })
	w.await("sent", 10*time.Second, w.sendMany(50, "00")...)
	w.settledAll()
	w.clean(mno)
}

// TestSilenceUnbinds: a process that cannot renew its leases unbinds before another may take its
// links, cleanly and with nothing unanswered. It binds again when renewals succeed
// (rule choices 7.13).
//
// Source: rule carriers 5.2.
func TestSilenceUnbinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, RespDelay: 600 * time.Millisecond}) // more than unbinding waits
	w.start(mno.mno(func(c *setup.Carrier) { c.Links[0].TPS = 5 }))
	ids := w.sendMany(100, "00") // more than can go out before it unbinds
	w.until("traffic flows", func() bool { return mno.Stats().Accepted > 0 })
	if _, err := w.pool.Exec(t.Context(), `ALTER TABLE dispatchers RENAME TO away`); err != nil {
		t.Fatal(err)
	}
	w.until("the link is unbound", func() bool { return mno.Stats().Sessions == 0 })
	if late := w.metric("intumwa_smpp_submit_timeouts_total"); late > 0 {
		// the carrier answers after 0.6 s, and 1 s is late: an unbind does not wait for it
		t.Logf("%v answers took longer than a second: this machine is too busy to tell what the link does", late)
		w.exec(`ALTER TABLE away RENAME TO dispatchers`)
		return
	}
	if st := mno.Stats(); st.Binds != 1 || st.Unbinds != 1 || st.Accepted == 100 {
		t.Errorf("%d binds and %d unbinds, want one of each; %d accepted", st.Binds, st.Unbinds, st.Accepted)
	}
	if n := w.metric("intumwa_smpp_submit_results_total", "result", "no_answer"); n != 0 {
		t.Errorf("%v submit_sm were unanswered when it unbound", n)
	}
	w.exec(`ALTER TABLE away RENAME TO dispatchers`)
	if err := w.d.Reload([]setup.Carrier{mno.mno()}); err != nil { // the rest goes out at once
		t.Fatal(err)
	}
	w.await("sent", 20*time.Second, ids...)
	w.settledAll()
	w.clean(mno)
}

// TestReceiverAlone: a carrier with a transmitter and a receiver as two links. Receipts come over the
// second, which carries no messages: when the first is gone, the failover carrier takes over although the second is
// bound.
func TestReceiverAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out, in := w.carrier(carriersim.Options{NoFates: true}), w.carrier(carriersim.Options{Name: "second", NoFates: true})
	as := func(name string, mode smpp.BindMode) setup.Link {
		return out.link(name, func(l *setup.Link) { l.Mode = mode })
	}
	w.start(out.mno(func(c *setup.Carrier) {
		c.Links = []setup.Link{as("lumitel-1", smpp.Transmitter), as("lumitel-2", smpp.Receiver)}
		c.Failover, c.FailoverAfter = []string{"leo"}, time.Second
	}), named("leo", in))
	w.await("sent", 10*time.Second, w.sendMany(20, "00")...)
	if l := w.linkState("lumitel-2"); l.Window != 0 || l.TPS != 0 {
		t.Errorf("the receiver has window %d and tps %v: it carries nothing", l.Window, l.TPS)
	}
	if _, err := dispatcher.SetPaused(w.Context(), w.pool, "lumitel-1", true); err != nil {
		t.Fatal(err)
	}
	w.until("its process has heard of the pause", func() bool {
		return w.metric("intumwa_smpp_session_state", "link", "lumitel-1", "state", "paused") == 1
	})
	w.await("sent", 20*time.Second, w.sendMany(20, "00")...)
	if n := in.Stats().Accepted; n != 20 {
		t.Errorf("the second carrier accepted %d, want 20", n)
	}
	w.settledAll()
	w.clean(out, in)
}

package dispatcher_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/messages/lookup"
	"intumwa/tools/carriersim"
)

// refuses makes the carrier refuse every submit_sm with a status; 0: none. sender limits that to
// one source address; "": all.
func (s *sim) refuses(status carriersim.Status, sender string) {
	s.Faults(func(f *carriersim.Faults) { f.SubmitStatus, f.SubmitSender = status, sender })
}

// TestHabitOfAcceptingNothing: a carrier that is bound and refuses everything, with whatever
// status, is an outage: its messages wait, operators see it, another carrier takes over, and when
// it accepts again it carries its own. No message fails, permanent as the status may be, once the
// breaker is open.
//
// Source: rule carriers 3.12.
func TestHabitOfAcceptingNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []carriersim.Status{0x5A, carriersim.SubmitFailed, carriersim.SystemError,
		carriersim.UnknownError, carriersim.InvalidPassword,
		carriersim.ReceiverTemporary, carriersim.VendorError, carriersim.InvalidSource, carriersim.InvalidExpiry,
		carriersim.Throttled, carriersim.QueueFull} {
		t.Run(status.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, second := w.carrier(carriersim.Options{Name: "first", NoFates: true}),
				w.carrier(carriersim.Options{Name: "second", NoFates: true})
			w.startWith(setup.Options{BreakerAfter: 500 * time.Millisecond, BreakerPause: time.Second},
				first.mno(func(c *setup.Carrier) {
					c.Failover, c.FailoverAfter, c.RetryMax = []string{"leo"}, 2*time.Second, 300*time.Millisecond
				}), named("leo", second))
			w.awaitLink("lumitel-1", "bound")
			w.awaitLink("leo-1", "bound")
			w.await("sent", 10*time.Second, w.sendMany(3, "00")...)
			first.refuses(status, "")
			var ids []int64
			w.eventually(20*time.Second, func() bool {
				ids = append(ids, w.sendMany(2, "00")...)
				<-time.After(100 * time.Millisecond)
				return w.linkState("lumitel-1").Broken
			}, func() string { return "operators see it" })
			if l := w.linkState("lumitel-1"); !strings.Contains(l.LastError, status.String()) ||
				l.Refused[status.String()] == 0 {
				t.Errorf("%q, refused %v", l.LastError, l.Refused)
			}
			w.until("the alarm is raised", func() bool {
				return w.metric("intumwa_link_breaker_open") == 1 && w.log.has("level=ERROR", "event=link_stopped", status.String())
			})
			w.until("what was refused before is settled", func() bool { // later, a probe is claimed now and then
				return w.count(`SELECT count(*) FROM outbox WHERE carrier = 'lumitel' AND claimed_by IS NOT NULL`) == 0
			})
			failed := w.count(`SELECT count(*) FROM messages WHERE status = 2`)
			if status != carriersim.InvalidSource && failed > 0 {
				t.Errorf("%d messages have failed", failed)
			}
			waiting := w.sendMany(10, "00")
			w.await("sent", 20*time.Second, waiting...)
			w.until("another carrier takes over", func() bool {
				return w.metric("intumwa_messages_rerouted_total", "carrier", "lumitel") > 0
			})
			first.refuses(0, "")
			w.eventually(20*time.Second, func() bool {
				ids = append(ids, w.sendTo("00"))
				<-time.After(50 * time.Millisecond)
				return !w.linkState("lumitel-1").Broken && w.metric("intumwa_link_breaker_open") == 0
			}, func() string { return "it resumes" })
			w.settledAll()
			if now := w.count(`SELECT count(*) FROM messages WHERE status = 2`); now != failed {
				t.Errorf("%d messages have failed, %d before the breaker opened", now, failed)
			}
			w.clean(first, second)
		})
	}
}

// TestHabitOfOneSender: a sender whose messages the carrier refuses waits, and all others pass at
// once, also a single send behind its campaign. No failover starts.
//
// Source: rule carriers 3.13.
func TestHabitOfOneSender(t *testing.T) {
	t.Parallel()
	for _, status := range []carriersim.Status{carriersim.InvalidSourceTON, carriersim.InvalidSource,
		carriersim.SubmitFailed} {
		t.Run(status.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, second := w.carrier(carriersim.Options{Name: "first", NoFates: true}),
				w.carrier(carriersim.Options{Name: "second", NoFates: true})
			w.startWith(setup.Options{BreakerAfter: 500 * time.Millisecond}, first.mno(func(c *setup.Carrier) {
				c.Failover, c.FailoverAfter, c.RetryMax = []string{"leo"}, time.Second, 300*time.Millisecond
			}), named("leo", second))
			w.awaitLink("lumitel-1", "bound")
			w.awaitLink("leo-1", "bound")
			bank := func() int64 { return w.send(note{to: w.number("00"), sender: "BANK", text: "code"})[0] }
			w.await("sent", 10*time.Second, bank())
			first.refuses(status, "SHOP")
			w.eventually(20*time.Second, func() bool {
				w.send(note{to: w.number("00"), sender: "SHOP"}, note{to: w.number("00"), sender: "SHOP"})
				w.await("sent", 10*time.Second, bank())
				return w.linkState("lumitel-1").SendersBlocked == 1
			}, func() string { return "the sender is blocked" })
			failed := w.count(`SELECT count(*) FROM messages WHERE status = 2`)
			if status != carriersim.InvalidSource && failed > 0 {
				t.Errorf("%d messages have failed", failed)
			}
			var notes []note
			for range 200 {
				notes = append(notes, note{to: w.number("00"), sender: "SHOP"})
			}
			campaign := w.send(notes...)
			for range 5 { // its campaign waits until it is accepted again, below
				w.await("sent", 10*time.Second, bank())
			}
			if l := w.linkState("lumitel-1"); l.Broken || !strings.Contains(l.LastError, "SHOP") ||
				!strings.Contains(l.LastError, status.String()) {
				t.Errorf("%+v", l)
			}
			if n := w.metric("intumwa_link_breaker_open") + w.metric("intumwa_messages_rerouted_total"); n != 0 ||
				second.Stats().Submits > 0 {
				t.Error("the link is stopped, or a failover began")
			}
			first.refuses(0, "")
			w.await("sent", 20*time.Second, campaign...)
			if now := w.count(`SELECT count(*) FROM messages WHERE status = 2`); now != failed {
				t.Errorf("%d messages have failed, %d before the sender was blocked", now, failed)
			}
			w.until("nothing is blocked", func() bool { l := w.linkState("lumitel-1"); return l.SendersBlocked == 0 })
			w.settledAll()
			w.clean(first)
		})
	}
}

// TestWaitingShowsRefusal: a message shows why the carrier last refused it, while it waits and after its end.
//
// Source: rule carriers 3.14.
func TestWaitingShowsRefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{SubmitStatus: carriersim.SystemError}})
	w.start(mno.mno(func(c *setup.Carrier) { c.RetryMin, c.RetryMax = 300*time.Millisecond, 300*time.Millisecond }))
	id := w.sendTo("00")
	shown := func() string {
		history, err := lookup.New(w.hot).HistoryOf(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lookup.Timeline(lookup.Record{Segments: 1}, history) {
			if m.Event == "refused" && !m.At.IsZero() {
				return m.Detail
			}
		}
		return ""
	}
	const first, then = "ESME_RSYSERR: the carrier has an internal error", "0x00000400: a status of the carrier's own"
	w.until(first, func() bool { return shown() == first })
	mno.refuses(carriersim.VendorError, "")
	w.until(then, func() bool { return shown() == then })
	w.until("operators see how many", func() bool {
		l := w.linkState("lumitel-1")
		return l.Refused["ESME_RSYSERR"] > 0 && l.Refused["0x00000400"] > 0
	})
	mno.refuses(0, "")
	w.await("sent", 10*time.Second, id)
	if s := shown(); s != then {
		t.Errorf("after its end it shows %q", s)
	}
}

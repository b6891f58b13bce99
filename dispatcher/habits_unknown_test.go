package dispatcher_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/tools/carriersim"
)

// TestHabitsOfLostAnswers: a submit_sm whose answer is lost. on_ambiguous
// decides what the carrier gets and what becomes of the message.
func TestHabitsOfLostAnswers(t *testing.T) {
	t.Parallel()
	habits := []struct {
		habit, source string
		fate          string
		text          string
		policy        setup.Ambiguous
		echo          bool          // user_message_reference is sent
		hold          time.Duration // unknown_hold; 0 is 2 s
		ends, reason  string
		submits       int // that reach the carrier
		resent        float64
	}{
		{habit: "silent on a live link, resend", source: "rule carriers 6.4", fate: "06", policy: setup.AmbiguousResend,
			ends: "pending", submits: 2, resent: 1},
		{habit: "silent on a live link, hold", source: "rule carriers 6.4", fate: "06", policy: setup.AmbiguousAwaitReceipt,
			ends: "pending", submits: 1},
		{habit: "silent on a live link, fail", source: "rule carriers 6.4", fate: "06", policy: setup.AmbiguousFail,
			ends: "failed", reason: "no_answer", submits: 1},
		{habit: "taken and never answered, the receipt echoes the reference", source: "rule carriers 2.13", fate: "36",
			policy: setup.AmbiguousResend, echo: true,
			ends: "sent", submits: 1},
		{habit: "the same, to be failed", source: "rule carriers 2.13", fate: "36", policy: setup.AmbiguousFail, echo: true,
			hold: time.Hour,
			ends: "sent", submits: 1},
		{habit: "dropped, resend", source: "rule carriers 6.1", fate: "23", policy: setup.AmbiguousResend, ends: "sent",
			submits: 2, resent: 1},
		{habit: "dropped, hold", source: "rule carriers 6.1", fate: "23", policy: setup.AmbiguousAwaitReceipt, ends: "pending",
			submits: 1},
		{habit: "dropped, fail", source: "rule carriers 6.1", fate: "23", policy: setup.AmbiguousFail, ends: "failed",
			reason: "no_answer", submits: 1},
		{habit: "several segments, taken and never answered, echoed", source: "rule carriers 2.13, 6.7", fate: "36",
			text:   strings.Repeat("a", 400),
			policy: setup.AmbiguousResend, echo: true, ends: "sent", submits: 3},
	}
	w := newWorld(t)
	var carriers []setup.Carrier
	sims := make([]*sim, len(habits))
	for i, h := range habits {
		sims[i] = w.carrier(carriersim.Options{Name: fmt.Sprint("sim", i)})
		carriers = append(carriers, named(fmt.Sprint("carrier", i), sims[i], func(c *setup.Carrier) {
			c.OnAmbiguous, c.NoReference = h.policy, !h.echo
			holds(c, cmp.Or(h.hold, 2*time.Second), 300*time.Millisecond)
		}))
	}
	w.start(carriers...)
	for i, h := range habits {
		t.Run(h.habit, func(t *testing.T) {
			t.Parallel()
			w, mno, name := w.in(t), sims[i], fmt.Sprint("carrier", i)
			to := w.number(h.fate)
			id := w.send(note{to: to, text: h.text, carrier: name})[0]
			if h.fate == "06" || h.fate == "36" {
				w.until("the alarm is raised", func() bool {
					return w.metric("intumwa_smpp_submit_timeouts_total", "carrier", name) > 0
				})
			}
			w.until("its end", func() bool {
				status, _ := w.statusOf(id)
				return status == h.ends && len(mno.submitsTo(to)) >= h.submits &&
					w.metric("intumwa_segments_resent_total", "carrier", name) >= h.resent &&
					(h.submits > 1 || w.metric("intumwa_smpp_window_in_flight", "carrier", name) == 0)
			})
			if h.submits == 1 { // it is not sent again
				w.until("it is off the outbox", func() bool {
					return w.count(`SELECT count(*) FROM outbox WHERE message_id = $1`, id) == 0
				})
			}
			if n := len(mno.submitsTo(to)); n != h.submits {
				t.Errorf("%s (%s): the carrier got %d submit_sm, want %d", h.habit, h.source, n, h.submits)
			}
			if status, reason := w.statusOf(id); status != h.ends || reason != h.reason {
				t.Errorf("%s (%s): %s %q, want %s %q", h.habit, h.source, status, reason, h.ends, h.reason)
			}
			if n := w.metric("intumwa_segments_resent_total", "carrier", name); n != h.resent {
				t.Errorf("%s: %v segments are counted as sent again, want %v", h.habit, n, h.resent)
			}
			for _, v := range mno.Violations() {
				t.Errorf("%s: %s", v.Command, v.Text)
			}
		})
	}
}

// TestHoldIsSetInTime: docs/runbooks/unknown-outcome.md. on_ambiguous: hold, set while a submit_sm is overdue, holds
// that one too: by a reload, which keeps the bind, or by another process after the old one has ended.
func TestHoldIsSetInTime(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(w *world, c setup.Carrier){
		"by a reload": func(w *world, c setup.Carrier) {
			if err := w.d.Reload([]setup.Carrier{c}); err != nil {
				w.Fatal(err)
			}
		},
		"by another process": func(w *world, c setup.Carrier) {
			w.stop()
			if n := w.count(`SELECT count(*) FROM outbox`); n != 1 {
				w.Errorf("%d messages wait for the next process, want the one that resend would send again", n)
			}
			w.start(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mno := w.carrier(carriersim.Options{})
			conf := func(policy setup.Ambiguous) setup.Carrier {
				return mno.mno(func(c *setup.Carrier) {
					c.OnAmbiguous, c.NoReference = policy, true
					holds(c, 5*time.Second, 300*time.Millisecond)
				})
			}
			w.start(conf(setup.AmbiguousResend))
			to := w.number("06") // silent on a live link
			id := w.send(note{to: to})[0]
			w.until("it is overdue", func() bool { return w.metric("intumwa_smpp_submit_unknown_outcome") == 1 })
			set(w, conf(setup.AmbiguousAwaitReceipt))
			w.until("it is off the outbox", func() bool {
				return w.count(`SELECT count(*) FROM outbox WHERE message_id = $1`, id) == 0
			})
			if status, _ := w.statusOf(id); status != "pending" {
				t.Errorf("it is %s", status)
			}
			if n := len(mno.submitsTo(to)); n != 1 {
				t.Errorf("the carrier got %d submit_sm", n)
			}
			if binds := mno.Stats().Binds; binds != map[string]uint64{"by a reload": 1, "by another process": 2}[name] {
				t.Errorf("%d binds", binds)
			}
		})
	}
}

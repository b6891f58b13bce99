package dispatcher_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/tools/carriersim"
)

// TestHabitsOfLostAnswers: a submit_sm whose answer is lost. What the carrier
// got of it, and what became of the message, depends on on_ambiguous.
func TestHabitsOfLostAnswers(t *testing.T) {
	t.Parallel()
	habits := []struct {
		habit, source string
		fate          string
		text          string
		policy        dispatcher.Ambiguous
		echo          bool          // user_message_reference is sent
		hold          time.Duration // unknown_hold; 0 stands for 2 s
		ends, reason  string
		submits       int // that reach the carrier
		resent        float64
	}{
		{habit: "silent on a live link, resend", source: "rule carriers 6.4", fate: "06", policy: dispatcher.AmbiguousResend, ends: "pending", submits: 2, resent: 1},
		{habit: "silent on a live link, hold", source: "rule carriers 6.4", fate: "06", policy: dispatcher.AmbiguousHold, ends: "pending", submits: 1},
		{habit: "silent on a live link, fail", source: "rule carriers 6.4", fate: "06", policy: dispatcher.AmbiguousFail, ends: "failed", reason: "no_answer", submits: 1},
		{habit: "taken and never answered, the receipt echoes the reference", source: "rule carriers 2.13", fate: "36", policy: dispatcher.AmbiguousResend, echo: true,
			ends: "sent", submits: 1},
		{habit: "the same, long before unknown_hold is over", source: "rule carriers 2.13", fate: "36", policy: dispatcher.AmbiguousResend, echo: true, hold: time.Hour,
			ends: "sent", submits: 1},
		{habit: "the same, held", source: "rule carriers 2.13", fate: "36", policy: dispatcher.AmbiguousHold, echo: true, ends: "sent", submits: 1},
		{habit: "the same, to be failed", source: "rule carriers 2.13", fate: "36", policy: dispatcher.AmbiguousFail, echo: true, hold: time.Hour,
			ends: "sent", submits: 1},
		{habit: "several segments, to be failed", source: "rule carriers 2.13", fate: "36", text: strings.Repeat("a", 400),
			policy: dispatcher.AmbiguousFail, echo: true, hold: time.Hour, ends: "sent", submits: 3},
		{habit: "taken and dropped, the receipt echoes the reference", source: "rule carriers 6.6", fate: "37", policy: dispatcher.AmbiguousResend, echo: true,
			ends: "sent", submits: 1},
		{habit: "taken and dropped, no reference: it arrives twice", source: "rule carriers 6.1", fate: "37", policy: dispatcher.AmbiguousResend,
			ends: "sent", submits: 2, resent: 1},
		{habit: "dropped, resend", source: "rule carriers 6.1", fate: "23", policy: dispatcher.AmbiguousResend, ends: "sent", submits: 2, resent: 1},
		{habit: "dropped, hold", source: "rule carriers 6.1", fate: "23", policy: dispatcher.AmbiguousHold, ends: "pending", submits: 1},
		{habit: "dropped, fail", source: "rule carriers 6.1", fate: "23", policy: dispatcher.AmbiguousFail, ends: "failed", reason: "no_answer", submits: 1},
		{habit: "half an answer, resend", source: "rule carriers 6.2", fate: "24", policy: dispatcher.AmbiguousResend, ends: "sent", submits: 2, resent: 1},
		{habit: "several segments, taken and never answered, echoed", source: "rule carriers 2.13, 6.7", fate: "36", text: strings.Repeat("a", 400),
			policy: dispatcher.AmbiguousResend, echo: true, ends: "sent", submits: 3},
		{habit: "the same, long before unknown_hold is over", source: "rule carriers 2.13", fate: "36", text: strings.Repeat("a", 400),
			policy: dispatcher.AmbiguousResend, echo: true, hold: time.Hour, ends: "sent", submits: 3},
	}
	w := newWorld(t)
	var carriers []dispatcher.Carrier
	sims := make([]*sim, len(habits))
	for i, h := range habits {
		sims[i] = w.carrier(carriersim.Options{Name: fmt.Sprint("sim", i)})
		carriers = append(carriers, named(fmt.Sprint("carrier", i), sims[i], func(c *dispatcher.Carrier) {
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
			sent := time.Now()
			id := w.send(note{to: to, text: h.text, carrier: name})[0]
			if h.fate == "06" || h.fate == "36" {
				w.until("the alarm is raised", func() bool { return w.metric("intumwa_smpp_submit_timeouts_total", "carrier", name) > 0 })
				if n := w.metric("intumwa_smpp_window_in_flight", "carrier", name); n == 0 && !h.echo && time.Since(sent) < 2*time.Second { // an echoed receipt gives it back
					t.Error("the slot was not kept")
				}
			}
			w.until("its end", func() bool {
				status, _ := w.statusOf(id)
				return status == h.ends && len(mno.submitsTo(to)) >= h.submits && w.metric("intumwa_segments_resent_total", "carrier", name) >= h.resent &&
					(h.submits > 1 || w.metric("intumwa_smpp_window_in_flight", "carrier", name) == 0)
			})
			// It is left alone from now on: longer than a resend waits.
			if h.submits == 1 {
				w.stays(6*time.Second, "it is not sent again", func() bool { return len(mno.submitsTo(to)) == h.submits })
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

// TestHabitOfDyingLinks: a carrier that closes the connection in the middle of
// a full window, again and again: no message is lost, and none is doubled more
// often than segments were out.
//
// Source: rule carriers 6.1, 10.3.
func TestHabitOfDyingLinks(t *testing.T) {
	t.Parallel()
	const window = 10
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, RespDelay: 5 * time.Millisecond})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].Window, c.Links[0].TPS = window, 300 }))
	const n, deaths = 400, 3 // after more of them in a row the next bind waits long
	ids := w.sendMany(n, "00")
	for i := range deaths {
		before := mno.Stats().Accepted
		w.eventually(time.Minute, func() bool { return mno.Stats().Accepted > before+30 || w.count(`SELECT count(*) FROM outbox`) == 0 },
			func() string { return "traffic flows" })
		if i%2 == 0 {
			mno.ResetAll()
		} else {
			mno.DropAll()
		}
	}
	w.await("sent", time.Minute, ids...)
	w.settledAll()
	st := mno.Stats()
	if limit := uint64(window * deaths); st.Duplicates > limit {
		t.Errorf("%d segments arrived twice; %d connections died with at most %d out", st.Duplicates, deaths, window)
	}
	w.until("what arrived twice is counted as sent again", func() bool { return w.metric("intumwa_segments_resent_total") >= float64(st.Duplicates) })
	t.Logf("%d deaths: %d of %d arrived twice, %v sent again", deaths, st.Duplicates, n, w.metric("intumwa_segments_resent_total"))
}

// TestHabitOfLongMessagesAndDyingLinks: of a long message whose link dies in
// the middle only what was not accepted is sent again.
//
// Source: rule carriers 6.7, 10.3.
func TestHabitOfLongMessagesAndDyingLinks(t *testing.T) {
	t.Parallel()
	for _, policy := range []dispatcher.Ambiguous{dispatcher.AmbiguousResend, dispatcher.AmbiguousHold} {
		w := newWorld(t)
		// It closes the connection instead of answering segment 4 of a session.
		mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{DropAfter: 4}})
		w.start(mno.mno(func(c *dispatcher.Carrier) {
			c.OnAmbiguous = policy
			c.Links[0].Window = 1 // one after the other
		}))
		to := w.number("00")
		id := w.send(note{to: to, text: strings.Repeat("a", 900)})[0] // 6 segments
		w.until("the connection died", func() bool { return mno.Stats().Connections >= 2 })
		mno.Faults(func(f *carriersim.Faults) { f.DropAfter = 0 })
		w.settledAll()
		seen := map[uint8]int{}
		for _, m := range mno.submitsTo(to) {
			seen[m.Concat.Seq]++
		}
		want := map[dispatcher.Ambiguous]int{dispatcher.AmbiguousResend: 2, dispatcher.AmbiguousHold: 1}[policy]
		for seq := uint8(1); seq <= 6; seq++ {
			n := 1
			if seq == 4 {
				n = want
			}
			if seen[seq] != n {
				t.Errorf("policy %d: segment %d was sent %d times, want %d", policy, seq, seen[seq], n)
			}
		}
		if policy == dispatcher.AmbiguousResend {
			w.await("sent", 10*time.Second, id)
		} else if status, _ := w.statusOf(id); status != "pending" {
			t.Errorf("with hold the message is %s", status)
		}
		w.clean(mno)
		w.stop()
	}
}

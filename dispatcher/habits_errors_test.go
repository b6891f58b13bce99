package dispatcher_test

import (
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/tools/carriersim"
)

// TestHabitsOfErrors: a refused message is retried, fails or waits, by the
// class of the status.
func TestHabitsOfErrors(t *testing.T) {
	t.Parallel()
	habits := []struct {
		fate, habit, source string
		text                string
		ends, reason        string
		submits             int // that the carrier got; 0: any number
	}{
		{fate: "02", habit: "ESME_RINVDSTADR", source: "rule carriers 3.5", ends: "failed", reason: "ESME_RINVDSTADR",
			submits: 1},
		{fate: "03", habit: "throttled twice", source: "rule carriers 3.1", ends: "sent", submits: 3},
		{fate: "04", habit: "ESME_RSYSERR once", source: "rule carriers 3.3", ends: "sent", submits: 2},
		{fate: "05", habit: "queue full once", source: "rule carriers 3.1", ends: "sent", submits: 2},
		{fate: "29", habit: "second segment refused", source: "rule carriers 2.12; rule choices 5.4",
			text: strings.Repeat("a", 200), ends: "failed", reason: "ESME_RINVDSTADR", submits: 2},
		{fate: "41", habit: "ESME_RSUBMITFAIL once", source: "rule carriers 3.3", ends: "sent", submits: 2},
		{fate: "42", habit: "throttled until the validity is over", source: "rule choices 4.6, 5.5", ends: "failed",
			reason: "expired"},
		{fate: "47", habit: "ESME_RX_P_APPN", source: "rule carriers 3.5", ends: "failed", reason: "ESME_RX_P_APPN",
			submits: 1},
		{fate: "48", habit: "ESME_RX_T_APPN once", source: "rule carriers 3.3", ends: "sent", submits: 2},
		{fate: "49", habit: "a vendor's code once", source: "rule carriers 3.4", ends: "sent", submits: 2},
		{fate: "56", habit: "refused without a body", source: "rule carriers 3.8", ends: "failed", reason: "ESME_RINVDSTADR",
			submits: 1},
		{fate: "38", habit: "answered twice", source: "rule carriers 3.11", ends: "sent", submits: 1},
		{fate: "39", habit: "a stranger's answer first", source: "rule carriers 3.11", ends: "sent", submits: 1},
		{fate: "66", habit: "answers out of order", source: "rule carriers 3.10", ends: "sent", submits: 1},
		{fate: "22", habit: "late answer", source: "rule carriers 3.10, 6.5", ends: "sent", submits: 1},
	}
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{LateResponse: 2 * time.Second})
	w.start(mno.mno(func(c *setup.Carrier) { c.RetryMax, c.Links[0].TPS = 300*time.Millisecond, 1000 }))
	ids, numbers := make([]int64, len(habits)), make([]string, len(habits))
	for i, h := range habits {
		n := note{to: w.number(h.fate), text: h.text}
		numbers[i], ids[i] = n.to.Digits(), w.send(n)[0]
	}
	for i, h := range habits {
		if h.reason == "expired" {
			w.until("it is refused", func() bool {
				return w.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND refused IS NOT NULL`, ids[i]) == 1
			})
			w.exec(`UPDATE outbox SET expires_at = now() WHERE message_id = $1`, ids[i])
		}
		w.await(h.ends, 15*time.Second, ids[i])
		if _, reason := w.statusOf(ids[i]); reason != h.reason {
			t.Errorf("%s (%s): it failed for %q, want %q", h.habit, h.source, reason, h.reason)
		}
		n := 0
		for _, m := range mno.Submits() {
			if m.Destination.Addr == numbers[i] {
				n++
			}
		}
		if h.submits > 0 && n != h.submits || h.submits == 0 && n == 0 {
			t.Errorf("%s (%s): %d submit_sm, want %d", h.habit, h.source, n, h.submits)
		}
	}
	w.settledAll()
	w.clean(mno)
}

// TestHabitOfWrongConfiguration: a carrier that refuses everything, apparently
// because of our settings, stops the link after five handsets. The messages
// wait; one probe at a time tests whether the carrier accepts again.
//
// Source: rule carriers 3.6.
func TestHabitOfWrongConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true,
		Faults: carriersim.Faults{SubmitStatus: carriersim.InvalidSourceTON}})
	w.start(mno.mno(func(c *setup.Carrier) { c.Links[0].Window = 10 }))
	same := w.number("00")
	twice := w.send(note{to: same, text: "1"}, note{to: same, text: "2"}, note{to: same, text: "3"},
		note{to: same, text: "4"}, note{to: same, text: "5"}, note{to: same, text: "6"})
	w.until("one handset is tried again and again", func() bool { return mno.Stats().Submits >= 12 })
	if w.metric("intumwa_link_breaker_open") != 0 {
		t.Error("one handset opened the breaker")
	}
	ids := append(twice, w.sendMany(40, "00")...)
	w.until("the breaker opens", func() bool { return w.metric("intumwa_link_breaker_open") == 1 })
	w.until("operators see it", func() bool { return strings.Contains(w.linkState("lumitel-1").LastError, "stopped") })
	w.until("the alarm is raised", func() bool { return w.log.has("level=ERROR", "event=link_stopped") })
	at := mno.Stats().Submits
	w.stays(700*time.Millisecond, "no flood while it is open", func() bool { return mno.Stats().Submits <= at+10 })
	w.until("a probe went", func() bool { return mno.Stats().Submits > at })
	if n := w.count(`SELECT count(*) FROM messages WHERE status <> 0`); n > 0 {
		t.Errorf("%d messages are no longer pending", n)
	}
	mno.Faults(func(f *carriersim.Faults) { f.SubmitStatus = 0 })
	w.await("sent", 20*time.Second, ids...)
	w.until("the breaker is closed", func() bool { return w.metric("intumwa_link_breaker_open") == 0 })
	w.settledAll()
	w.clean(mno)
}

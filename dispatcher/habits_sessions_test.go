package dispatcher_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/tools/carriersim"
)

// TestHabitsOfSessions: carriers disturb a session under traffic, in one case for each way in
// which a segment can end (the tables of smpp have the others). Every message gets through,
// and only segments in flight may arrive twice.
func TestHabitsOfSessions(t *testing.T) {
	t.Parallel()
	habits := []struct {
		habit, source string
		fate          string // of one message among the others
		faults        carriersim.Faults
		act           func(*world, *sim)
		silent        bool // only enquire_link detects it
		doubled       int  // segments that may arrive twice
		binds         uint64
	}{
		{habit: "unbind", source: "rule carriers 5.4", fate: "57", binds: 2},
		{habit: "text that is no PDU", source: "rule carriers 7.1", fate: "58", doubled: 20, binds: 2},
		{habit: "reset", source: "rule carriers 6.2", act: func(_ *world, s *sim) { s.ResetAll() }, doubled: 20, binds: 2},
		{habit: "half-open: takes all and says nothing", source: "rule carriers 6.3", act: (*world).mute, silent: true,
			doubled: 20, binds: 2},
		{habit: "answers out of order", source: "rule carriers 3.10",
			faults: carriersim.Faults{RespJitter: 80 * time.Millisecond}, binds: 1},
		{habit: "every tenth is nacked", source: "rule carriers 9.16", faults: carriersim.Faults{NackEvery: 10}, binds: 1},
		{habit: "ESME_RINVBNDSTS", source: "rule carriers 3.7", act: func(w *world, s *sim) {
			s.Faults(func(f *carriersim.Faults) { f.SubmitStatus = carriersim.InvalidBindStatus })
			// all others may already be out
			defer w.await("sent", 25*time.Second, w.sendVia("carrier"+strings.TrimPrefix(s.Name(), "sim"), 1, "00")...)
			w.until("a submit is refused", func() bool { return s.Stats().Refused[carriersim.InvalidBindStatus] > 0 })
			s.Faults(func(f *carriersim.Faults) { f.SubmitStatus = 0 })
		}, doubled: 20, binds: 2},
	}
	w := newWorld(t)
	var carriers []setup.Carrier
	sims := make([]*sim, len(habits))
	for i, h := range habits {
		sims[i] = w.carrier(carriersim.Options{Name: fmt.Sprint("sim", i), RespDelay: 2 * time.Millisecond, Faults: h.faults})
		carriers = append(carriers, named(fmt.Sprint("carrier", i), sims[i], func(c *setup.Carrier) {
			l := &c.Links[0]
			l.TPS = 200
			if h.silent {
				l.EnquireLink, l.EnquireTimeout, l.WriteTimeout = 500*time.Millisecond, 2*time.Second, time.Second
			}
		}))
	}
	w.start(carriers...)
	for i, h := range habits {
		t.Run(h.habit, func(t *testing.T) {
			t.Parallel()
			w, mno, name := w.in(t), sims[i], fmt.Sprint("carrier", i)
			ids := w.sendVia(name, 40, "00")
			if h.fate != "" {
				ids = append(ids, w.sendVia(name, 1, h.fate)...)
			}
			ids = append(ids, w.sendVia(name, 40, "00")...)
			if h.act != nil {
				w.until("traffic flows", func() bool { return mno.Stats().Accepted > 10 })
				h.act(w, mno)
			}
			w.await("sent", 25*time.Second, ids...)
			// all messages may have been out before
			w.until("it has bound as often", func() bool { return mno.Stats().Binds >= h.binds })
			st := mno.Stats()
			if h.binds == 1 && st.Binds > 1 {
				t.Errorf("%s (%s): %d binds, want %d", h.habit, h.source, st.Binds, h.binds)
			}
			if int(st.Duplicates) > h.doubled {
				t.Errorf("%s (%s): %d segments arrived twice, %d were out", h.habit, h.source, st.Duplicates, h.doubled)
			}
			for _, v := range mno.Violations() {
				t.Errorf("%s: %s", v.Command, v.Text)
			}
		})
	}
}

// mute silences the current sessions, not later ones, until the link has given them up.
func (w *world) mute(s *sim) {
	w.Helper()
	before := s.Stats().Connections
	s.Faults(func(f *carriersim.Faults) { f.HalfOpen = true })
	w.until("the link leaves a session that says nothing", func() bool { return s.Stats().Connections > before })
	s.Faults(func(f *carriersim.Faults) { f.HalfOpen = false })
	s.DropAll()
}

package dispatcher

import (
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/messages/outbox"
	"intumwa/smpp"
	"intumwa/sms"
)

// throttledLate is a late temporary refusal of a segment that was given up.
func throttledLate(m *core.InFlight, segment, total int) settling.LateAnswer {
	return settling.LateAnswer{Link: "l1", Whose: m.Msg.ID, Segment: segment, Total: total,
		Result: smpp.Result{Outcome: smpp.Rejected, Status: smpp.StatusThrottled}, At: time.Now()}
}

// TestLateRefusals: after a late temporary refusal a held message's segment goes out
// again, even with other segments in flight.
func TestLateRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	no := ended(smpp.NoAnswer, 0, nil)
	for name, play := range map[string]func(b *bench) (id int64, missing int){
		"in one lot with the end of the wait": func(b *bench) (int64, int) {
			m := b.begun(1)
			b.settle(settling.Settlement{Results: []core.Result{no(m, 1)}, Late: []settling.LateAnswer{throttledLate(m, 1, 1)}})
			return m.Msg.ID, 1
		},
		"while another segment is out": func(b *bench) (int64, int) {
			m := b.begun(2)
			b.settle(settling.Settlement{Results: []core.Result{no(m, 1)}})
			b.settle(settling.Settlement{Late: []settling.LateAnswer{throttledLate(m, 1, 2)}})
			b.settle(settling.Settlement{Results: []core.Result{accepted("x2")(m, 2)}})
			return m.Msg.ID, 1
		},
		"while another that was refused late is out again": func(b *bench) (int64, int) {
			m := b.begun(2)
			b.settle(settling.Settlement{Results: []core.Result{no(m, 1), no(m, 2)}})
			b.settle(settling.Settlement{Late: []settling.LateAnswer{throttledLate(m, 1, 2)}})
			b.exec(`UPDATE outbox SET due_at = now()`)
			again := b.claim(m.Msg.ID, 1)
			again.Total = 2
			b.settle(settling.Settlement{Late: []settling.LateAnswer{throttledLate(m, 2, 2)}})
			b.settle(settling.Settlement{Results: []core.Result{accepted("x1")(again, 1)}})
			return m.Msg.ID, 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			id, missing := play(b)
			if n := b.count(`SELECT count(*) FROM outbox WHERE message_id = $1 AND claimed_by IS NULL`, id); n != 1 {
				t.Error("it is not to be sent again")
			}
			if n := b.count(`SELECT count(*) FROM segments WHERE message_id = $1 AND segment = $2`, id, missing); n != 0 {
				t.Errorf("segment %d counts as out", missing)
			}
			b.clean()
		})
	}
}

// TestSentBesideRefused: segments whose receipts are in the inbox when their link goes
// down count as sent, even with on_ambiguous fail. Their message is not sent again.
func TestSentBesideRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousFail })
	m := b.begun(2)
	var reports []settling.Arrival
	for segment := 1; segment <= 2; segment++ {
		a := b.receipt([]string{"a1", "a2"}[segment-1], "DELIVRD")
		ref := profile.Reference(m.Msg.ID, segment)
		a.Reference, a.Number = &ref, string(m.Msg.Number)
		reports = append(reports, a)
	}
	b.settle(settling.Settlement{Receipts: reports})
	no := ended(smpp.NoAnswer, 0, smpp.ErrNotBound)
	b.settle(settling.Settlement{Results: []core.Result{no(m, 1), no(m, 2)}})
	if status, reason := b.status(m.Msg.ID); status != sms.Sent {
		t.Errorf("it is %v %q", status, reason)
	}
	if n := b.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Error("it is to be sent again")
	}
	b.clean()
}

// TestLateRefusalOfAnothersMessage: a message that a failover carrier has by now is left to
// that carrier's settler.
func TestLateRefusalOfAnothersMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	m := &core.InFlight{Carrier: &core.Carrier{Name: "leo"}, Msg: &outbox.Claimed{ID: 1, Epoch: 1}, Open: 1}
	b.d.core.InFlight.Add(m)
	b.settle(settling.Settlement{Late: []settling.LateAnswer{throttledLate(m, 1, 2)}})
	if len(m.Results) > 0 {
		t.Error("its attempt was touched")
	}
}

// TestAnsweredLateIsNotSentAgain: a message waiting here to be sent again stays unsent when the first submit record's
// answer arrives, and leaves the outbox.
func TestAnsweredLateIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.begun(1)
	b.by(m, ended(smpp.NoAnswer, 0, nil))
	b.exec(`UPDATE outbox SET due_at = now()`)
	again := b.claim(m.Msg.ID, 0)
	b.settle(settling.Settlement{Late: []settling.LateAnswer{late(m, 1, 1, "a")}})
	if !again.Stopped.Load() {
		t.Error("it is sent again")
	}
	b.worker.Begin(t.Context(), again)
	b.settle(b.s.Grab())
	if n := b.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Error("it is on the outbox still")
	}
	if n := b.count(`SELECT count(*) FROM segments`); n != 1 {
		t.Errorf("%d submit records are stored", n)
	}
	b.clean()
}

// TestLateBesideTheEnd: late answers count for the attempt whose end is settled with them.
func TestLateBesideTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	no := ended(smpp.NoAnswer, 0, nil)
	for name, c := range map[string]struct {
		policy  setup.Ambiguous
		late    func(m *core.InFlight) settling.LateAnswer
		apart   bool // the late answer is settled before
		waiting int  // in the outbox
	}{
		"refused for now": {setup.AmbiguousAwaitReceipt, func(m *core.InFlight) settling.LateAnswer {
			return throttledLate(m, 1, 2)
		}, false, 1},
		"refused for now, before": {setup.AmbiguousAwaitReceipt, func(m *core.InFlight) settling.LateAnswer {
			return throttledLate(m, 1, 2)
		}, true, 1},
		"accepted and sent again": {setup.AmbiguousResend, func(m *core.InFlight) settling.LateAnswer {
			return late(m, 1, 2, "a")
		}, false, 0},
		"accepted and sent again, by itself": {setup.AmbiguousResend, func(m *core.InFlight) settling.LateAnswer {
			return late(m, 1, 2, "a")
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			b.configure(func(conf *setup.Carrier) {
				conf.OnAmbiguous, conf.RetryMin, conf.RetryMax = c.policy, time.Minute, time.Hour
			})
			m, first, second := b.begun(2), accepted("x"), 1
			if c.policy == setup.AmbiguousAwaitReceipt {
				first, second = ended(smpp.NotWritten, 0, smpp.ErrNotBound), 2
			}
			b.settle(settling.Settlement{Results: []core.Result{no(m, 1), first(m, 2)}})
			b.exec(`UPDATE outbox SET due_at = now()`)
			again := b.claim(m.Msg.ID, 1)
			again.Total = 2
			lot := settling.Settlement{Late: []settling.LateAnswer{c.late(m)}}
			if c.apart {
				b.settle(lot)
				lot.Late = nil
			}
			lot.Results = []core.Result{accepted("y")(again, second)}
			b.settle(lot)
			if n := b.count(`SELECT count(*) FROM outbox`); n != c.waiting {
				t.Errorf("%d messages are to be sent, want %d", n, c.waiting)
			}
			if n := b.count(`SELECT count(*) FROM outbox WHERE due_at <= now()`); n != 0 {
				t.Error("it is due again at once")
			}
			b.clean()
		})
	}
}

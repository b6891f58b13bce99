package dispatcher

import (
	"fmt"
	"testing"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/smpp"
	"intumwa/sms"
)

// TestFailNeverSendsAgain: with on_ambiguous fail a message is not submitted that a carrier left unanswered under
// another policy: before the setting changed, or at a process with another one. It fails.
func TestFailNeverSendsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, segments := range []int{1, 2} {
		for name, freed := range map[string]bool{"not answered": false, "its process died": true} {
			t.Run(fmt.Sprintf("%d, %s", segments, name), func(t *testing.T) {
				b := b.in(t)
				b.cleared()
				b.configure(func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousResend })
				m := b.begun(segments)
				b.exec(`UPDATE messages SET body = repeat('a', 150 * segments) WHERE id = $1`, m.Msg.ID)
				if b.by(m, []fate{unanswered, ended(smpp.NotWritten, 0, smpp.ErrNotBound)}[:segments]...); freed {
					b.exec(`DELETE FROM segments`)
					b.exec(`UPDATE outbox SET due_at = now()`)
					b.claimedBy(8, m)
					if err := b.d.recovery.Free(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				b.exec(`UPDATE outbox SET due_at = now()`)
				b.configure(func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousFail })
				b.worker.Begin(t.Context(), b.claim(m.Msg.ID, 0))
				lot := b.s.Grab()
				for _, r := range lot.Results {
					if r.Segment > 0 {
						t.Errorf("segment %d is submitted", r.Segment)
					}
				}
				b.settle(lot)
				if status, reason := b.status(m.Msg.ID); status != sms.Failed || reason != "no_answer" {
					t.Errorf("it is %v %q", status, reason)
				}
				b.clean()
			})
		}
	}
}

// TestFailButReported: with on_ambiguous fail, a segment without an answer does not fail its message when its receipt
// has come before: the other segments decide.
func TestFailButReported(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousFail })
	for name, lots := range map[string][][]int{"together": {{1, 2}}, "one by one": {{1}, {2}},
		"the other first": {{2}, {1}}} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			m := b.begun(2)
			a, ref := b.receipt("a1", "DELIVRD"), profile.Reference(m.Msg.ID, 1)
			a.Reference, a.Number = &ref, string(m.Msg.Number)
			b.reported(a)
			fates := []fate{unanswered, accepted("a2")}
			for _, lot := range lots {
				var results []core.Result
				for _, segment := range lot {
					results = append(results, fates[segment-1](m, segment))
				}
				b.settle(settling.Settlement{Results: results})
			}
			if status, reason := b.status(m.Msg.ID); status != sms.Pending || b.count(`SELECT count(*) FROM outbox`) != 0 {
				t.Errorf("it is %v %q, or to be sent again", status, reason)
			}
			b.reported(b.receipt("a2", "DELIVRD"))
			if status, reason := b.status(m.Msg.ID); status != sms.Sent {
				t.Errorf("both segments are delivered, and it is %v %q", status, reason)
			}
			b.clean()
		})
	}
}

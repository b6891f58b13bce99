package dispatcher

import (
	"fmt"
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/smpp"
	"intumwa/sms"
)

// text is an MO of so many bytes.
func (b *bench) text(octets int) settling.Arrival {
	return settling.Arrival{Inbound: &handsets.Inbound{At: time.Now(), Carrier: "lumitel", Link: "l1",
		Source: "25779000000", Destination: "INFO",
		Octets: make([]byte, octets)}, PDU: &smpp.Delivery{}}
}

// TestStrangersAreThrottled: unmatched receipts and MOs are kept up to the
// carrier's limit, while matching receipts pass. Receipts that match later make
// room again.
func TestStrangersAreThrottled(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.MaxUnmatched, c.MaxInbound = 100, 50 })
	var w settling.Settlement
	ours := make([]*core.InFlight, 5)
	for i := range ours {
		ours[i] = b.begun(1)
		b.settle(settling.Settlement{Results: []core.Result{accepted(fmt.Sprint("ours", i))(ours[i], 1)}})
		for n := range 20 {
			w.Receipts = append(w.Receipts, b.receipt(fmt.Sprint("theirs", i, "-", n), "DELIVRD"), b.text(10))
		}
		w.Receipts = append(w.Receipts, b.receipt(fmt.Sprint("ours", i), "DELIVRD"))
	}
	b.settle(w)
	for _, m := range ours {
		if status, _ := b.status(m.Msg.ID); status != sms.Sent {
			t.Errorf("message %d is %v", m.Msg.ID, status)
		}
	}
	if n := b.count(`SELECT count(*) FROM receipts`); n != 10 {
		t.Errorf("%d strange receipts are kept, want 10", n)
	}
	if n := b.count(`SELECT count(*) FROM inbound`); n != 5 {
		t.Errorf("%d messages from handsets are kept, want 5", n)
	}
	if n := b.metric("intumwa_deliveries_throttled_total"); n != 90+95 {
		t.Errorf("%v are throttled, want 90 receipts and 95 messages", n)
	}

	// Receipts that come before their submit_sm_resp.
	b.cleared()
	b.configure(func(c *setup.Carrier) { c.MaxUnmatched = 10 })
	b.s.Carrier.Unmatched = core.Quota{}
	for i := range 30 {
		m, id := b.begun(1), fmt.Sprint("early", i)
		b.settle(settling.Settlement{Receipts: []settling.Arrival{b.receipt(id, "DELIVRD")}})
		b.settle(settling.Settlement{Results: []core.Result{accepted(id)(m, 1)}})
		if status, _ := b.status(m.Msg.ID); status != sms.Sent {
			t.Fatalf("message %d of those whose receipt is early is %v", i, status)
		}
	}

	// A long message counts per segment.
	b.cleared()
	b.configure(func(c *setup.Carrier) { c.MaxInbound = 100 })
	b.s.Carrier.Handsets = core.Quota{}
	for range 10 {
		b.settle(settling.Settlement{Receipts: []settling.Arrival{b.text(30_000)}})
	}
	if n := b.count(`SELECT count(*) FROM inbound`); n != 1 {
		t.Errorf("%d long messages are kept", n)
	}
}

// TestNoticesAreBounded: the receipts kept for one message that settle nothing
// are bounded, whatever its carrier sends.
func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.begun(1)
	b.settle(settling.Settlement{Results: []core.Result{accepted("a")(m, 1)}})
	for _, state := range []string{"ENROUTE", "DELIVRD", "UNDELIV"} {
		for range 3 {
			var w settling.Settlement
			for range 20 {
				a := b.receipt("a", state)
				a.Status, a.Final = b.d.core.Running()[0].Config().Meaning(state)
				w.Receipts = append(w.Receipts, a)
			}
			b.settle(w)
		}
	}
	if n := b.count(`SELECT count(*) FROM receipts WHERE message_id = $1`, m.Msg.ID); n != 8 {
		t.Errorf("%d are kept, want 8", n)
	}
	if status, _ := b.status(m.Msg.ID); status != sms.Sent {
		t.Errorf("it is %v", status)
	}
}

package carriersim

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"
)

// again delivers again soon what is refused for the moment, and what is not answered when a busy
// machine had the time to.
var again = Options{Seed: 1, AckTimeout: 2 * time.Second, RedeliverDelay: 10 * time.Millisecond, ReceiptWindow: 2}

// TestRedelivery: refused for the moment, unanswered or lost with the
// connection means delivered again; refused for good does not.
func TestRedelivery(t *testing.T) {
	c, addr := serve(t, again)
	k := bound(t, addr)
	for _, status := range []Status{SystemError, QueueFull, Throttled} {
		k.ack = uint32(status)
		k.submit(usual("25779000000", "a"))
		says(t, k, "resp ESME_ROK", "receipt DELIVRD")
		k.ack = 0
		says(t, k, "receipt DELIVRD")
		until(t, "confirmed", func() bool { return c.Stats().ReceiptsWaiting == 0 })
	}
	if s := c.Stats(); s.Receipts != 3 || s.Redelivered != 3 || s.Confirmed != 3 || s.Discarded != 0 {
		t.Errorf("%+v", s)
	}
	k.ack = uint32(ReceiverTemporary)
	k.submit(usual("25779000000", "a"))
	says(t, k, "resp ESME_ROK", "receipt DELIVRD")
	until(t, "discarded", func() bool { return c.Stats().Discarded == 1 })

	k.ack, k.mute = 0, true
	k.submit(usual("25779000000", "a"))
	says(t, k, "resp ESME_ROK")
	first := k.next()
	says(t, k, "receipt DELIVRD")
	k.write(0x80000005, 0, first.seq, []byte{0})
	until(t, "late answer counted", func() bool { return c.Stats().LateAcks == 1 })
	if v := c.Violations(); len(v) > 0 {
		t.Errorf("%+v", v)
	}
	_ = k.conn.Close()
	k = bound(t, addr)
	says(t, k, "receipt DELIVRD")
	until(t, "confirmed", func() bool { return c.Stats().ReceiptsWaiting == 0 })
}

func TestRedeliveryEnds(t *testing.T) {
	o := again
	o.RedeliverFor = 50 * time.Millisecond
	c, addr := serve(t, o)
	k := bound(t, addr)
	k.ack = uint32(QueueFull)
	k.submit(usual("25779000000", "a"))
	says(t, k, "resp ESME_ROK")
	go func() {
		for k.next().odd == "" {
		}
	}()
	until(t, "given up", func() bool { s := c.Stats(); return s.Discarded == 1 && s.ReceiptsWaiting == 0 })
	c.DropAll()
}

// TestLateScheduler: a receipt that is due before its response goes before it, and one that is
// due with it behind it, also where all have been due for a while.
func TestLateScheduler(t *testing.T) {
	c := New(Options{Seed: 1})
	s := newSession(c, nil, 1)
	s.mode, s.systemID = cmdBindTransceiver, "demo"
	c.join(s)
	for i, of := range []*session{nil, s, s, nil} { // receipt, response; response, receipt
		e := c.queue.fresh()
		e.session, e.systemID, e.command, e.due = of, "demo", cmdDeliverSM, int64(1+i/2)
		if of != nil {
			e.command = cmdSubmitSM | cmdResponse
		}
		e.pdu = finish(appendHeader(e.pdu[:0], e.command, OK, uint32(i)), 0)
		c.queue.push(e)
	}
	touched := map[*session]struct{}{}
	c.runDue(9, touched)
	c.deliverDue(9, touched)
	var commands []uint32
	for rest := s.out; len(rest) > 0; rest = rest[headerLen:] {
		commands = append(commands, binary.BigEndian.Uint32(rest[4:]))
	}
	const response = cmdSubmitSM | cmdResponse
	if want := []uint32{cmdDeliverSM, response, response, cmdDeliverSM}; !slices.Equal(commands, want) {
		t.Errorf("it sends %#x, want %#x", commands, want)
	}
}

// TestReceiptWindow: never more than ReceiptWindow unanswered.
func TestReceiptWindow(t *testing.T) {
	o := again
	o.AckTimeout = time.Minute
	c, addr := serve(t, o)
	k := bound(t, addr)
	k.mute = true
	var first []pdu
	for range 5 {
		k.submit(usual("25779000000", "a"))
	}
	for range 7 {
		if p := k.next(); p.command == 5 {
			first = append(first, p)
		}
	}
	if s := c.Stats(); s.Receipts != 2 || s.ReceiptsWaiting != 5 || len(first) != 2 {
		t.Errorf("%d receipts seen, %+v", len(first), s)
	}
	k.write(0x80000005, 0, first[0].seq, []byte{0})
	says(t, k, "receipt DELIVRD")
	if n := c.Stats().Receipts; n != 3 {
		t.Errorf("%d receipts", n)
	}
}

// TestRestart: a carrier that went away and came back still owes its receipts.
func TestRestart(t *testing.T) {
	c, addr := serve(t, Options{Faults: Faults{HoldReceipts: true}})
	k := bound(t, addr)
	k.submit(usual("25779000000", "a"))
	says(t, k, "resp ESME_ROK")
	if err := c.Serve(t.Context(), nil); !errors.Is(err, ErrServing) {
		t.Errorf("a second Serve: %v", err)
	}
	c.DropAll()
	c.Faults(func(f *Faults) { f.HoldReceipts = false })
	k = bound(t, addr)
	says(t, k, "receipt DELIVRD")
}

func TestMO(t *testing.T) {
	c, addr := serve(t, Options{})
	if err := c.SendMO(MO{From: "25779000001", To: "1234", Text: "x"}); !errors.Is(err, ErrNoSession) {
		t.Errorf("with nobody bound: %v", err)
	}
	k := bound(t, addr)
	for text, coding := range map[string]byte{"Muraho @ home": 8, "Muraho": 0, "Ça va 👍": 8} {
		if err := c.SendMO(MO{From: "25779000001", To: "1234", Text: text}); err != nil {
			t.Fatal(err)
		}
		g := k.next().delivery(t)
		if got, _ := decodeText([]byte(g.text), g.coding, GSM7); got != text || g.esm != 0 || g.coding != coding || g.from != "25779000001" || g.to != "1234" {
			t.Errorf("%q: %+v", text, g)
		}
	}
	until(t, "counted", func() bool { return c.Stats().MO == 3 })
}

func TestReceiptsOnlyWhenAsked(t *testing.T) {
	c, addr := serve(t, quick)
	k := bound(t, addr)
	m := usual("25779000000", "a")
	m.registered = 2 // failures only
	k.submit(m)
	says(t, k, "resp ESME_ROK")
	m.to = "25779000001"
	k.submit(m)
	says(t, k, "resp ESME_ROK", "receipt UNDELIV")
	until(t, "confirmed", func() bool { return c.Stats().ReceiptsWaiting == 0 })
}

// TestUnansweredGenericNack: a generic_nack refuses a receipt for good.
func TestUnansweredGenericNack(t *testing.T) {
	c, addr := serve(t, quick)
	k := bound(t, addr)
	k.mute = true
	k.submit(usual("25779000000", "a"))
	k.next()
	k.write(0x80000000, 3, k.next().seq, nil)
	until(t, "discarded", func() bool { s := c.Stats(); return s.Discarded == 1 && s.ReceiptsWaiting == 0 })
}

// TestAnswersAreStrict: a deliver_sm_resp has one NUL for a body.
func TestAnswersAreStrict(t *testing.T) {
	c, addr := serve(t, quick)
	k := bound(t, addr)
	k.mute = true
	m := usual("25779000000", "\x00M\x00u")
	m.coding = 8
	for i, body := range [][]byte{nil, {'x'}, {'x', 0}, {0}} {
		k.submit(m)
		k.next()
		p := k.next()
		if g := p.delivery(t); g.field("text") != "" || g.coding != 0 {
			t.Errorf("receipt of a UCS-2 message: %+v", g)
		}
		k.write(0x80000005, 0, p.seq, body)
		until(t, "answered", func() bool { return c.Stats().Confirmed == uint64(i+1) })
	}
	if n := c.Stats().Violations; n != 3 {
		t.Errorf("%d violations: %+v", n, c.Violations())
	}
}

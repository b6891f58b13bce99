package smpp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// heap keeps deliveries unanswered until the test answers them.
type heap struct {
	mu   sync.Mutex
	list []*Delivery
}

func (h *heap) keep(d *Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, d)
}

func (h *heap) answer() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.list {
		d.Respond(StatusOK)
	}
	h.list = nil
}

func (h *heap) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.list)
}

func (h *heap) size() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.list {
		n += len(d.ShortMessage)
	}
	return n
}

// TestDeliverBytes: deliveries that wait for storage are bounded in bytes. The rest is
// refused at once, and responses to our requests still pass.
func TestDeliverBytes(t *testing.T) {
	t.Parallel()
	h := &heap{}
	b, p, _ := newBound(t, func(o *Options) { o.Deliver = h.keep })
	long := deliverBody(0, 0, "", TLV{TagMessagePayload, bytes.Repeat([]byte("x"), maxText)})
	const n = 200
	var flooding sync.WaitGroup
	flooding.Go(func() {
		for i := range uint32(n) {
			p.send(rawDeliver, 0, 1000+i, long...)
		}
	})
	results := submit(t, b)
	flooding.Wait()
	p.send(rawEnquire, 0, 7)
	refused := 0
	for answered := false; !answered; {
		switch got := p.next(); got.command {
		case rawDeliverResp:
			if got.status != 0x14 {
				t.Fatalf("answered %#x", got.status)
			}
			refused++
		case rawSubmit:
			p.accepted(got, "1")
		case rawEnquireResp:
			answered = true
		}
	}
	if r := result(t, results); r.Outcome != Accepted {
		t.Errorf("got %+v", r)
	}
	until(t, "what was taken is handed over", func() bool { return h.count() == n-refused })
	if held := h.size(); held > unansweredBytes || held < unansweredBytes/2 ||
		counted(t, b.metrics.refused) != float64(refused) {
		t.Errorf("%d bytes are held, %d refused", held, refused)
	}
	h.answer()
	if held := b.allowance.bytes.Load(); held != 0 || b.Snapshot().Deliveries != 0 {
		t.Errorf("%d bytes are still held", held)
	}
	for range n - refused {
		p.expect(rawDeliverResp)
	}
	p.send(rawDeliver, 0, 5000, long...)
	until(t, "the next one is taken", func() bool { return h.size() > 0 })
}

// TestBoundedFields: a field that is longer than any carrier sends is refused with the
// field's status; a readable receipt is accepted without the field.
func TestBoundedFields(t *testing.T) {
	between := func(body []byte, source, dest string) []byte {
		body = bytes.Replace(body, []byte("25779000000\x00"), []byte(source+"\x00"), 1)
		return bytes.Replace(body, []byte("INTUMWA\x00"), []byte(dest+"\x00"), 1)
	}
	long := strings.Repeat("0", 60_000) + "25779000000"
	var many []TLV
	for tag := range uint16(maxTLVs + 1) {
		many = append(many, TLV{0x1400 + tag, nil})
	}
	for _, c := range []struct {
		name   string
		body   []byte
		status Status // 0: accepted
	}{
		{"the longest addresses", between(deliverBody(0, 0, "x"), strings.Repeat("1", maxPeerAddress),
			strings.Repeat("2", maxPeerAddress)), 0},
		{"source_addr", between(deliverBody(0, 0, "x"), long, "INTUMWA"), StatusInvSrcAddr},
		{"destination_addr", between(deliverBody(0, 0, "x"), "25779000000", long), StatusInvDstAddr},
		{"service_type", append([]byte(long), deliverBody(0, 0, "x")...), StatusInvCmdLen},
		{"message_payload", deliverBody(0, 0, "", TLV{TagMessagePayload, bytes.Repeat([]byte("x"), maxText+1)}),
			StatusInvMsgLen},
		{"a TLV again and again", deliverBody(0, 0, "x", slicesOf(TLV{0x1400, []byte("v")}, 2*maxTLVs)...), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Reading{}.decode(cmdDeliverSM, c.body, time.Now())
			if c.status == 0 {
				if err != nil || d.broken != nil || len(d.TLVs) > 1 {
					t.Errorf("%+v, %v", d, err)
				}
				return
			}
			var bad *decodeError
			if !errors.As(err, &bad) || bad.status != c.status {
				t.Errorf("%v", err)
			}
			if err != nil && len(err.Error()) > 200 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
	for _, body := range [][]byte{
		between(deliverBody(4, 0, receiptText), long, "INTUMWA"),
		between(deliverBody(4, 0, receiptText), "25779000000", long),
		deliverBody(4, 0, receiptText, many...),
	} {
		d, err := Reading{}.decode(cmdDeliverSM, body, time.Now())
		if err != nil || d.broken == nil || d.Receipt.ID != "0123456789" || len(d.Source)+len(d.Dest) > 2*maxPeerAddress ||
			len(d.TLVs) > maxTLVs {
			t.Errorf("a receipt: %v", err)
		}
	}
}

func slicesOf(t TLV, n int) (list []TLV) {
	for range n {
		list = append(list, t)
	}
	return list
}

// TestGiveUpNeedsSignOfLife: a submit_sm is given up only after unknown_hold and a later
// sign of life from the peer, never in a session that may be dead.
func TestGiveUpNeedsSignOfLife(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprintf("deaf %v", deaf), func(t *testing.T) { givenUp(t, deaf) })
	}
}

// rule carriers 2.14: the carrier's own status refuses what there is no room for.
func TestBusyStatus(t *testing.T) {
	for set, want := range map[Status]Status{0: StatusMsgQueueFull, StatusSysErr: StatusSysErr} {
		b := &Bind{opts: Options{Busy: func() Status { return set }}}
		if got := b.busy(); got != want {
			t.Errorf("set to %s: %s, want %s", set, got, want)
		}
	}
	if got := new(Bind).busy(); got != StatusMsgQueueFull {
		t.Errorf("not set: %s", got)
	}
}

package carriersim

import (
	"bytes"
	"testing"
	"time"
)

// TestFlood: a flood comes whether it is answered or not, as long and with such
// addresses as asked for, and its answers are counted.
func TestFlood(t *testing.T) {
	c, addr := serve(t, Options{ReceiptWindow: 1, Faults: Faults{FloodPerSec: 500, FloodOctets: 40_000, FloodSource: 20_000}})
	k := bound(t, addr)
	k.mute = true
	var seqs []uint32
	for range 5 { // beside a window of one
		p := k.next()
		if p.command != 5 || len(p.body) < 60_000 || bytes.IndexByte(p.body[3:], 0) != 20_000 {
			t.Fatalf("command %#x of %d octets", p.command, len(p.body))
		}
		seqs = append(seqs, p.seq)
	}
	c.Faults(func(f *Faults) { f.FloodOctets, f.FloodSource, f.FloodReceipts = 0, 0, true })
	for n := 0; ; n++ {
		if p := k.next(); bytes.Contains(p.body, []byte("stat:DELIVRD")) {
			if len(p.body) > 300 || bytes.IndexByte(p.body[3:], 0) != 11 {
				t.Errorf("a receipt of %d octets", len(p.body))
			}
			break
		} else if n > 500 {
			t.Fatal("no receipt comes")
		}
	}
	c.Faults(func(f *Faults) { f.FloodPerSec = 0 })
	for i, seq := range seqs {
		status := uint32(0x14)
		switch i {
		case 0:
			status = 0
		case 1:
			status = 0x58
		}
		k.write(0x80000005, status, seq, []byte{0})
	}
	for end := time.Now().Add(10 * time.Second); c.Stats().FloodRefused < 4 || c.Stats().FloodTaken != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", c.Stats())
		}
	}
	if n := c.Stats().FloodThrottled; n != 1 {
		t.Errorf("%d were throttled, want 1", n)
	}
	if v := c.Violations(); len(v) > 0 {
		t.Errorf("%+v", v)
	}
}

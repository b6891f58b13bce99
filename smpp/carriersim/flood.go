package carriersim

import (
	"bytes"
	"strconv"
	"time"
)

// floodBase is the first sequence_number of what Faults.FloodPerSec sends: its
// answers are counted and otherwise of no interest.
const floodBase = 0x70000000

// mostFlood bounds the octets of a flood's texts and addresses, so that the PDU
// stays one that may be sent.
const mostFlood = 65_000

// flood sends what Faults.FloodPerSec asks for, beside every window, as far as
// the peer reads it; c.mu is held.
func (c *Carrier) flood(now int64, touched map[*session]struct{}) {
	rate := int64(c.faults.FloodPerSec)
	if rate <= 0 {
		c.floodDue = now
		return
	}
	step := max(int64(time.Second)/rate, 1)
	c.floodDue = max(c.floodDue, now-int64(100*time.Millisecond))
	n := (now - c.floodDue) / step
	c.floodDue += n * step
	for range n {
		for _, a := range c.accounts {
			for _, s := range a.receivers {
				if c.pour(s, now) {
					touched[s] = struct{}{}
				}
			}
		}
	}
}

// pour sends one delivery of a flood, unless s has too much to write.
func (c *Carrier) pour(s *session, now int64) bool {
	f := &c.faults
	digits := 11
	if f.FloodSource > 0 {
		digits = min(f.FloodSource, mostFlood)
	}
	c.lastID++
	// Another sender each time, of as many digits as are asked for.
	source := bytes.Repeat([]byte("2577"), digits/4+1)[:digits]
	if id := strconv.FormatUint(c.lastID%10_000_000, 10); digits >= 11 {
		copy(source[digits-len(id):], id)
	}
	d := delivery{srcTON: 1, srcNPI: 1, src: source, dst: []byte("FLOOD")}
	if f.FloodReceipts {
		at := c.wall(now).UTC()
		r := receipt{number: c.lastID, ids: c.opts.IDs, notice: notice{state: Delivered}, style: c.opts.Receipts, submitted: at, done: at}
		d.esmClass, d.text = 0x04, r.appendText(nil)
	}
	if n := min(f.FloodOctets, mostFlood-len(source)) - len(d.text); n > 0 {
		d.text = append(d.text, bytes.Repeat([]byte("x"), n)...)
	}
	if len(d.text) > 254 {
		d.tlvs, d.text = appendTLV(nil, tagMessagePayload, d.text), nil
	}
	pdu := appendDeliver(nil, d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || s.closing.Load() || c.mute.Load() || len(s.out) > outLimit {
		return false
	}
	putSeq(pdu, floodBase+s.floods%(0x7FFFFFFF-floodBase))
	s.floods++
	s.out = append(s.out, pdu...)
	c.stats.Flooded++
	return true
}

// floodAnswered takes the answer to a delivery of a flood; false when h is none.
func (s *session) floodAnswered(h header) bool {
	s.mu.Lock()
	ours := h.seq >= floodBase && h.seq-floodBase < s.floods
	s.mu.Unlock()
	if !ours {
		return false
	}
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.status == OK {
		c.stats.FloodTaken++
	} else {
		c.stats.FloodRefused++
	}
	return true
}

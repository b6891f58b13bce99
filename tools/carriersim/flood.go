package carriersim

import (
	"bytes"
	"strconv"
	"time"
)

// floodBase is the first sequence_number of the deliveries of Faults.FloodPerSec. Their
// responses are only counted.
const floodBase = 0x70000000

// maxFlood bounds a flood's texts and addresses in bytes, so that the PDU stays valid.
const maxFlood = 65_000

// flood sends the deliveries of Faults.FloodPerSec, ignoring the receipt window, as
// long as the peer reads them; the caller holds c.mu.
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
				if c.sendFlood(s, now) {
					touched[s] = struct{}{}
				}
			}
		}
	}
}

// sendFlood sends one delivery of a flood, unless s has too much queued.
func (c *Carrier) sendFlood(s *session, now int64) bool {
	f := &c.faults
	digits := 11
	if f.FloodSource > 0 {
		digits = min(f.FloodSource, maxFlood)
	}
	c.lastID++
	// A new sender each time, with FloodSource digits.
	source := bytes.Repeat([]byte("2577"), digits/4+1)[:digits]
	if id := strconv.FormatUint(c.lastID%10_000_000, 10); digits >= 11 {
		copy(source[digits-len(id):], id)
	}
	d := delivery{srcTON: 1, srcNPI: 1, src: source, dst: []byte("FLOOD")}
	if f.FloodReceipts {
		at := c.wall(now).UTC()
		r := receipt{number: c.lastID, ids: c.opts.IDs, notice: notice{state: Delivered}, style: c.opts.Receipts,
			submitted: at, done: at}
		d.esmClass, d.text = 0x04, r.appendText(nil)
	}
	if n := min(f.FloodOctets, maxFlood-len(source)) - len(d.text); n > 0 {
		d.text = append(d.text, bytes.Repeat([]byte("x"), n)...)
	}
	if len(d.text) > 254 {
		d.tlvs, d.text = appendTLV(nil, tagMessagePayload, d.text), nil
	}
	pdu := appendDeliver(nil, d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || s.closing.Load() || c.halfOpen.Load() || len(s.out) > outLimit {
		return false
	}
	putSeq(pdu, floodBase+s.floods%(0x7FFFFFFF-floodBase))
	s.floods++
	s.out = append(s.out, pdu...)
	c.stats.Flooded++
	return true
}

// floodAnswered counts the response to a flood's delivery; false when h is not one.
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
	switch h.status {
	case OK:
		c.stats.FloodTaken++
	case Throttled:
		c.stats.FloodThrottled++
		c.stats.FloodRefused++
	default:
		c.stats.FloodRefused++
	}
	return true
}

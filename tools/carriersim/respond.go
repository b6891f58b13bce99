package carriersim

import (
	"encoding/binary"
	"slices"
	"time"
)

// respond sends the response of a verdict, at once or later, and returns the time at
// which it is sent.
func (s *session) respond(h header, v verdict, id []byte, now int64) (due int64) {
	c, f := s.c, &s.c.faults
	delay := c.opts.RespDelay + f.RespDelay
	if f.RespJitter > 0 {
		delay += time.Duration(c.random.Int64N(int64(f.RespJitter)))
	}
	switch v.answer {
	case answerNone, answerNoneCarried:
		if len(s.open) < 1<<16 {
			s.open[h.seq] = struct{}{}
		}
		c.runAfter(s, v.after)
		return now + int64(delay)
	case answerDrop, answerLost:
		s.dropInstead()
		return now
	case answerLate:
		delay += c.opts.LateResponse
	case answerSwapped:
		delay += 100 * time.Millisecond
	}
	if v.accepted && (v.script.receiptFirst || f.ReceiptFirst) {
		delay += c.opts.ReceiptLead
	}
	pdu := s.scratch[:0]
	if f.StrangeCommand {
		pdu = appendHeader(pdu, 0x0000BEEF, OK, 0x7FFF0000)
		finish(pdu, 0)
	}
	if v.answer == answerWrongSequence || f.WrongSequence {
		pdu = appendResponse(pdu, header{seq: h.seq ^ 0x40000000}, verdict{}, []byte("0"), 0)
	}
	congestion := max(f.Congestion, v.script.congestion)
	start := len(pdu)
	pdu = appendResponse(pdu, h, v, id, congestion)
	if v.answer == answerTwice || f.RespTwice {
		pdu = append(pdu, pdu[start:]...)
	}
	s.scratch = pdu
	if v.answer == answerHalf {
		s.send(pdu[:start+(len(pdu)-start)/2])
		s.dropInstead()
		return now
	}
	if delay <= 0 {
		s.send(pdu)
		c.runAfter(s, v.after)
		return now
	}
	e := &event{session: s, answers: h.seq, then: v.after, due: now + int64(delay), pdu: slices.Clone(pdu)}
	s.open[h.seq] = struct{}{}
	c.queue.push(e)
	s.pushed = true
	return e.due
}

func appendResponse(dst []byte, h header, v verdict, id []byte, congestion uint8) []byte {
	start := len(dst)
	if v.answer == answerNack {
		return finish(appendHeader(dst, cmdGenericNack, v.status, h.seq), start)
	}
	dst = appendHeader(dst, cmdSubmitSM|cmdResponse, v.status, h.seq)
	if v.answer != answerBodyless {
		dst = append(append(dst, id...), 0)
	}
	if congestion > 0 {
		dst = appendTLV(dst, tagCongestionState, []byte{congestion})
	}
	return finish(dst, start)
}

// dropInstead closes the connection instead of responding; the caller holds c.mu.
func (s *session) dropInstead() {
	if s.c.faults.ResetOnDrop {
		s.drop(true)
		return
	}
	s.finishSoon()
}

// runAfter runs the action after a response; the caller holds c.mu.
func (c *Carrier) runAfter(s *session, then after) {
	switch then {
	case afterUnbind:
		c.unbind(s)
	case afterGarbage:
		s.send([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
	case afterLie:
		length := c.faults.LieLength
		if length == 0 {
			length = 0xFFFFFFFF
		}
		pdu := appendHeader(nil, cmdSubmitSM|cmdResponse, OK, 1)
		binary.BigEndian.PutUint32(pdu, length)
		s.send(pdu)
	}
	if then != afterNothing {
		s.flush()
	}
}

// queueNotices queues the deliveries about an accepted message. answered is the time of
// its response: a receipt comes later unless its fate puts it first.
func (c *Carrier) queueNotices(s *session, m *submit, v verdict, now, answered int64) {
	f := &c.faults
	wanted := m.registered & 0x03
	if c.opts.NoReceipts || f.NoReceipts || wanted == 0 {
		return
	}
	base := answered
	if v.script.receiptFirst || f.ReceiptFirst {
		base = now
	}
	base += int64(c.opts.ReceiptDelay)
	notices := v.script.notices
	if notices == nil {
		notices = delivered
	}
	r := &c.receipt
	for i := range notices {
		n := &notices[i]
		if n.kind == noticeReceipt && (wanted == 2 && n.state == Delivered || f.ReceiptLoss > 0 &&
			c.random.Float64() < f.ReceiptLoss) {
			continue
		}
		due := base + int64(i)*int64(c.opts.ReceiptGap)
		if n.late {
			due += int64(c.opts.LateReceipt)
		}
		r.notice, r.style = *n, c.opts.Receipts
		if n.style != nil {
			r.style = *n.style
		}
		r.style = f.odd(r.style)
		r.number, r.ids = v.number, c.idFormat(v.script)
		if n.foreign {
			c.lastID++
			r.number = c.lastID
		}
		r.srcTON, r.srcNPI, r.src = m.srcTON, m.srcNPI, m.src
		r.dstTON, r.dstNPI, r.dst = m.dstTON, m.dstNPI, m.dst
		r.reference, r.echo = m.reference, m.hasReference && (n.echo || c.opts.EchoReference) && !n.foreign
		r.submitted, r.done = c.wall(now).UTC(), c.wall(due).UTC()
		r.text, r.coding = m.text, m.coding
		for range max(n.copies, f.ReceiptCopies, 1) {
			c.queueReceipt(s.systemID, r, due)
		}
	}
	s.pushed = true
}

package carriersim

import (
	"hash/maphash"
	"time"
)

var hashSeed = maphash.MakeSeed()

// verdict is the decision on one submit_sm.
type verdict struct {
	status   Status
	accepted bool
	answer   answer
	after    after
	script   *script
	number   uint64 // of an accepted message
}

// submit decides on one submit_sm, responds to it and queues its deliveries.
func (s *session) submit(h header, body []byte) {
	c, m := s.c, &s.msg
	now := c.clock()
	decodeSubmit(body, m, c.opts.Alphabet, c.wall(now))
	var sum uint64
	if m.complete {
		sum = fingerprint(m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.submits++
	c.stats.Submits++
	c.rate.add(now)
	if s.mode != 0 {
		u := c.usageOf(s.systemID)
		u.submits++
		u.second.add(now)
	}
	s.checkHeader(h)
	for _, b := range m.breaches {
		c.violate(s, h, b.status, b.text)
	}
	v := s.judge(h, m, sum, now)
	var id []byte
	var buffer [65]byte
	if v.accepted {
		c.lastID++
		v.number = c.lastID
		c.stats.Accepted++
		c.accepted.add(now)
		if !v.script.emptyID && !c.faults.EmptyIDs {
			id = c.idFormat(v.script).append(buffer[:0], v.number, false)
		}
	} else if v.status != OK {
		c.stats.Refused[v.status]++
	}
	answered := v.answer != answerNone && v.answer != answerNoneCarried && v.answer != answerDrop &&
		v.answer != answerHalf && v.answer != answerLost
	if !answered {
		c.stats.Silent++
	}
	if c.log.add(now, s, h.seq, v, id, answered, body, sum) {
		c.stats.Duplicates++
	}
	due := s.respond(h, v, id, now)
	if v.accepted {
		c.queueNotices(s, m, v, now, due)
	}
}

// fingerprint is equal for submits that a handset shows alike.
func fingerprint(m *submit) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	_, _ = h.Write(m.src)
	_ = h.WriteByte(0)
	_, _ = h.Write(m.dst)
	_ = h.WriteByte(m.esmClass)
	_ = h.WriteByte(m.coding)
	_, _ = h.Write(m.shortMessage)
	_, _ = h.Write(m.payload)
	if m.concat.By == "sar" {
		_, _ = h.Write([]byte{byte(m.concat.Ref >> 8), byte(m.concat.Ref), m.concat.Seq})
	}
	return h.Sum64()
}

func (c *Carrier) idFormat(sc *script) IDFormat {
	if sc.ids != IDDecimal {
		return sc.ids
	}
	return c.opts.IDs
}

// judge decides by, in this order: the session's state, the protocol, the faults, the
// carrier's limits, the recipient's fate.
func (s *session) judge(h header, m *submit, sum uint64, now int64) verdict {
	c, f := s.c, &s.c.faults
	v := verdict{script: defaultScript}
	switch {
	case s.unbindUntil != 0: // sent before our unbind arrived
		v.status = InvalidBindStatus
		return v
	case s.mode == 0 || s.mode == cmdBindReceiver:
		c.violate(s, h, InvalidBindStatus, "on a session that is not bound to send")
		v.status = InvalidBindStatus
		return v
	case m.refusal() != OK && (!c.opts.Lenient || !m.complete):
		v.status = m.refusal()
		return v
	case f.DropAfter > 0 && s.submits >= f.DropAfter:
		v.answer = answerDrop
		return v
	case f.HalfPDUAfter > 0 && s.submits >= f.HalfPDUAfter:
		v.answer = answerHalf
		return v
	case f.GarbageAfter > 0 && s.submits == f.GarbageAfter:
		v.answer, v.after = answerNone, afterGarbage
		return v
	case f.LieAfter > 0 && s.submits == f.LieAfter:
		v.answer, v.after = answerNone, afterLie
		return v
	case f.SubmitStatus != OK && (f.SubmitSender == "" || f.SubmitSender == string(m.src)):
		v.status = f.SubmitStatus
		return v
	case f.refuses(m) != OK:
		v.status = f.refuses(m)
		return v
	case f.NackEvery > 0 && s.submits%f.NackEvery == 0:
		v.status, v.answer = InvalidCommand, answerNack
		return v
	case f.RefuseRatio > 0 && c.random.Float64() < f.RefuseRatio:
		if v.status = f.RefuseStatus; v.status == OK {
			v.status = Throttled
		}
		return v
	}
	if _, again := s.open[h.seq]; again {
		c.violate(s, h, InvalidCommandLen, "sequence_number is still unanswered")
	}
	switch {
	case c.opts.Window > 0 && len(s.open) >= c.opts.Window:
		c.violate(s, h, Throttled, "above the window")
		v.status = Throttled
		return v
	case c.accepted.full(now):
		v.status = Throttled
		return v
	case c.pending >= c.opts.MaxPending:
		v.status = QueueFull
		return v
	}
	c.playFate(&v, m, sum)
	if v.accepted && f.SubmitSilent {
		v.answer = answerNoneCarried
	}
	if f.UnbindAfter > 0 && s.submits == f.UnbindAfter {
		v.after = afterUnbind
	}
	return v
}

// playFate applies the script of the recipient's last digits.
func (c *Carrier) playFate(v *verdict, m *submit, sum uint64) {
	v.accepted = true
	if c.opts.NoFates {
		return
	}
	sc := scriptOf(m.dst)
	v.script = sc
	seq := max(m.concat.Seq, 1)
	if sc.segment != 0 && seq != sc.segment {
		v.script = defaultScript
		if sc.silentRest {
			v.script = &silentSegment
		}
		return
	}
	if sc.times > 0 {
		if len(c.tries) > 100_000 {
			clear(c.tries)
		}
		if c.tries[sum] >= sc.times {
			delete(c.tries, sum)
			return
		}
		c.tries[sum]++
	}
	v.answer, v.after = sc.answer, sc.after
	switch {
	case sc.refuse != OK:
		v.status, v.accepted = sc.refuse, false
	case sc.answer == answerNone, sc.answer == answerDrop, sc.answer == answerHalf:
		v.accepted = false
	case sc.answer == answerNack:
		v.status, v.accepted = InvalidCommand, false
	}
}

// silentSegment is accepted without a receipt.
var silentSegment = script{notices: []notice{}}

// acceptMeter keeps the times of the last accepted submits, as many as are allowed in
// one second, so that no second has more.
type acceptMeter struct {
	times []int64
	next  int
}

// full reports whether the limit is reached now.
func (m *acceptMeter) full(now int64) bool {
	return len(m.times) > 0 && m.times[m.next] != 0 && now-m.times[m.next] < int64(time.Second)
}

func (m *acceptMeter) add(now int64) {
	if len(m.times) > 0 {
		m.times[m.next] = now
		m.next = (m.next + 1) % len(m.times)
	}
}

// rateMeter measures the highest number in one second, in steps of 100 ms.
type rateMeter struct {
	tenths [10]int
	at     int64 // the current tenth of a second
	sum    int
	peak   int
}

func (m *rateMeter) add(now int64) {
	tenth := now / int64(100*time.Millisecond)
	for ; m.at < tenth && m.sum > 0; m.at++ {
		slot := &m.tenths[(m.at+1)%10]
		m.sum -= *slot
		*slot = 0
	}
	m.at = tenth
	m.tenths[tenth%10]++
	m.sum++
	m.peak = max(m.peak, m.sum)
}

package carriersim

import (
	"encoding/binary"
)

// logEntry is a stored submit_sm: its body as received, in a buffer that is reused when
// the ring wraps around.
type logEntry struct {
	at       int64
	session  int
	systemID string
	seq      uint32
	status   Status
	answered bool
	accepted bool
	fate     *script
	id       string
	sum      uint64
	body     []byte
}

// submitLog is a ring of the last submits, and the messages assembled from them.
type submitLog struct {
	limit   int
	entries []logEntry
	count   int // added so far; entry n is entries[n%limit]
	known   map[uint64]uint32
	asm     assembly
}

func (l *submitLog) init(limit int) {
	*l = submitLog{limit: limit, known: map[uint64]uint32{}}
	l.asm.init(limit)
}

// add stores a submit and reports whether it is an accepted duplicate of one in the log.
func (l *submitLog) add(now int64, s *session, seq uint32, v verdict, id []byte, answered bool, body []byte,
	sum uint64) (duplicate bool) {
	var e *logEntry
	if len(l.entries) < l.limit {
		l.entries = append(l.entries, logEntry{})
		e = &l.entries[len(l.entries)-1]
	} else {
		e = &l.entries[l.count%l.limit]
		if e.accepted {
			if l.known[e.sum]--; l.known[e.sum] == 0 {
				delete(l.known, e.sum)
			}
		}
	}
	buffer := append(e.body[:0], body...)
	*e = logEntry{now, s.number, s.systemID, seq, v.status, answered, v.accepted, v.script, string(id), sum, buffer}
	l.count++
	if v.accepted {
		duplicate = l.known[sum] > 0
		l.known[sum]++
	}
	return duplicate
}

// oldest returns the number of the first entry in the ring.
func (l *submitLog) oldest() int { return max(0, l.count-l.limit) }

// Submits returns the submit_sm in the log, accepted or not, in order of arrival.
func (c *Carrier) Submits() []Submit {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Submit, 0, len(c.log.entries))
	for i := c.log.oldest(); i < c.log.count; i++ {
		list = append(list, c.decodeEntry(&c.log.entries[i%c.log.limit]))
	}
	return list
}

// decodeEntry decodes an entry for callers of the package.
func (c *Carrier) decodeEntry(e *logEntry) Submit {
	body := append([]byte(nil), e.body...)
	var m submit
	decodeSubmit(body, &m, c.opts.Alphabet, c.wall(e.at))
	s := Submit{
		At: c.wall(e.at), Session: e.session, SystemID: e.systemID, Sequence: e.seq, Status: e.status,
		Answered: e.answered, Accepted: e.accepted, ID: e.id, Fate: e.fate.Name, Body: body,
	}
	if !m.complete {
		return s
	}
	s.ServiceType, s.Schedule, s.Validity = string(m.service), string(m.schedule), string(m.validity)
	s.Source = Address{m.srcTON, m.srcNPI, string(m.src)}
	s.Destination = Address{m.dstTON, m.dstNPI, string(m.dst)}
	s.ESMClass, s.ProtocolID, s.Priority = m.esmClass, m.protocol, m.priority
	s.RegisteredDelivery, s.ReplaceIfPresent = m.registered, m.replace
	s.DataCoding, s.DefaultMessageID, s.ShortMessage = m.coding, m.defaultMessage, m.shortMessage
	s.Text, _ = decodeText(m.text, m.coding, c.opts.Alphabet)
	if m.concat.Total > 0 {
		concat := m.concat
		s.Concat = &concat
	}
	for rest := m.tlvs; len(rest) >= 4; {
		n := 4 + int(binary.BigEndian.Uint16(rest[2:]))
		if n > len(rest) {
			break
		}
		s.TLVs = append(s.TLVs, TLV{Tag: binary.BigEndian.Uint16(rest), Value: rest[4:n:n]})
		rest = rest[n:]
	}
	return s
}

// Messages returns the messages as handsets show them, assembled from the accepted
// submits of the log. Each call decodes only the submits since the previous one.
func (c *Carrier) Messages() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.messages()
}

func (c *Carrier) messages() []Message {
	c.catchUp()
	return c.log.asm.list(0)
}

// lastMessages returns the last n messages.
func (c *Carrier) lastMessages(n int) []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catchUp()
	return c.log.asm.list(max(0, len(c.log.asm.messages)-n))
}

// catchUp assembles the submits since the last call; the caller holds c.mu.
func (c *Carrier) catchUp() {
	for i := max(c.log.asm.next, c.log.oldest()); i < c.log.count; i++ {
		c.assemble(&c.log.entries[i%c.log.limit])
	}
	c.log.asm.next = c.log.count
}

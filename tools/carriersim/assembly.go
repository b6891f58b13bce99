package carriersim

import "time"

// assembly joins segments like a handset.
type assembly struct {
	limit    int
	next     int // the next log entry to process
	base     int // the number of messages[0]
	complete int // complete messages so far
	messages []Message
	segments [][][]byte // of incomplete messages, by segment
	open     map[assemblyKey]int
}

type assemblyKey struct {
	source, destination string
	ref                 uint16
	total               uint8
}

func (a *assembly) init(limit int) {
	*a = assembly{limit: limit, open: map[assemblyKey]int{}}
}

// list copies the messages from the i-th on.
func (a *assembly) list(i int) []Message {
	list := append([]Message(nil), a.messages[i:]...)
	for i := range list {
		list[i].IDs = append([]string(nil), list[i].IDs...)
	}
	return list
}

// assemble adds a submit; the caller holds c.mu.
func (c *Carrier) assemble(e *logEntry) {
	if !e.accepted {
		return
	}
	a := &c.log.asm
	m := &submit{}
	decodeSubmit(e.body, m, c.opts.Alphabet, c.wall(e.at))
	if !m.complete {
		return
	}
	total, seq := max(m.concat.Total, 1), max(m.concat.Seq, 1)
	key := assemblyKey{string(m.src), string(m.dst), m.concat.Ref, total}
	at, there := a.open[key]
	there = there && at >= a.base && total > 1
	if there {
		segments := a.segments[at-a.base]
		if have := segments[seq-1]; have != nil && string(have) == string(m.text) {
			a.messages[at-a.base].Duplicates++
			return
		} else if have != nil {
			there = false // the reference was reused
		}
	}
	if !there {
		if len(a.messages) >= a.limit+a.limit/4 {
			drop := len(a.messages) - a.limit
			a.messages = append(a.messages[:0], a.messages[drop:]...)
			a.segments = append(a.segments[:0], a.segments[drop:]...)
			a.base += drop
			for k, n := range a.open {
				if n < a.base {
					delete(a.open, k)
				}
			}
		}
		at = a.base + len(a.messages)
		a.messages = append(a.messages, Message{
			Source: key.source, Destination: key.destination, Segments: int(total), Reference: key.ref,
			InOrder: true, IDs: make([]string, total), Fate: scriptOf(m.dst).Name, First: c.wall(e.at),
		})
		a.segments = append(a.segments, make([][]byte, total))
		if total > 1 {
			a.open[key] = at
		}
	}
	message, segments := &a.messages[at-a.base], a.segments[at-a.base]
	if message.add(segments, int(seq), m.text, e, c.wall(e.at)); message.Complete {
		a.complete++
	}
	var text []byte
	for _, segment := range segments {
		text = append(text, segment...)
	}
	message.Text, message.Encoding = decodeText(text, m.coding, c.opts.Alphabet)
}

func (m *Message) add(segments [][]byte, seq int, text []byte, e *logEntry, at time.Time) {
	if m.Received != seq-1 || m.Received > 0 && m.session != e.session {
		m.InOrder = false
	}
	m.session = e.session
	segments[seq-1] = append([]byte{}, text...)
	m.IDs[seq-1] = e.id
	m.Received++
	m.Complete = m.Received == m.Segments
	m.Last = at
}

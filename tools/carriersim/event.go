package carriersim

import "encoding/binary"

// event is a delayed response to one session, or a delivery (receipt, or text of a
// handset) to any session of one system_id.
type event struct {
	due   int64  // Carrier.clock
	order uint64 // of equal times: in order of creation

	session  *session // of a response; nil = a delivery
	answers  uint32   // the sequence_number of a response
	then     after    // the action after a response
	systemID string   // of a delivery
	command  uint32   // of a delivery: deliver_sm, data_sm or alert_notification
	mo       bool
	born     int64
	sentAt   int64
	seq      uint32
	tries    int
	pdu      []byte
}

func putSeq(pdu []byte, seq uint32) { binary.BigEndian.PutUint32(pdu[12:], seq) }

// eventQueue is a heap by due time, then by order of creation, with a free list of
// events.
type eventQueue struct {
	heap  []*event
	stock []*event
	order uint64
}

// fresh returns an empty event, from the free list if possible.
func (q *eventQueue) fresh() *event {
	if n := len(q.stock); n > 0 {
		e := q.stock[n-1]
		q.stock = q.stock[:n-1]
		return e
	}
	return &event{}
}

// recycle puts an event that is not used any more into the free list.
func (q *eventQueue) recycle(e *event) {
	if len(q.stock) < 4096 && cap(e.pdu) <= 1024 {
		*e = event{pdu: e.pdu[:0]}
		q.stock = append(q.stock, e)
	}
}

func (q *eventQueue) before(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	return a.due < b.due || a.due == b.due && a.order < b.order
}

func (q *eventQueue) push(e *event) {
	q.order++
	e.order = q.order
	q.heap = append(q.heap, e)
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

// pop removes and returns the first event if it is due, else returns nil.
func (q *eventQueue) pop(now int64) *event {
	if len(q.heap) == 0 || q.heap[0].due > now {
		return nil
	}
	first, last := q.heap[0], len(q.heap)-1
	q.heap[0], q.heap[last] = q.heap[last], nil
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.before(child, least) {
				least = child
			}
		}
		if least == i {
			return first
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

// fifo is a first-in, first-out queue of deliveries.
type fifo struct {
	items []*event
	head  int
}

func (l *fifo) len() int { return len(l.items) - l.head }

func (l *fifo) push(e *event) {
	if l.head > 1024 && l.head > len(l.items)/2 {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	l.items = append(l.items, e)
}

func (l *fifo) first() *event { return l.items[l.head] }

func (l *fifo) shift() {
	l.items[l.head] = nil
	l.head++
	if l.head == len(l.items) {
		l.items, l.head = l.items[:0], 0
	}
}

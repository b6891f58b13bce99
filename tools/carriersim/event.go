package carriersim

import (
	"container/heap"
	"encoding/binary"
)

// event is a delayed response to one session, or a delivery (receipt or MO) to any
// session of one system_id.
type event struct {
	due   int64  // Carrier.clock
	order uint64 // creation order, for equal times

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

// eventQueue is a heap by due time, then by order of creation.
type eventQueue struct {
	heap  eventHeap
	order uint64
}

func (q *eventQueue) push(e *event) {
	q.order++
	e.order = q.order
	heap.Push(&q.heap, e)
}

// pop removes and returns the first event if it is due, otherwise nil.
func (q *eventQueue) pop(now int64) *event {
	if len(q.heap) == 0 || q.heap[0].due > now {
		return nil
	}
	return heap.Pop(&q.heap).(*event) //nolint:forcetypeassert // the only type in it
}

// eventHeap implements heap.Interface.
type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is called by heap.Push.
func (h *eventHeap) Push(e any) { *h = append(*h, e.(*event)) } //nolint:forcetypeassert // the only type in it

// Pop is called by heap.Pop.
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

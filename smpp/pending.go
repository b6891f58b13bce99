package smpp

import (
	"sync"
	"time"
)

// pending is one submit_sm from Submit to its Result. It is guarded by its
// session's mutex from admission until it is taken out of the table.
type pending struct {
	frame    frame // the whole PDU
	done     func(Result)
	key      uint64 // Submit.Key
	sequence uint32
	order    uint64    // place in the session's order of writing, from 1
	written  time.Time // zero until it is handed to the connection
	overdue  bool
}

var pendings = sync.Pool{New: func() any { return &pending{frame: make(frame, 0, 512)} }}

func newPending(key uint64, done func(Result)) *pending {
	p := pendings.Get().(*pending)
	p.key, p.done = key, done
	return p
}

// recycle returns p to the pool. No reference to p may be left.
func (p *pending) recycle() {
	if cap(p.frame) > 4096 {
		return // a rare big payload is not worth keeping
	}
	*p = pending{frame: p.frame[:0]}
	pendings.Put(p)
}

// finish reports the result and recycles p.
func (p *pending) finish(r Result) {
	done := p.done
	p.recycle()
	done(r)
}

// waiter is a Submit call that waits for admission. Waiters are admitted in the order
// of their calls, by the goroutine that frees a slot.
type waiter struct {
	p        *pending
	admitted chan error // capacity 1
}

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }

func (q *fifo[T]) push(v T) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

func (q *fifo[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}

// removeFunc takes out the first item that matches and reports whether there was one.
func (q *fifo[T]) removeFunc(match func(T) bool) bool {
	for i := q.head; i < len(q.items); i++ {
		if match(q.items[i]) {
			copy(q.items[i:], q.items[i+1:])
			var zero T
			q.items[len(q.items)-1] = zero
			q.items = q.items[:len(q.items)-1]
			return true
		}
	}
	return false
}

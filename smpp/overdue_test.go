package smpp

import "testing"

// The record of unanswered submits is bounded; the oldest go first.
func TestAbandonedIsBounded(t *testing.T) {
	var a abandoned
	a.put(1, &pending{}) // without an owner
	for n := range uint32(2 * maxAbandoned) {
		a.put(n+2, &pending{key: uint64(n + 1)})
		if n%3 == 0 { // answered meanwhile
			if _, known := a.take(n + 2); !known {
				t.Fatalf("%d is forgotten at once", n+2)
			}
		}
	}
	if n := len(a.bySequence); n > maxAbandoned || a.order.len() > maxAbandoned {
		t.Errorf("%d remembered, %d in order", n, a.order.len())
	}
	if a.has(1) || a.has(3) || !a.has(2*maxAbandoned+1) {
		t.Error("the wrong ones are remembered")
	}
	if g, known := a.take(2*maxAbandoned + 1); !known || g.key != 2*maxAbandoned {
		t.Errorf("%+v", g)
	}
}

package dispatcher

import (
	"testing"
	"time"
)

// TestYield: a bind is down while its process may be taken for dead, and comes up when the
// process has been heard for a while.
func TestYield(t *testing.T) {
	b := newBench(t)
	w := b.worker
	may := func() bool {
		w.bind.mu.Lock()
		defer w.bind.mu.Unlock()
		return w.bind.may
	}
	beat, now := w.d.member.beat.Load(), time.Now()
	for _, step := range []struct {
		heard bool
		after time.Duration
		up    bool
	}{{true, 0, true}, {false, 0, false}, {true, yieldRest / 2, false}, {false, yieldRest, false}, {true, yieldRest, true}} {
		w.d.member.beat.Store(beat)
		if !step.heard {
			w.d.member.beat.Store(-int64(time.Hour))
		}
		now = now.Add(step.after)
		if w.yield(now); may() != step.up {
			t.Errorf("%+v: may be up: %t", step, may())
		}
	}
	w.leave()
	if w.yield(now); may() {
		t.Error("it binds again, and another has the link")
	}
}

package smpp

import (
	"testing"
	"time"
)

func TestSeldom(t *testing.T) {
	var s Seldom
	at := time.Now()
	for i, step := range []struct {
		after time.Duration
		count int
		due   bool
	}{{0, 1, true}, {0, 1, false}, {30 * time.Second, 2, false}, {30 * time.Second, 3, true}, {time.Second, 1, false},
		{time.Hour, 2, true}} {
		at = at.Add(step.after)
		if count, due := s.Due(at); count != step.count || due != step.due {
			t.Errorf("step %d: %d, %v; want %d, %v", i, count, due, step.count, step.due)
		}
	}
}

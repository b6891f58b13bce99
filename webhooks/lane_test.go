package webhooks

import (
	"slices"
	"testing"
	"time"
)

func TestScheduleIsTheContracts(t *testing.T) {
	s := schedule(Options{}.withDefaults().RetryDelays)
	var delays []time.Duration
	for try := 1; ; try++ {
		state, delay := s.after(try, false)
		if state == exhausted {
			if try != 6 {
				t.Errorf("given up after attempt %d, not 6", try)
			}
			break
		}
		delays = append(delays, delay)
		if state, _ := s.after(try, true); state != delivered {
			t.Errorf("a success at attempt %d leaves it %s", try, state)
		}
	}
	want := []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}
	if !slices.Equal(delays, want) {
		t.Errorf("delays %v, want %v", delays, want)
	}
	if state, _ := (schedule{}).after(1, false); state != exhausted {
		t.Error("without retries a failure is not final")
	}
}

func TestLaneGrowsWithQuickSuccess(t *testing.T) {
	l := newLane(1)
	if got := l.room(); got != 1 {
		t.Errorf("an unknown endpoint has room for %d", got)
	}
	l.observe(true, 50*time.Millisecond, 4, 32)
	if l.class != quick || l.limit != 4 {
		t.Errorf("answered once: class %d, limit %d", l.class, l.limit)
	}
	for range 100 {
		l.observe(true, 50*time.Millisecond, 4, 32)
	}
	if l.class != quick || l.limit != 32 || l.room() != 32*(1+2) {
		t.Errorf("quick: class %d, limit %d, room %d", l.class, l.limit, l.room())
	}
	for range 100 {
		l.observe(true, 200*time.Microsecond, 4, 32)
	}
	if l.room() != 32*(1+prefetchMax) {
		t.Errorf("very quick: room %d", l.room())
	}
	l.calls, l.waiting = 32, make([]claimed, 32*prefetchMax/2+1)
	if l.room() != 0 {
		t.Errorf("hardly empty, yet room for %d", l.room())
	}
	l.observe(false, time.Millisecond, 4, 32)
	if l.limit != 4 || l.class != quick {
		t.Errorf("after a quick failure: class %d, limit %d", l.class, l.limit)
	}
	l.calls, l.waiting = 0, nil
	l.observe(false, 10*time.Second, 4, 32)
	if l.limit != 4 || l.class != slow || l.room() != 4 {
		t.Errorf("after a timeout: class %d, limit %d, room %d", l.class, l.limit, l.room())
	}
	l.observe(true, 2*time.Second, 4, 32)
	if l.limit != 4 || l.class != slow {
		t.Errorf("after a slow success: class %d, limit %d", l.class, l.limit)
	}
	l.observe(true, time.Millisecond, 4, 32)
	if l.limit != 5 || l.class != quick {
		t.Errorf("recovered: class %d, limit %d", l.class, l.limit)
	}
}

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

func TestEndpointWorkerGrowsWithQuickSuccess(t *testing.T) {
	e := newEndpointWorker(1)
	if got := e.fetchLimit(); got != 1 {
		t.Errorf("an unknown endpoint has room for %d", got)
	}
	e.learn(true, 50*time.Millisecond, 4, 32)
	if e.class != quick || e.limit != 4 {
		t.Errorf("answered once: class %d, limit %d", e.class, e.limit)
	}
	for range 100 {
		e.learn(true, 50*time.Millisecond, 4, 32)
	}
	if e.class != quick || e.limit != 32 || e.fetchLimit() != 32*(1+2) {
		t.Errorf("quick: class %d, limit %d, room %d", e.class, e.limit, e.fetchLimit())
	}
	for range 100 {
		e.learn(true, 200*time.Microsecond, 4, 32)
	}
	if e.fetchLimit() != 32*(1+prefetchMax) {
		t.Errorf("very quick: room %d", e.fetchLimit())
	}
	e.calls, e.waiting = 32, make([]job, 32*prefetchMax/2+1)
	if e.fetchLimit() != 0 {
		t.Errorf("hardly empty, yet room for %d", e.fetchLimit())
	}
	e.learn(false, time.Millisecond, 4, 32)
	if e.limit != 4 || e.class != quick {
		t.Errorf("after a quick failure: class %d, limit %d", e.class, e.limit)
	}
	e.calls, e.waiting = 0, nil
	e.learn(false, 10*time.Second, 4, 32)
	if e.limit != 4 || e.class != slow || e.fetchLimit() != 4 {
		t.Errorf("after a timeout: class %d, limit %d, room %d", e.class, e.limit, e.fetchLimit())
	}
	e.learn(true, 2*time.Second, 4, 32)
	if e.limit != 4 || e.class != slow {
		t.Errorf("after a slow success: class %d, limit %d", e.class, e.limit)
	}
	e.learn(true, time.Millisecond, 4, 32)
	if e.limit != 5 || e.class != quick {
		t.Errorf("recovered: class %d, limit %d", e.class, e.limit)
	}
}

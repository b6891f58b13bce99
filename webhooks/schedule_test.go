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

func TestWorkerGrowsWithQuickSuccess(t *testing.T) {
	e := newWorker(1)
	check := func(what string, class class, limit, ahead int) {
		t.Helper()
		if e.class != class || e.limit != limit || e.room() != limit || e.ahead() != ahead {
			t.Errorf("%s: class %d, limit %d, room %d, %d ahead", what, e.class, e.limit, e.room(), e.ahead())
		}
	}
	check("unknown", untried, 1, 1)
	e.learn(true, 50*time.Millisecond, 4, 32)
	check("answered once", quick, 4, 2)
	for range 100 {
		e.learn(true, 50*time.Millisecond, 4, 32)
	}
	check("quick", quick, 32, 2)
	for range 100 {
		e.learn(true, 200*time.Microsecond, 4, 32)
	}
	check("very quick", quick, 32, aheadMost)
	if e.runs = 17; e.room() != 0 {
		t.Errorf("hardly half free, yet room for %d", e.room())
	}
	e.runs = 0
	e.learn(false, time.Millisecond, 4, 32)
	check("after a quick failure", quick, 4, aheadMost)
	e.learn(false, 10*time.Second, 4, 32)
	check("after a timeout", slow, 4, 1)
	e.learn(true, 2*time.Second, 4, 32)
	check("after a slow success", slow, 4, 1)
	e.learn(true, time.Millisecond, 4, 32)
	check("recovered", quick, 5, 1)
}

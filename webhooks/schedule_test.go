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
		state, delay := s.after(try, false, 0)
		if state == exhausted {
			if try != 6 {
				t.Errorf("given up after attempt %d, not 6", try)
			}
			break
		}
		delays = append(delays, delay)
		if state, _ := s.after(try, true, time.Hour); state != delivered {
			t.Errorf("a success at attempt %d leaves it %d", try, state)
		}
	}
	want := []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}
	if !slices.Equal(delays, want) {
		t.Errorf("delays %v, want %v", delays, want)
	}
	if state, _ := (schedule{}).after(1, false, time.Hour); state != exhausted {
		t.Error("without retries a failure is not final")
	}
}

// TestRetryAfter: a receiver's Retry-After lengthens the delay, at most to the delay of the slot after it.
func TestRetryAfter(t *testing.T) {
	given := schedule(Options{}.withDefaults().RetryDelays)
	for _, test := range []struct {
		schedule schedule
		tries    int
		wait     time.Duration
		want     time.Duration
	}{
		{given, 1, 0, 10 * time.Second},
		{given, 1, 5 * time.Second, 10 * time.Second},
		{given, 1, 20 * time.Second, 20 * time.Second},
		{given, 1, time.Hour, 30 * time.Second},
		{given, 3, 2 * time.Minute, 2 * time.Minute},
		{given, 4, 24 * time.Hour, 15 * time.Minute},
		{given, 5, time.Hour, 15 * time.Minute},
		{schedule{time.Minute, time.Second}, 1, 30 * time.Second, time.Minute},
		{schedule{time.Second}, 1, time.Minute, time.Second},
	} {
		if state, got := test.schedule.after(test.tries, false, test.wait); state != pending || got != test.want {
			t.Errorf("attempt %d, Retry-After %s: %s, want %s", test.tries, test.wait, got, test.want)
		}
	}
}

func TestWorkerGrowsWithQuickSuccess(t *testing.T) {
	e := newWorker(1)
	check := func(what string, slow bool, limit, room int) {
		t.Helper()
		if e.slow != slow || e.limit != limit || e.room() != room {
			t.Errorf("%s: slow %t, limit %d, room %d", what, e.slow, e.limit, e.room())
		}
	}
	check("unknown", false, 1, 1)
	e.learn(true, 50*time.Millisecond, 4, 32)
	check("answered once", false, 4, 4)
	for range 100 {
		e.learn(true, 50*time.Millisecond, 4, 32)
	}
	check("quick", false, 32, 32*ahead)
	e.learn(false, time.Millisecond, 4, 32)
	check("after a quick failure", false, 4, 4)
	e.learn(false, 10*time.Second, 4, 32)
	check("after a timeout", true, 4, 4)
	e.learn(true, 2*time.Second, 4, 32)
	check("after a slow success", true, 4, 4)
	e.learn(true, time.Millisecond, 4, 32)
	check("recovered", false, 5, 5*ahead)
}

// TestLookPause: a look that took long because PostgreSQL did not respond delays later
// deliveries by only a few seconds.
func TestLookPause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{time.Millisecond: 10 * time.Millisecond,
		time.Minute: 5 * time.Second} {
		if got := lookPause(took); got != want {
			t.Errorf("after %s: %s, want %s", took, got, want)
		}
	}
}

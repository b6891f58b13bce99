package dispatcher

import (
	"fmt"
	"testing"
	"time"
)

// TestBreaker: successive refusals for different handsets open it; ever rarer
// probes test whether it may close.
func TestBreaker(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := breaker{first: breakerFirst}
	refuse := func(n int) bool { return b.refused(now, fmt.Sprint(n), "ESME_RINVSRCTON") }
	for range 50 {
		if refuse(1) {
			t.Fatal("one handset opened it")
		}
	}
	for i := range breakerTrips - 1 {
		refuse(i + 1)
	}
	b.answered() // another answer came in between
	for i := range breakerTrips {
		if opened := refuse(i + 1); opened != (i == breakerTrips-1) {
			t.Fatalf("refusal %d: opened %v", i+1, opened)
		}
	}
	if open, reason := b.state(); !open || reason != "ESME_RINVSRCTON" {
		t.Errorf("open %v, %q", open, reason)
	}
	// Messages already out change nothing.
	for i := range 20 {
		if refuse(100 + i) {
			t.Error("it opened twice")
		}
	}
	pause := breakerFirst
	for range 7 {
		if b.ready(now.Add(pause-time.Millisecond)) || b.enter(now.Add(pause-time.Millisecond)) {
			t.Fatalf("ready before %v", pause)
		}
		now = now.Add(pause)
		if !b.ready(now) || !b.enter(now) {
			t.Fatalf("not ready after %v", pause)
		}
		if b.ready(now) || b.enter(now) {
			t.Fatal("a second probe beside the first")
		}
		now = now.Add(time.Second)
		refuse(1)
		pause = min(2*pause, breakerMost)
	}
	// An unanswered probe is given up after a while.
	now = now.Add(pause)
	if !b.enter(now) || b.enter(now.Add(breakerProbeFor-time.Millisecond)) || !b.enter(now.Add(breakerProbeFor)) {
		t.Error("the probe after one without an answer")
	}
	if !b.answered() || b.answered() {
		t.Error("it does not close once")
	}
	if open, reason := b.state(); open || reason != "" || !b.ready(now) || !b.enter(now) || !b.enter(now) {
		t.Error("closed and not ready")
	}
	for i := range breakerTrips - 1 {
		if refuse(i + 1) {
			t.Error("it remembered refusals from before")
		}
	}
}

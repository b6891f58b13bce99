package dispatcher

import (
	"testing"
	"time"
)

// TestYielding: binds come up again at once after a silence, and later and later where one follows the other.
func TestYielding(t *testing.T) {
	var y yielding
	now := time.Now()
	silence := func() { now = now.Add(time.Second); y.next(true, now) }
	downFor := func() (d time.Duration) {
		for from := now; y.next(false, now); now = now.Add(100 * time.Millisecond) {
			if d = now.Sub(from); d > time.Hour {
				t.Fatal("they never come up")
			}
		}
		return d
	}
	for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60} {
		silence()
		if !y.now {
			t.Fatal("they are up during a silence")
		}
		if got := downFor(); got > want*time.Second || got < want*time.Second-time.Second {
			t.Errorf("silence %d: down for %s, want %d s", i+1, got, want)
		}
	}
	now = now.Add(yieldForgets)
	silence()
	if got := downFor(); got != 0 {
		t.Errorf("long after: down for %s", got)
	}
}

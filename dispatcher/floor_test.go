package dispatcher

import (
	"testing"
	"time"
)

// TestFloor: a look begins a little below what was first last time, and at the
// very beginning as often as that is cheap.
func TestFloor(t *testing.T) {
	var f floor
	now := time.Now()
	look := func(after time.Duration, want int64, wantBelow bool, first int64, cost time.Duration) {
		t.Helper()
		now = now.Add(after)
		id, below := f.from(now)
		if id != want || below != wantBelow {
			t.Errorf("from %d, below %v; want %d, %v", id, below, want, wantBelow)
		}
		f.found(first, below, cost)
	}
	look(0, 0, true, 500, time.Millisecond)
	look(time.Second, 0, false, 70_000, time.Second) // what is dear above the floor says nothing of what is below
	look(time.Second, 69_000, false, 80_000, 0)
	look(lookDown, 0, true, 2_000, time.Second) // there was an old one
	look(lookDown, 1_000, false, 90_000, 0)     // and it was dear to see it
	look(downRest*time.Second-lookDown, 0, true, 90_000, time.Minute)
	look(mostRest, 0, true, 90_000, 0) // the server was frozen: the next look does not wait for hours
}

package recovery

import (
	"testing"
	"time"

	"intumwa/dispatcher/core"
)

// TestFloor: a read starts a little below the last first row, and from time to
// time, depending on the cost, at the very beginning.
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
	look(time.Second, 0, false, 70_000, time.Second) // the cost above the floor does not count for below
	look(time.Second, 69_000, false, 80_000, 0)
	look(lookDown, 0, true, 2_000, time.Second) // there was an old row
	look(lookDown, 1_000, false, 90_000, 0)     // and finding it was expensive
	look(downRest*time.Second-lookDown, 0, true, 90_000, time.Minute)
	look(core.MostRest, 0, true, 90_000, 0) // the server was frozen: the next read does not wait for hours
}

package webhooks

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestArrivals: whatever the order in which transactions end, each number that
// is committed is seen exactly once, and none that is open or may come still is
// passed by.
func TestArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 50).Draw(t, "start")
		a := newArrivals(start, 0)
		now := time.Now()
		drawn := start
		running, there, seen, open := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
		pick := func(of map[int64]bool, what string) (int64, bool) {
			var all []int64
			for n := start + 1; n <= drawn; n++ {
				if of[n] {
					all = append(all, n)
				}
			}
			if len(all) == 0 {
				return 0, false
			}
			return rapid.SampledFrom(all).Draw(t, what), true
		}
		read := func() {
			from, to := a.dueGaps(now)
			for i := range from {
				for n := from[i]; n <= to[i]; n++ {
					if there[n] {
						a.note(n, true, now)
						if seen[n] {
							t.Fatalf("%d is seen twice", n)
						}
						seen[n], open[n] = true, true
					}
				}
			}
			for n := a.cursor + 1; n <= drawn; n++ {
				if there[n] {
					a.note(n, true, now)
					seen[n], open[n] = true, true
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(10 * time.Millisecond)
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				drawn++
				running[drawn] = true
			case 1:
				if n, ok := pick(running, "commit"); ok {
					delete(running, n)
					there[n] = true
				}
			case 2:
				if n, ok := pick(running, "roll back"); ok {
					delete(running, n)
				}
			case 3:
				if n, ok := pick(open, "close"); ok {
					delete(open, n)
					a.finish(n)
				}
			default:
				read()
			}
			for n := start + 1; n <= a.done(); n++ {
				if open[n] || running[n] || there[n] && !seen[n] {
					t.Fatalf("%d is passed by: done up to %d", n, a.done())
				}
			}
		}
		now = now.Add(gapRetry + gapRetry)
		read()
		for n := range there {
			if !seen[n] {
				t.Fatalf("%d is never seen", n)
			}
		}
		for n := range open {
			a.finish(n)
		}
		now = now.Add(gapAge)
		now = now.Add(gapAge)
		a.dueGaps(now)
		if a.done() != a.cursor {
			t.Fatalf("done up to %d of %d when nothing is open", a.done(), a.cursor)
		}
	})
}

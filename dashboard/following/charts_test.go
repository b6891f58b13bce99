package following

import "testing"

func TestScale(t *testing.T) {
	for most, want := range map[int64][2]int64{0: {1, 1}, 1: {1, 1}, 5: {5, 1}, 6: {6, 2}, 9: {10, 2}, 11: {15, 5},
		26: {30, 10}, 73: {80, 20}, 3_000_000: {3_000_000, 1_000_000}} {
		if top, step := scale(most); top != want[0] || step != want[1] {
			t.Errorf("%d: up to %d by %d", most, top, step)
		}
	}
}

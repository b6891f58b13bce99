package statistics

import (
	"slices"
	"testing"
)

func TestShare(t *testing.T) {
	for _, c := range []struct{ part, whole, want int64 }{
		{11, 14, 786}, {1, 3, 333}, {2, 3, 667}, {1, 8, 125}, {1, 2000, 1}, {0, 7, 0}, {7, 7, 1000}, {0, 0, 0},
		{9999, 10_000, 999}, {1, 1_000_000, 1}, // 1000 means all, 0 means none
	} {
		if got := Share(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.part, c.whole, got, c.want)
		}
	}
}

func TestShares(t *testing.T) {
	for _, c := range []struct{ parts, want []int64 }{
		{nil, []int64{}}, {[]int64{0, 0}, []int64{0, 0}}, {[]int64{5}, []int64{1000}},
		{[]int64{1, 1, 1}, []int64{334, 333, 333}},
		{[]int64{11, 3}, []int64{786, 214}}, {[]int64{2, 1, 4}, []int64{286, 143, 571}},
		{[]int64{0, 1, 6}, []int64{0, 143, 857}},
	} {
		if got := Shares(c.parts...); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.parts, got, c.want)
		}
	}
}

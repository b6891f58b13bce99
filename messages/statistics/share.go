package statistics

import (
	"cmp"
	"slices"
)

// Share returns a part of a whole in thousandths, rounded, 0 of nothing. Only the whole is 1000, and only nothing is 0.
func Share(part, whole int64) int64 {
	if part <= 0 || whole <= 0 {
		return 0
	}
	if part >= whole {
		return 1000
	}
	return min(max((part*2000+whole)/(2*whole), 1), 999)
}

// Shares returns all parts of a whole in thousandths, whose sum is 1000: those with the largest remainders are rounded
// up.
func Shares(parts ...int64) []int64 {
	var whole, given int64
	for _, part := range parts {
		whole += part
	}
	shares := make([]int64, len(parts))
	if whole <= 0 {
		return shares
	}
	order := make([]int, len(parts))
	for i, part := range parts {
		order[i], shares[i] = i, part*1000/whole
		given += shares[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(parts[b]*1000%whole, parts[a]*1000%whole) })
	for _, i := range order[:1000-given] {
		shares[i]++
	}
	return shares
}

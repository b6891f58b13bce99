package links

import (
	"maps"
	"sync"

	"intumwa/smpp"
)

// refusals counts a link's refused submit_sm by status, for operators.
type refusals struct {
	mu     sync.Mutex
	counts map[string]uint64 // at most refusalStatuses and otherStatuses
}

const (
	refusalStatuses = 20
	otherStatuses   = "others"
)

func (r *refusals) add(s smpp.Status) {
	name := s.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = make(map[string]uint64)
	}
	if _, known := r.counts[name]; !known && len(r.counts) >= refusalStatuses {
		name = otherStatuses
	}
	r.counts[name]++
}

// totals returns the counts since the worker started.
func (r *refusals) totals() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

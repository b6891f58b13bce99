package smpp

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	vendorMost   = 10    // statuses of vendors with a label of their own
	vendorKnown  = 1_000 // that are counted: a broken peer may answer anything
	otherStatus  = "other"
	vendorClears = 2 // times as often as the rarest labelled one a status must come to take its label
)

// vendorStatuses chooses labels for statuses that no specification has: their own for the most frequent ones, and
// "other" for the rest, so the number of series is bounded.
type vendorStatuses struct {
	mu       sync.Mutex
	count    map[Status]uint64
	labelled map[Status]bool
	vectors  []*prometheus.CounterVec // with a label status
}

// label returns a status for metrics.
func (v *vendorStatuses) label(s Status) string {
	if label := s.label(); label != otherStatus {
		return label
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.count[s]; !known && len(v.count) >= vendorKnown {
		return otherStatus
	}
	v.count[s]++
	switch {
	case v.labelled[s]:
	case len(v.labelled) < vendorMost:
		v.labelled[s] = true
	default:
		rarest := s
		for other := range v.labelled {
			if v.count[other] < v.count[rarest] || rarest == s {
				rarest = other
			}
		}
		if v.count[s] <= vendorClears*v.count[rarest] {
			return otherStatus
		}
		delete(v.labelled, rarest)
		for _, vector := range v.vectors {
			vector.DeletePartialMatch(prometheus.Labels{"status": rarest.String()})
		}
		v.labelled[s] = true
	}
	return s.String()
}

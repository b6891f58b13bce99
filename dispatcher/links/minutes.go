package links

import (
	"math"
	"time"

	"intumwa/smpp"
)

// minutes keeps each link's totals at the heartbeats of the last minute, so that
// operators see the present rate.
type minutes map[string][]sample

type sample struct {
	at                  time.Time
	accepted, throttled uint64
	refused             map[string]uint64 // by status
}

// minute is a link's traffic in the last minute.
type minute struct {
	accepted, throttled int32
	refused             map[string]int32 // by status; never nil
}

// of records a link's totals and returns its traffic in the last minute. Totals
// that fall mean that the link has restarted.
func (m minutes) of(link string, totals smpp.Totals, refused map[string]uint64) minute {
	now := sample{time.Now(), totals.Accepted, totals.Throttled, refused}
	samples := m[link]
	if n := len(samples); n > 0 && (samples[n-1].accepted > now.accepted || samples[n-1].throttled > now.throttled) {
		samples = samples[:0]
		samples = append(samples, sample{at: now.at})
	}
	samples = append(samples, now)
	old := 0
	for now.at.Sub(samples[old].at) > time.Minute {
		old++
	}
	if old > 0 {
		samples = append(samples[:0], samples[old:]...)
	}
	m[link] = samples
	in := minute{since(now.accepted, samples[0].accepted), since(now.throttled, samples[0].throttled), map[string]int32{}}
	for status, n := range refused {
		if before := samples[0].refused[status]; n > before {
			in.refused[status] = since(n, before)
		}
	}
	return in
}

func since(now, then uint64) int32 { return int32(min(now-then, math.MaxInt32)) }

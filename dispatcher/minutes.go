package dispatcher

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
}

// minute is a link's traffic in the last minute.
type minute struct{ accepted, throttled int32 }

// of records a link's totals and returns its traffic in the last minute. Totals
// that fall mean that the link has restarted.
func (m minutes) of(link string, totals smpp.Totals) minute {
	now := sample{time.Now(), totals.Accepted, totals.Throttled}
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
	return minute{since(now.accepted, samples[0].accepted), since(now.throttled, samples[0].throttled)}
}

func since(now, then uint64) int32 { return int32(min(now-then, math.MaxInt32)) }

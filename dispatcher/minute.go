package dispatcher

import (
	"math"
	"time"

	"intumwa/smpp"
)

// minutes keeps, by link, what its totals were at each heartbeat of the last
// minute, so that operators see what it does now and not since it began.
type minutes map[string][]mark

type mark struct {
	at                  time.Time
	accepted, throttled uint64
}

// minute is what a link did in the last minute.
type minute struct{ accepted, throttled int32 }

// of notes a link's totals and answers what it did in the last minute. Totals
// that fall are those of a link that began anew.
func (m minutes) of(link string, totals smpp.Totals) minute {
	now := mark{time.Now(), totals.Accepted, totals.Throttled}
	marks := m[link]
	if n := len(marks); n > 0 && (marks[n-1].accepted > now.accepted || marks[n-1].throttled > now.throttled) {
		marks = marks[:0]
		marks = append(marks, mark{at: now.at})
	}
	marks = append(marks, now)
	old := 0
	for now.at.Sub(marks[old].at) > time.Minute {
		old++
	}
	if old > 0 {
		marks = append(marks[:0], marks[old:]...)
	}
	m[link] = marks
	return minute{since(now.accepted, marks[0].accepted), since(now.throttled, marks[0].throttled)}
}

func since(now, then uint64) int32 { return int32(min(now-then, math.MaxInt32)) }

package links

import (
	"sync"
	"time"
)

// How a throttled link slows and recovers (AIMD). A refusal cuts the rate by 30 %,
// but not below a little under what the carrier accepted in the last second: that
// is the best guess at its true rate. Then the rate climbs back to just under the
// refused one, stays there, and tries a little more from time to time. So it
// detects that a limit is gone without hitting a lasting one every few seconds.
const (
	throttleCut      = 0.7
	throttleKeep     = 0.95 // of what the carrier accepted in the last second
	throttleInterval = time.Second
	throttleRest     = 2 * time.Second // after a cut, before the first raise
	throttleNear     = 0.95            // of the refused rate: where climbing ends and trying starts
	throttleClimb    = 0.05            // of the configured rate, per second
	throttleTry      = 0.025           // of the configured rate, the first try beyond; it doubles
	throttleTryMost  = 0.2
	throttleTryEvery = 5 * time.Second
	throttleTryAfter = 80   // segments at least, up to six times throttleTryEvery
	throttleLeast    = 0.1  // segments per second: the smallest raise
	throttleUnpaced  = 20   // segments per second: the least assumed rate of an unpaced link
	throttleFloor    = 0.05 // of the configured rate: a carrier that refuses this refuses any rate
)

// pace slows a link that its carrier throttles. It slows the link, not the
// message: further segments would be refused too.
type pace struct {
	mu         sync.Mutex
	link       interface{ SetTPS(float64) }
	configured float64 // 0: unpaced
	current    float64 // 0: unpaced
	refused    float64 // the last refused rate; 0: none
	peak       float64 // of an unpaced link, used like the configured rate of a paced one
	step       float64 // the next try beyond refused
	cutAt      time.Time
	raisedAt   time.Time
	taken      meter // accepted segments
}

func newPace(link interface{ SetTPS(float64) }, tps float64) *pace {
	return &pace{link: link, configured: tps, current: tps}
}

// answered counts an accepted segment.
func (p *pace) answered(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken.add(now)
}

// flowing reports whether the carrier takes segments now.
func (p *pace) flowing(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken.lastSecond(now) > 0
}

// throttled handles the refusal of a segment that was written at sent. It counts only if
// the segment was written after the last cut.
func (p *pace) throttled(now, sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent.Before(p.cutAt) {
		return
	}
	p.cutLocked(now)
}

// cutLocked slows the link.
func (p *pace) cutLocked(now time.Time) {
	if now.Sub(p.cutAt) < throttleInterval {
		return
	}
	p.cutAt, p.raisedAt = now, now
	from := p.current
	if from == 0 { // unpaced: from the accepted rate
		from = max(p.taken.lastSecond(now), throttleUnpaced)
		p.peak = from
	}
	p.refused, p.step = from, throttleTry*p.usual()
	p.current = max(min(max(from*throttleCut, throttleKeep*p.taken.lastSecond(now)), from), p.usual()*throttleFloor, 1)
	p.link.SetTPS(p.current)
}

// usual is the rate to which the fractions above refer.
func (p *pace) usual() float64 {
	if p.configured > 0 {
		return p.configured
	}
	return p.peak
}

// set changes the configured rate.
func (p *pace) set(tps float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.configured == tps {
		return
	}
	p.configured, p.current, p.refused, p.peak = tps, tps, 0, 0
	p.link.SetTPS(p.current)
}

// tick lets the rate recover.
func (p *pace) tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := now.Sub(p.raisedAt)
	if p.current == p.configured || now.Sub(p.cutAt) < throttleRest || since < time.Second {
		return
	}
	near := throttleNear * p.refused
	switch {
	case p.current < near:
		p.current = min(p.current+max(throttleClimb*p.usual(), throttleLeast), near)
	case since < p.tryEvery():
		return
	default:
		p.current += max(p.step, throttleLeast)
		p.step = min(2*p.step, throttleTryMost*p.usual())
	}
	p.raisedAt = now
	switch {
	case p.configured > 0 && p.current >= p.configured:
		p.current, p.refused = p.configured, 0
	case p.configured == 0 && p.current >= 2*p.peak:
		p.current, p.refused, p.peak = 0, 0, 0 // the carrier takes twice what it refused once
	}
	p.link.SetTPS(p.current)
}

// tryEvery is the interval of tries. It is longer on a slow link, so that refusals
// stay a small share of its traffic.
func (p *pace) tryEvery() time.Duration {
	segments := time.Duration(throttleTryAfter / p.current * float64(time.Second))
	return min(max(segments, throttleTryEvery), 6*throttleTryEvery)
}

// meter counts the events of the last second, in tenths of a second.
type meter struct {
	tenth  int64 // since the epoch, of the latest count
	counts [10]int
}

func (m *meter) add(now time.Time) {
	m.turn(now)
	m.counts[m.tenth%10]++
}

func (m *meter) lastSecond(now time.Time) float64 {
	m.turn(now)
	sum := 0
	for _, n := range m.counts {
		sum += n
	}
	return float64(sum)
}

// turn clears the tenths that are over.
func (m *meter) turn(now time.Time) {
	tenth := now.UnixMilli() / 100
	for range min(tenth-m.tenth, 10) {
		m.tenth++
		m.counts[m.tenth%10] = 0
	}
	m.tenth = max(m.tenth, tenth)
}

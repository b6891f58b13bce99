package dispatcher

import (
	"sync"
	"time"
)

// How a throttled link slows and recovers (AIMD): a refusal takes 30 % of the
// rate, at most once a second; every second without one gives back a
// twentieth of the configured rate.
const (
	throttleCut      = 0.7
	throttleInterval = time.Second
	throttleRecovery = 0.05
)

// pace slows a link that its carrier throttles. It slows the link, not the
// message: every further segment would be refused as well.
type pace struct {
	mu         sync.Mutex
	link       interface{ SetTPS(float64) }
	configured float64 // 0: unpaced
	current    float64 // 0: unpaced
	peak       float64 // rate at which the first refusal came, where unpaced
	cutAt      time.Time
	raisedAt   time.Time

	second   time.Time // of the count
	accepted int       // segments accepted within it
	rate     float64   // of the second before
}

func newPace(link interface{ SetTPS(float64) }, tps float64) *pace {
	return &pace{link: link, configured: tps, current: tps}
}

// answered notes an accepted segment.
func (p *pace) answered(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(now)
	p.accepted++
}

func (p *pace) count(now time.Time) {
	if since := now.Sub(p.second); since >= time.Second {
		p.rate = float64(p.accepted) / since.Seconds()
		p.second, p.accepted = now, 0
	}
}

// throttled notes a refusal.
func (p *pace) throttled(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.cutAt) < throttleInterval {
		return
	}
	p.cutAt, p.raisedAt = now, now
	from := p.current
	if from == 0 { // unpaced: from what the carrier took
		p.count(now)
		from = max(p.rate, float64(p.accepted), 1)
		p.peak = from
	}
	p.current = max(from*throttleCut, 1)
	p.link.SetTPS(p.current)
}

// set changes the configured rate.
func (p *pace) set(tps float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.configured == tps {
		return
	}
	p.configured, p.current, p.peak = tps, tps, 0
	p.link.SetTPS(tps)
}

// tick lets the rate recover.
func (p *pace) tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == p.configured || now.Sub(p.raisedAt) < time.Second || now.Sub(p.cutAt) < 2*time.Second {
		return
	}
	p.raisedAt = now
	target := p.configured
	if target == 0 {
		target = p.peak
	}
	p.current += max(target*throttleRecovery, 1)
	switch {
	case p.configured > 0 && p.current >= p.configured:
		p.current = p.configured
	case p.configured == 0 && p.current >= 2*p.peak:
		p.current, p.peak = 0, 0 // the carrier takes twice what it refused once
	}
	p.link.SetTPS(p.current)
}

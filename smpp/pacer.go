package smpp

import (
	"math"
	"sync"
	"time"
)

const (
	// paceLate is how late a token may be used and still keep its place in the
	// schedule. Timers wake up to a millisecond or more late; without it every
	// late wake-up would lower the rate, and no rate above 1000 a second could
	// be held.
	paceLate = 3 * time.Millisecond
	// paceMargin is how much the network may squeeze two submit_sm together
	// that were written a second apart.
	paceMargin = 4 * time.Millisecond
)

// pacer spaces submit_sm so that no second, wherever it begins, sees more than
// tps of them written.
//
// It is a schedule, not a bucket: token k has the slot s(k) = s(k-1) + d, may be
// taken from s(k) on, and a slot is never more than paceLate in the past
// (s(k) >= now - paceLate), so idle time is never caught up. A caller that writes
// calls written afterwards, which moves the schedule on when the write was slow.
//
// Why the bound holds for N = tps: let submit k be written at w(k), at latest
// when written reports it. If m more were written in the same go, their slots
// lay within paceLate, so m*d <= paceLate. written makes the last of these slots
// >= w(k) - paceLate, so s(k+N) >= w(k) - paceLate + (N-m)*d
// >= w(k) - 2*paceLate + N*d. With d = (1 s + 2*paceLate + paceMargin) / tps,
// w(k+N) >= s(k+N) >= w(k) + 1 s + paceMargin. The price is a rate 1 % under tps.
type pacer struct {
	mu       sync.Mutex
	tps      float64
	interval time.Duration // 0: unpaced
	slot     time.Time     // of the last token
}

func newPacer(tps float64) *pacer {
	p := new(pacer)
	p.set(tps)
	return p
}

// set changes the rate and reports whether tps is one.
func (p *pacer) set(tps float64) bool {
	if !(tps >= 0) || math.IsInf(tps, 0) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tps = tps
	p.interval = 0
	if tps > 0 {
		d := float64(time.Second+2*paceLate+paceMargin) / tps
		p.interval = time.Duration(min(max(math.Ceil(d), 1), float64(24*time.Hour)))
	}
	return true
}

func (p *pacer) rate() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tps
}

// room is how many submit_sm may wait for their token at the writer: about
// 10 ms of the pace, so that several can go at one wake-up. Unpaced: no limit.
func (p *pacer) room() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interval == 0 {
		return math.MaxInt
	}
	return 2 + int(p.tps/100)
}

// take takes the next token, or returns how long to wait for it.
func (p *pacer) take(now time.Time) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interval == 0 {
		p.slot = now
		return 0
	}
	next := p.slot.Add(p.interval)
	if wait := next.Sub(now); wait > 0 {
		return wait
	}
	p.slot = later(next, now.Add(-paceLate))
	return 0
}

// written records that the tokens taken were used by the time at.
func (p *pacer) written(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slot = later(p.slot, at.Add(-paceLate))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

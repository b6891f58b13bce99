package dispatcher

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// rated is a link whose pace is what pace sets.
type rated struct{ tps float64 }

func (r *rated) SetTPS(tps float64) { r.tps = tps }

// limited is a carrier that accepts so many segments in any one second.
type limited struct {
	limit    float64
	accepted []time.Time
}

func (l *limited) take(now time.Time) bool {
	for len(l.accepted) > 0 && now.Sub(l.accepted[0]) >= time.Second {
		l.accepted = l.accepted[1:]
	}
	if float64(len(l.accepted)) >= l.limit {
		return false
	}
	l.accepted = append(l.accepted, now)
	return true
}

// drive has a busy link run for d of made-up time, 20 ms from the write to the
// answer, and counts.
func drive(p *pace, r *rated, carrier *limited, unpaced float64, from time.Time, d time.Duration) (accepted, refused int) {
	type answer struct {
		at, sent time.Time
		ok       bool
	}
	var answers []answer
	next := from
	for now := from; now.Before(from.Add(d)); now = now.Add(time.Millisecond) {
		for len(answers) > 0 && !now.Before(answers[0].at) {
			if a := answers[0]; a.ok {
				accepted++
				p.answered(a.at)
			} else {
				refused++
				p.throttled(a.at, a.sent)
			}
			answers = answers[1:]
		}
		for !now.Before(next) {
			rate := r.tps
			if rate == 0 {
				rate = unpaced
			}
			answers = append(answers, answer{now.Add(20 * time.Millisecond), now, carrier.take(now)})
			next = next.Add(time.Duration(1.01 * float64(time.Second) / rate))
		}
		if now.Sub(from)%(250*time.Millisecond) == 0 {
			p.tick(now)
		}
	}
	return accepted, refused
}

// TestHabitOfThrottling: a carrier that takes less than is configured. Within
// 60 s at least 90 % of what it takes goes through and under 2 % is refused,
// and it stays so; when the limit goes, the link is soon at full pace again.
//
// Source: rule carriers 3.1, 4.1.
func TestHabitOfThrottling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ configured, limit float64 }{
		{100, 70}, {100, 95}, {100, 50}, {100, 20}, {1000, 700}, {50, 35}, {10, 7}, {0, 140}, {200, 10},
	} {
		t.Run(fmt.Sprintf("%v of %v", c.limit, c.configured), func(t *testing.T) {
			r := &rated{tps: c.configured}
			p, carrier := newPace(r, c.configured), &limited{limit: c.limit}
			start := time.Unix(1_700_000_000, 0)
			drive(p, r, carrier, 2*c.limit, start, 40*time.Second)
			for minute := range 5 {
				accepted, refused := drive(p, r, carrier, 2*c.limit, start.Add(40*time.Second+time.Duration(minute)*time.Minute), time.Minute)
				rate, share := float64(accepted)/60/c.limit, float64(refused)/float64(accepted+refused)
				if rate < 0.9 || share > 0.02 && refused > 30 {
					t.Errorf("minute %d: %.1f %% of the carrier's rate, %.2f %% refused", minute, 100*rate, 100*share)
				}
				if minute == 0 {
					t.Logf("settled: %.1f %% of the carrier's rate, %.2f %% refused", 100*rate, 100*share)
				}
			}
			carrier.limit = math.Inf(1)
			drive(p, r, carrier, 2*c.limit, start.Add(20*time.Minute), 2*time.Minute)
			if r.tps != c.configured {
				t.Errorf("two minutes after the limit has gone the pace is %v", r.tps)
			}
		})
	}
}

// TestHabitOfCongestion: congestion_state slows the link before it is refused.
//
// Source: rule carriers 4.2.
func TestHabitOfCongestion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state uint8
		want  float64
	}{{0, 100}, {80, 100}, {81, 90}, {89, 90}, {90, 50}, {99, 50}, {100, stoppedRate}} {
		r := &rated{tps: 100}
		p := newPace(r, 100)
		now := time.Unix(1_700_000_000, 0)
		p.congested(now, c.state)
		if r.tps != c.want {
			t.Errorf("congestion_state %d: %v a second, want %v", c.state, r.tps, c.want)
		}
		p.congested(now.Add(10*time.Millisecond), c.state)
		if r.tps != c.want {
			t.Errorf("congestion_state %d twice in a second: %v a second, want %v", c.state, r.tps, c.want)
		}
		p.tick(now.Add(1100 * time.Millisecond))
		if c.state == 100 && r.tps != 50 {
			t.Errorf("a second after congestion_state 100: %v a second, want 50", r.tps)
		}
	}
}

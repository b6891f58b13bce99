package links

import (
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/setup"
	"intumwa/messages/outbox"
	"intumwa/smpp"
)

// rate is a link that records its rate.
type rate struct {
	tps float64
	set int
}

func (r *rate) SetTPS(tps float64) { r.tps, r.set = tps, r.set+1 }

var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestPaceCut(t *testing.T) {
	link := &rate{tps: 100}
	p := newPace(link, 100)
	now := midnight
	p.throttled(now, now)
	if link.tps != 70 {
		t.Errorf("after a refusal: %v, want 70", link.tps)
	}
	for range 50 { // the rest of the window
		p.throttled(now.Add(10*time.Millisecond), now.Add(-time.Millisecond))
	}
	if link.tps != 70 || link.set != 1 {
		t.Errorf("after the rest of the window: %v", link.tps)
	}
	// The rate stays just under what the carrier took in the last second.
	for i := range 60 {
		p.answered(now.Add(time.Second + time.Duration(i)*10*time.Millisecond))
	}
	now = now.Add(1600 * time.Millisecond)
	p.throttled(now, now)
	if want := throttleKeep * 60; link.tps < want-0.001 || link.tps > want+0.001 {
		t.Errorf("a carrier that takes 60 is sent %v, want %v", link.tps, want)
	}
	// Not below the floor.
	for range 50 {
		now = now.Add(2 * time.Second)
		p.throttled(now, now)
	}
	if want := 100 * throttleFloor; link.tps != want {
		t.Errorf("a carrier that refuses everything is sent %v, want %v", link.tps, want)
	}
}

// TestPaceRecovers: without refusals the configured rate comes back.
func TestPaceRecovers(t *testing.T) {
	for _, configured := range []float64{1, 10, 100, 5000} {
		link := &rate{tps: configured}
		p := newPace(link, configured)
		now := midnight
		p.throttled(now, now)
		lowest, last := link.tps, link.tps
		if lowest > max(configured, 1) {
			t.Errorf("%v: cut to %v", configured, lowest)
		}
		for range 4 * 120 {
			now = now.Add(250 * time.Millisecond)
			p.tick(now)
			if link.tps < last || link.tps > max(configured, 1) {
				t.Fatalf("%v: %v after %v", configured, link.tps, last)
			}
			last = link.tps
		}
		if link.tps != configured {
			t.Errorf("%v: after two minutes %v", configured, link.tps)
		}
	}
}

// TestPaceUnpaced: an unpaced link gets a rate when it is refused, and loses it
// when the carrier takes twice as much.
func TestPaceUnpaced(t *testing.T) {
	link := &rate{}
	p := newPace(link, 0)
	now := midnight
	for i := range 200 {
		p.answered(now.Add(time.Duration(i) * 5 * time.Millisecond))
	}
	now = now.Add(time.Second)
	p.throttled(now, now)
	if link.tps < 130 || link.tps > 200 {
		t.Errorf("refused at 200/s: %v", link.tps)
	}
	for range 4 * 300 {
		now = now.Add(250 * time.Millisecond)
		p.tick(now)
	}
	if link.tps != 0 {
		t.Errorf("after five minutes: %v", link.tps)
	}
	idle := newPace(link, 0)
	idle.throttled(now, now)
	if link.tps < 1 || link.tps > 20 {
		t.Errorf("refused at nothing: %v, want a little", link.tps)
	}
}

func TestPaceSet(t *testing.T) {
	link := &rate{tps: 100}
	p := newPace(link, 100)
	p.set(100)
	if link.set != 0 {
		t.Error("the same rate was set again")
	}
	p.throttled(midnight, midnight)
	p.set(50)
	if link.tps != 50 {
		t.Errorf("%v, want 50", link.tps)
	}
	p.set(0)
	if link.tps != 0 {
		t.Errorf("%v, want none", link.tps)
	}
}

// TestPaceFindsTheRate: a carrier that takes less than the configured rate gets at
// least 90 % of what it takes, with few refusals once the rate is found.
// fault 16
func TestPaceFindsTheRate(t *testing.T) {
	const step = 10 * time.Millisecond
	for _, c := range []struct{ configured, takes float64 }{{100, 70}, {100, 30}, {1000, 600}, {0, 200}, {50, 49},
		{20, 10}} {
		link := &rate{tps: c.configured}
		p := newPace(link, c.configured)
		now, due, taken, settled, refused := midnight, 0.0, 0, 0, 0
		var second []time.Time // accepted in the last second
		const seconds, settling = 90, 15
		for i := range int(seconds * time.Second / step) {
			now = now.Add(step)
			tps := link.tps
			if tps == 0 {
				tps = 2000
			}
			for due += tps * step.Seconds(); due >= 1; due-- {
				for len(second) > 0 && now.Sub(second[0]) >= time.Second {
					second = second[1:]
				}
				late := now.Sub(midnight) > settling*time.Second
				if late {
					settled++
				}
				if float64(len(second)) < c.takes {
					second = append(second, now)
					taken++
					p.answered(now)
					continue
				}
				if late {
					refused++
				}
				p.throttled(now, now)
			}
			if i%25 == 0 {
				p.tick(now)
			}
		}
		if share := float64(taken) / (c.takes * seconds); share < 0.85 {
			t.Errorf("configured %v, takes %v: only %.0f %% of it went out", c.configured, c.takes, 100*share)
		}
		if ratio := float64(refused) / float64(settled); ratio > 0.02 {
			t.Errorf("configured %v, takes %v: %.1f %% refused", c.configured, c.takes, 100*ratio)
		}
	}
}

// TestFullHandset: a retry refused for one handset's full queue does not slow the link
// while others pass (rule carriers 3.2).
func TestFullHandset(t *testing.T) {
	for name, c := range map[string]struct {
		status  smpp.Status
		attempt int
		others  bool // pass
		slows   bool
	}{
		"full again, others pass":   {smpp.StatusMsgQueueFull, 2, true, false},
		"full again, nobody passes": {smpp.StatusMsgQueueFull, 2, false, true},
		"full at the first attempt": {smpp.StatusMsgQueueFull, 1, true, true},
		"throttled":                 {smpp.StatusThrottled, 2, true, true},
	} {
		link := &rate{tps: 100}
		w := &Worker{Carrier: &core.Carrier{}, pace: newPace(link, 100)}
		w.Carrier.Conf.Store(&setup.Carrier{})
		if c.others {
			w.pace.answered(midnight)
		}
		m := w.Attempt(&outbox.Claimed{Attempt: c.attempt})
		w.answered(m, &core.Result{Message: m, Result: smpp.Result{Outcome: smpp.Rejected, Status: c.status},
			At: midnight.Add(time.Millisecond)})
		if slows := link.tps < 100; slows != c.slows {
			t.Errorf("%s: %v a second", name, link.tps)
		}
	}
}

package main

import (
	"context"
	"fmt"
	"time"
)

// playKill kills the gateway while messages are on their way and starts it again
// at once. The carrier takes 2,000 a second, so that there is something to carry
// on with.
func playKill(ctx context.Context, b *bench, s scenario) error {
	const n, before = 10_000, 2000
	return b.inWorld(ctx, setup{endpoint: true, respDelay: 50 * time.Millisecond}, func(w *world) error {
		return b.record(s.name, s.about, n, b.runs, func() (measurement, error) {
			return w.killed(ctx, n, before)
		})
	})
}

func (w *world) killed(ctx context.Context, n, before int) (measurement, error) {
	var m measurement
	final, err := w.expect(n)
	if err != nil {
		return m, err
	}
	if err := w.requests(ctx, 4, n/bulkSize, w.bulkRequest(here, w.take(n))); err != nil {
		return m, err
	}
	if err := poll(ctx, startWithin, func() bool { return w.carrier.stats().Accepted >= before }); err != nil {
		return m, fmt.Errorf("waiting for the first %d messages: %w", before, err)
	}
	w.gateway.Kill()
	killed := time.Now()
	if err := w.start(ctx); err != nil {
		return m, err
	}
	bound := time.Since(killed)
	end, err := final(ctx)
	if err != nil {
		return m, fmt.Errorf("after the restart: %w\n%s", err, w.gateway.Tail())
	}
	submits, err := w.carrier.submits()
	if err != nil {
		return m, err
	}
	// What the dead one had written may reach the carrier after its death, on
	// the session of then.
	session, last := 0, time.Time{}
	for _, s := range submits {
		if s.At.Before(killed) {
			session = max(session, s.Session)
		}
	}
	again := end
	for _, s := range submits {
		if s.Session > session && s.At.Before(again) {
			again = s.At
		}
		if s.At.After(last) {
			last = s.At
		}
	}
	m.add("kill to ready and bound", "s", bound.Seconds())
	m.add("kill to the first submit_sm", "s", again.Sub(killed).Seconds())
	m.add("kill to the last submit_sm", "s", last.Sub(killed).Seconds())
	m.add("kill to the last webhook", "s", end.Sub(killed).Seconds())
	m.add("submit_sm that came twice", "", float64(len(submits)-n))
	return m, nil
}

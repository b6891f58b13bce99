package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is one measurement. The short ones together take less than three minutes on two
// cores.
type scenario struct {
	name, about string
	short       bool
	play        func(ctx context.Context, b *bench, s scenario) error
}

const (
	singleSends = 20_000
	bulkSends   = 30_000
	steadyRate  = 200
	steadyFor   = 10 // seconds
)

var scenarios = []scenario{
	{"shape", "what a message costs that comes alone, and one of a bulk of 500, free of noise: a test keeps watch over it",
		true, playShape},
	{"singles", "single sends, 64 connections, window 100, a webhook each", true,
		plain(setup{endpoint: true}, singleSends, (*world).singles)},
	{"smpp", "submit_sm by a customer's program over 4 binds, window 100 each, a receipt each", false,
		plain(setup{program: true}, singleSends, (*world).submits)},
	{"bulk", "bulk of 500, 4 connections, window 100, a webhook each", true,
		plain(setup{endpoint: true}, bulkSends, (*world).bulk)},
	{"receipt", "bulk of 500 to the receipt, 4 connections, window 1000, no endpoint", true,
		plain(setup{window: 1000}, 2*bulkSends, (*world).bulk)},
	{"steady", "200 single sends a second, each at its time", true,
		plain(setup{endpoint: true}, steadyRate*steadyFor, paced(steadyRate))},
	{"floor", "singles, bulk and steady by a server with no store, and by the gateway as multiples of it", false,
		playFloor},
	{"kill", "kill -9 during a bulk at a carrier that accepts 2,000 a second, restart at once", true, playKill},
	{"down", "100 a second while up to a million messages wait for a carrier that is down", false, playDown},
	{"fleet", "single sends through one, two and three api processes, and through two dispatchers with two carriers",
		false, playFleet},
}

func choose(names string) ([]scenario, error) {
	switch names {
	case "":
		return slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !s.short }), nil
	case "all":
		return scenarios, nil
	}
	var chosen []scenario
	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no scenario %q; -help lists them", name)
		}
		chosen = append(chosen, scenarios[at])
	}
	return chosen, nil
}

// plain measures one load in its own world.
func plain(in setup, n int, load func(w *world, n int) work) func(context.Context, *bench, scenario) error {
	return func(ctx context.Context, b *bench, s scenario) error {
		return b.inWorld(ctx, in, func(w *world) error { return b.load(ctx, w, s.name, s.about, n, load(w, n)) })
	}
}

func paced(rate int) func(w *world, n int) work {
	return func(w *world, n int) work { return w.paced(rate, n) }
}

// playDown queues more and more messages for a carrier that is down, and sends some to another
// carrier past them.
func playDown(ctx context.Context, b *bench, s scenario) error {
	const rate, n = 100, 100 * steadyFor
	return b.inWorld(ctx, setup{endpoint: true, otherDown: true}, func(w *world) error {
		have := 0
		for _, want := range []int{0, 50_000, 500_000, 1_000_000} {
			if want > have {
				if err := w.pile(ctx, want-have); err != nil {
					return fmt.Errorf("letting %d wait: %w", want, err)
				}
				have = want
			}
			if err := b.load(ctx, w, fmt.Sprintf("%s %d", s.name, want), s.about, n, w.paced(rate, n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// playKill kills the gateway under load and restarts it at once. The carrier accepts 2,000 a
// second, so messages are left for the restart.
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
	// Submits of the dead process may arrive after its death, on its old session.
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

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is something to measure. The short ones together take less than
// three minutes on two cores.
type scenario struct {
	name, about string
	short       bool
	play        func(ctx context.Context, b *bench) error
}

var scenarios = []scenario{
	{"shape", "what one message costs when it comes alone, and one of a bulk of 500: figures without noise, of which a test keeps watch", true, playShape},
	{"singles", "single sends at full load, 64 connections, window 100, a webhook each", true, playSingles},
	{"bulk", "bulk of 500 at full load, window 100, a webhook each", true, playBulk},
	{"receipt", "bulk of 500 to the receipt, window 1000, no endpoint", true, playReceipt},
	{"steady", "200 single sends a second: latency and cost", true, playSteady},
	{"kill", "kill -9 amid a bulk, restart at once: when does submit_sm go out again?", true, playKill},
	{"companies", "single sends from 100 companies in turn", false, playCompanies},
	{"down", "100 a second while -waiting messages wait for a carrier that is down", false, playDown},
	{"slow", "100 a second while -waiting messages wait for a carrier that takes ten a second", false, playSlow},
	{"snapshot", "100,000 single sends while a transaction holds a snapshot and every table, as pg_dump does", false, playSnapshot},
	{"old", "singles and steady with -old messages of before", false, playOld},
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

const (
	singleSends = 20_000 // a run
	bulkSends   = 60     // of 500 recipients, a run
	steadyFor   = 10 * time.Second
)

func playSingles(ctx context.Context, b *bench) error {
	return b.inWorld(ctx, setup{endpoint: true}, func(w *world) error {
		return b.record("singles", "single sends, 64 connections, window 100, a webhook each", singleSends, b.runs, func() (measurement, error) {
			return w.measured(ctx, singleSends, w.singles(singleSends))
		})
	})
}

func playCompanies(ctx context.Context, b *bench) error {
	return b.inWorld(ctx, setup{endpoint: true, companies: 100}, func(w *world) error {
		return b.record("companies", "the same, from 100 companies in turn", singleSends, b.runs, func() (measurement, error) {
			return w.measured(ctx, singleSends, w.singles(singleSends))
		})
	})
}

func playBulk(ctx context.Context, b *bench) error {
	return b.inWorld(ctx, setup{endpoint: true}, func(w *world) error {
		return b.record("bulk", "bulk of 500, 4 connections, window 100, a webhook each", bulkSends*bulkSize, b.runs, func() (measurement, error) {
			return w.measured(ctx, bulkSends*bulkSize, w.bulk(bulkSends, here))
		})
	})
}

func playReceipt(ctx context.Context, b *bench) error {
	const sends = 2 * bulkSends
	return b.inWorld(ctx, setup{window: 1000}, func(w *world) error {
		return b.record("receipt", "bulk of 500 to the receipt, 4 connections, window 1000, no endpoint", sends*bulkSize, b.runs, func() (measurement, error) {
			return w.measured(ctx, sends*bulkSize, w.bulk(sends, here))
		})
	})
}

func playSteady(ctx context.Context, b *bench) error {
	return b.inWorld(ctx, setup{endpoint: true}, func(w *world) error { return b.steady(ctx, w, "steady", 200) })
}

func (b *bench) steady(ctx context.Context, w *world, name string, rate int) error {
	n := rate * int(steadyFor.Seconds())
	return b.record(name, fmt.Sprintf("%d single sends a second, each at its time", rate), n, b.runs, func() (measurement, error) {
		return w.measured(ctx, n, w.paced(rate, n))
	})
}

func playDown(ctx context.Context, b *bench) error { return b.waits(ctx, down) }
func playSlow(ctx context.Context, b *bench) error { return b.waits(ctx, slow) }

// waits lets more and more messages wait for another carrier and carries some
// past them.
func (b *bench) waits(ctx context.Context, other neighbour) error {
	return b.inWorld(ctx, setup{endpoint: true, other: other}, func(w *world) error {
		have := 0
		for _, n := range b.waiting {
			if n > have {
				if err := w.pile(ctx, n-have); err != nil {
					return fmt.Errorf("letting %d wait: %w", n, err)
				}
				have = n
			}
			if err := b.steady(ctx, w, fmt.Sprintf("%s %d", other, n), 100); err != nil {
				return err
			}
		}
		return nil
	})
}

// playSnapshot compares each quarter's cost with the first's.
func playSnapshot(ctx context.Context, b *bench) error {
	const quarter = 25_000
	return b.inWorld(ctx, setup{endpoint: true}, func(w *world) error {
		if err := b.record("snapshot 0", "single sends before the snapshot is taken", quarter, 1, func() (measurement, error) {
			return w.measured(ctx, quarter, w.singles(quarter))
		}); err != nil {
			return err
		}
		release, err := w.snapshot(ctx)
		if err != nil {
			return err
		}
		defer release()
		var first float64
		for i := range 4 {
			if err := b.record(fmt.Sprintf("snapshot %d", i+1), "a quarter of 100,000 single sends while it is held", quarter, 1, func() (measurement, error) {
				m, err := w.measured(ctx, quarter, w.singles(quarter))
				if err != nil {
					return m, err
				}
				used := m.value(cpuOf("PostgreSQL"))
				if i == 0 {
					first = used
				}
				m.add("PostgreSQL against the first quarter", "×", used/first)
				return m, nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func playOld(ctx context.Context, b *bench) error {
	return b.inWorld(ctx, setup{endpoint: true}, func(w *world) error {
		if err := w.age(ctx, b.old); err != nil {
			return fmt.Errorf("making %d old messages: %w", b.old, err)
		}
		if err := b.record("old singles", fmt.Sprintf("single sends, with %d old messages", b.old), singleSends, b.runs, func() (measurement, error) {
			return w.measured(ctx, singleSends, w.singles(singleSends))
		}); err != nil {
			return err
		}
		return b.steady(ctx, w, "old steady", 200)
	})
}

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A shape is a load in which timing does not decide what shares a transaction
// with what: each message comes alone, or all in one request. So its figures are
// the same on a slow machine, but for how many answers and receipts of a bulk are
// settled together.
const (
	shapeRate     = 20 // a second, so that each is done before the next comes
	shapeMessages = 40
	shapeIdle     = 2 * time.Second // of background work, which is taken off
)

func playShape(ctx context.Context, b *bench, _ scenario) error {
	w, err := shapeWorld(ctx, b.servers, b.binary, b.dir)
	if err != nil {
		return err
	}
	defer w.close()
	if err := b.record("shape single", "one message at a time, with a webhook; background work taken off", shapeMessages, b.runs, func() (measurement, error) { return w.alone(ctx) }); err != nil {
		return err
	}
	return b.record("shape bulk", "one bulk of 500, with a webhook each", bulkSize, b.runs, func() (measurement, error) { return w.together(ctx) })
}

// shapeWorld is a warm world in which nothing else writes, and a receipt comes
// well behind its answer.
func shapeWorld(ctx context.Context, s *servers, binary, dir string) (*world, error) {
	w, err := newWorld(ctx, s, setup{endpoint: true, receiptDelay: 20 * time.Millisecond, still: true}, binary, dir)
	if err != nil {
		return nil, err
	}
	if _, err := w.paced(shapeRate, 10)(ctx); err != nil {
		w.close()
		return nil, fmt.Errorf("warming up: %w\n%s", err, w.gateway.Tail())
	}
	return w, nil
}

// alone measures messages that come one at a time, less what goes on without.
func (w *world) alone(ctx context.Context) (measurement, error) {
	idle, err := w.measured(ctx, shapeMessages, func(context.Context) (measurement, error) {
		time.Sleep(shapeIdle)
		return measurement{}, nil
	})
	if err != nil {
		return idle, err
	}
	m, err := w.measured(ctx, shapeMessages, w.paced(shapeRate, shapeMessages))
	if err != nil {
		return m, err
	}
	m = m.counts()
	for i, f := range m.figures {
		m.figures[i].value -= idle.value(f.name) * m.elapsed / idle.elapsed
	}
	return m, nil
}

// together measures the messages of one request.
func (w *world) together(ctx context.Context) (measurement, error) {
	m, err := w.measured(ctx, bulkSize, w.bulk(bulkSize))
	return m.counts(), err
}

// counts leaves out what depends on the machine.
func (m measurement) counts() measurement {
	m.figures = slices.DeleteFunc(m.figures, func(f single) bool { return f.unit != "/message" && f.unit != "octets/message" })
	return m
}

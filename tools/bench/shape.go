package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A shape is a load in which timing does not decide which messages share a transaction:
// each comes alone, or all in one request. So its figures are the same on a slow machine,
// except for how many responses and receipts of a bulk are settled together.
const (
	shapeRate     = 20 // per second: each is done before the next
	shapeMessages = 40
	shapeIdle     = 2 * time.Second // background work, which is subtracted
)

func playShape(ctx context.Context, b *bench, _ scenario) error {
	w, err := shapeWorld(ctx, b.servers, b.binary, b.dir)
	if err != nil {
		return err
	}
	defer w.close()
	if err := b.record("shape single", "one message at a time, with a webhook; background work taken off", shapeMessages,
		b.runs, func() (measurement, error) { return w.alone(ctx) }); err != nil {
		return err
	}
	return b.record("shape bulk", "one bulk of 500, with a webhook each", bulkSize, b.runs,
		func() (measurement, error) { return w.together(ctx) })
}

// shapeWorld is a warm world without other writes, in which a receipt comes well after
// its response.
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

// alone measures messages one at a time, minus the background work.
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

// counts drops machine-dependent figures.
func (m measurement) counts() measurement {
	m.figures = slices.DeleteFunc(m.figures, func(f single) bool {
		return f.unit != "/message" &&
			f.unit != "bytes/message"
	})
	return m
}

package dispatcher

import (
	"context"
	"errors"
	"time"

	"intumwa/messages"
)

// purgeFor bounds one round of a purge: a fortieth of the task's interval.
const purgeFor = 250 * time.Millisecond

// retentions returns how long messages, texts and numbers are kept; 0: no limit.
func (d *Dispatcher) retentions() map[messages.Purge]time.Duration {
	return map[messages.Purge]time.Duration{
		messages.PurgeBodies: d.opts.BodyRetention, messages.PurgeMessages: d.opts.MessageRetention,
		messages.PurgeNumbers: d.opts.NumberRetention,
	}
}

// purge deletes old messages, texts and numbers, each for little over purgeFor.
func (d *Dispatcher) purge(ctx context.Context) (failed error) {
	work := func(kind messages.Purge, step func() (int64, bool, error)) {
		for start, more := time.Now(), true; more && time.Since(start) < purgeFor; {
			var n int64
			var err error
			n, more, err = step()
			failed = errors.Join(failed, err)
			d.metrics.purged.WithLabelValues(string(kind)).Add(float64(n))
			more = more && err == nil
		}
	}
	for kind, life := range d.retentions() {
		if life > 0 {
			work(kind, func() (int64, bool, error) { return d.carrying.Purge(ctx, kind, life) })
		}
	}
	work(messages.PurgeBodies, func() (int64, bool, error) { return d.carrying.PurgeRuled(ctx, d.opts.BodyRetention) })
	return failed
}

// gaugePurges measures how far behind the purges are, in any process.
func (d *Dispatcher) gaugePurges(ctx context.Context) {
	for kind, life := range d.retentions() {
		var behind time.Duration
		if life > 0 {
			var err error
			if behind, err = d.carrying.PurgeBehind(ctx, kind, life); err != nil {
				continue
			}
		}
		if kind == messages.PurgeBodies {
			ruled, err := d.carrying.RuledBehind(ctx, life)
			if err != nil {
				continue
			}
			behind = max(behind, ruled)
		}
		d.metrics.purgeBehind.WithLabelValues(string(kind)).Set(behind.Seconds())
	}
}

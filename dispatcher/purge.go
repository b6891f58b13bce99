package dispatcher

import (
	"context"
	"errors"
	"time"

	"intumwa/messages"
	"intumwa/smppserver/binds"
)

// retentions returns how long messages, texts and numbers are kept; 0: no limit.
func (d *housekeeping) retentions() map[messages.Purge]time.Duration {
	return map[messages.Purge]time.Duration{
		messages.PurgeBodies: d.opts.BodyRetention, messages.PurgeMessages: d.opts.MessageRetention,
		messages.PurgeNumbers: d.opts.NumberRetention,
	}
}

// purge deletes old messages, texts and numbers, each for little over taskSlice.
func (d *housekeeping) purge(ctx context.Context) (failed error) {
	work := func(kind messages.Purge, step func() (int64, bool, error)) {
		failed = errors.Join(failed, sliced(taskSlice, func() (bool, error) {
			n, more, err := step()
			d.metrics.purged.WithLabelValues(string(kind)).Add(float64(n))
			return more, err
		}))
	}
	for kind, life := range d.retentions() {
		if life > 0 {
			work(kind, func() (int64, bool, error) { return d.carrying.Purge(ctx, kind, life) })
		}
	}
	work(messages.PurgeBodies, func() (int64, bool, error) { return d.carrying.PurgeRuled(ctx, d.opts.BodyRetention) })
	_, _, err := binds.New(d.pool).Drop(ctx, binds.Life, binds.Most) // the role smpp does so too, but may be off by now
	return errors.Join(failed, err)
}

// gaugePurges measures how far behind the purges are, in any process.
func (d *housekeeping) gaugePurges(ctx context.Context) {
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

package dispatcher

import (
	"context"
	"errors"
	"time"

	"intumwa/messages/retention"
	"intumwa/smppserver/binds"
)

// retentions returns how long messages, texts and numbers are kept; 0: no limit.
func (d *housekeeping) retentions() map[retention.Purge]time.Duration {
	return map[retention.Purge]time.Duration{
		retention.PurgeBodies: d.opts.BodyRetention, retention.PurgeMessages: d.opts.MessageRetention,
		retention.PurgeNumbers: d.opts.NumberRetention,
	}
}

// purge deletes old messages, texts and numbers, each for little over taskSlice.
func (d *housekeeping) purge(ctx context.Context) (failed error) {
	work := func(kind retention.Purge, step func() (int64, bool, error)) {
		failed = errors.Join(failed, sliced(taskSlice, func() (bool, error) {
			n, more, err := step()
			d.metrics.purged.WithLabelValues(string(kind)).Add(float64(n))
			return more, err
		}))
	}
	for kind, life := range d.retentions() {
		if life > 0 {
			work(kind, func() (int64, bool, error) { return d.carrying.retention.Purge(ctx, kind, life) })
		}
	}
	work(retention.PurgeBodies, func() (int64, bool, error) { return d.carrying.retention.PurgeRuled(ctx, d.opts.BodyRetention) })
	_, _, err := binds.New(d.pool).Drop(ctx, binds.Life, binds.Most) // the role smpp does so too, but may be off by now
	return errors.Join(failed, err)
}

// gaugePurges measures how far behind the purges are, in any process.
func (d *housekeeping) gaugePurges(ctx context.Context) {
	for kind, life := range d.retentions() {
		var behind time.Duration
		if life > 0 {
			var err error
			if behind, err = d.carrying.retention.PurgeBehind(ctx, kind, life); err != nil {
				continue
			}
		}
		if kind == retention.PurgeBodies {
			ruled, err := d.carrying.retention.RuledBehind(ctx, life)
			if err != nil {
				continue
			}
			behind = max(behind, ruled)
		}
		d.metrics.purgeBehind.WithLabelValues(string(kind)).Set(behind.Seconds())
	}
}

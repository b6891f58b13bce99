package housekeeping

import (
	"context"
	"errors"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/messages/retention"
	"intumwa/smppserver/binds"
)

// retentions returns how long messages, texts and numbers are kept; 0: no limit.
func (d *Housekeeping) retentions() map[retention.Purge]time.Duration {
	return map[retention.Purge]time.Duration{
		retention.PurgeBodies: d.Opts.BodyRetention, retention.PurgeMessages: d.Opts.MessageRetention,
		retention.PurgeNumbers: d.Opts.NumberRetention,
	}
}

// purge deletes old messages, texts and numbers, each for little over core.TaskSlice.
func (d *Housekeeping) purge(ctx context.Context) (failed error) {
	work := func(kind retention.Purge, step func() (int64, bool, error)) {
		failed = errors.Join(failed, core.Sliced(core.TaskSlice, func() (bool, error) {
			n, more, err := step()
			d.Metrics.Purged.WithLabelValues(string(kind)).Add(float64(n))
			return more, err
		}))
	}
	for kind, life := range d.retentions() {
		if life > 0 {
			work(kind, func() (int64, bool, error) { return d.Carrying.Retention.Purge(ctx, kind, life) })
		}
	}
	work(retention.PurgeBodies, func() (int64, bool, error) {
		return d.Carrying.Retention.PurgeRuled(ctx, d.Opts.BodyRetention)
	})
	_, _, err := binds.New(d.Pool).Drop(ctx, binds.Life, binds.Most) // the role smpp does so too, but may be off by now
	return errors.Join(failed, err)
}

// GaugePurges measures how far behind the purges are, in any process.
func (d *Housekeeping) GaugePurges(ctx context.Context) {
	for kind, life := range d.retentions() {
		var behind time.Duration
		if life > 0 {
			var err error
			if behind, err = d.Carrying.Retention.PurgeBehind(ctx, kind, life); err != nil {
				continue
			}
		}
		if kind == retention.PurgeBodies {
			ruled, err := d.Carrying.Retention.RuledBehind(ctx, life)
			if err != nil {
				continue
			}
			behind = max(behind, ruled)
		}
		d.Metrics.PurgeBehind.WithLabelValues(string(kind)).Set(behind.Seconds())
	}
}

package dispatcher

import (
	"context"
	"errors"
	"time"

	"intumwa/messages"
)

// purgeFor bounds one round of a purge, a fortieth of the task's interval.
const purgeFor = 250 * time.Millisecond

// retentions says how long what is purged is kept; 0: for ever.
func (d *Dispatcher) retentions() map[messages.Purge]time.Duration {
	return map[messages.Purge]time.Duration{
		messages.PurgeBodies: d.opts.BodyRetention, messages.PurgeMessages: d.opts.MessageRetention,
	}
}

// purge deletes old messages, and old texts, for half a second at most and the
// rest of a step.
func (d *Dispatcher) purge(ctx context.Context) (failed error) {
	for kind, life := range d.retentions() {
		for start, more := time.Now(), life > 0; more && time.Since(start) < purgeFor; {
			var n int64
			var err error
			n, more, err = d.carrying.Purge(ctx, kind, life)
			failed = errors.Join(failed, err)
			d.metrics.purged.WithLabelValues(string(kind)).Add(float64(n))
			more = more && err == nil
		}
	}
	return failed
}

// gaugePurges measures how far behind the purges are, whichever process does them.
func (d *Dispatcher) gaugePurges(ctx context.Context) {
	for kind, life := range d.retentions() {
		var behind time.Duration
		if life > 0 {
			var err error
			if behind, err = d.carrying.PurgeBehind(ctx, kind, life); err != nil {
				continue
			}
		}
		d.metrics.purgeBehind.WithLabelValues(string(kind)).Set(behind.Seconds())
	}
}

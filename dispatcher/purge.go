package dispatcher

import (
	"context"
	"errors"
	"time"

	"intumwa/messages"
)

// purgeFor is how long one round of a purge works: a twentieth of the time in which
// the task comes round again, so that there is no hurry about it.
const purgeFor = 250 * time.Millisecond

// retentions says how long what is purged is kept; 0: for ever.
func (d *Dispatcher) retentions() map[messages.Purge]time.Duration {
	return map[messages.Purge]time.Duration{
		messages.PurgeBodies: d.opts.BodyRetention, messages.PurgeMessages: d.opts.MessageRetention,
	}
}

// purge has old messages leave, and what they say.
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

// gaugePurges shows how late the purges are, whichever process does them.
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

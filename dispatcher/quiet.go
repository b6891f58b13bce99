package dispatcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages"
)

// quietNow returns the companies whose batches are not sent at this moment.
func (d *Dispatcher) quietNow(ctx context.Context) (quiet messages.Quiet, err error) {
	now := postgres.Now()
	quiet.Otherwise, _ = d.opts.QuietHours.End(now)
	if d.opts.QuietCompanies == nil {
		return quiet, nil
	}
	own, err := d.opts.QuietCompanies(ctx)
	if err != nil {
		return quiet, err
	}
	quiet.Until = make(map[int64]time.Time, len(own))
	for company, hours := range own {
		quiet.Until[company], _ = hours.End(now)
	}
	return quiet, nil
}

// quietPass is how far the reading of the batches' lanes has come that follows the beginning of quiet hours: each lane is
// read once, to its end. What comes to wait there afterwards (a claim that is given back, a request that was under way) is
// met by the walk over the outbox. It belongs to the tasks.
type quietPass struct {
	quiet messages.Quiet     // whose hours it is about
	left  []messages.Stretch // the lanes that are not read to their end, and where it goes on
	asked time.Duration      // the duration of the look for quiet hours: the task rests by that
}

// quietAtOnce is how long one round reads on; other tasks wait meanwhile.
const quietAtOnce = 2 * time.Second

// putOffQuiet lets queued messages of batches wait for the end of their quiet hours. Intake
// schedules the messages that come in quiet hours: this is for those that waited before.
func (d *Dispatcher) putOffQuiet(ctx context.Context) error {
	start, pass := time.Now(), &d.quiet
	quiet, err := d.quietNow(ctx)
	if pass.asked = time.Since(start); err != nil {
		return err
	}
	if quiet.Begins(pass.quiet) {
		carriers, err := d.store.OutboxCarriers(ctx)
		if err != nil {
			return err
		}
		pass.left = make([]messages.Stretch, len(carriers))
		for i, name := range carriers {
			pass.left[i] = messages.Stretch{Carrier: name, Lane: messages.LaneBatch}
		}
	}
	pass.quiet, d.walk.quiet = quiet, quiet
	for len(pass.left) > 0 && time.Since(start) < quietAtOnce {
		seen, _, err := d.store.Walk(ctx, pass.left[:1], quiet)
		if err != nil {
			return err
		}
		if err := d.quieten(ctx, seen[0].Quiet); err != nil {
			return err
		}
		if pass.left[0].After = seen[0].Last; seen[0].Rows < messages.WalkRows {
			pass.left = pass.left[1:]
		}
	}
	return nil
}

// quieten puts messages, by their ids, off to the end of their companies' quiet hours.
func (d *Dispatcher) quieten(ctx context.Context, ids []int64) error {
	var putOff int64
	var failed error
	for some := range slices.Chunk(ids, decidedAtOnce) {
		n, err := d.carrying.PutOff(ctx, d.walk.quiet, some)
		putOff, failed = putOff+n, errors.Join(failed, err)
	}
	if putOff > 0 {
		d.log.Info("queued messages of batches put off to the end of quiet hours", "messages", putOff)
	}
	return failed
}

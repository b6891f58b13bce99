package dispatcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages/outbox"
	"intumwa/queue"
)

// quietNow returns the companies whose batches are not sent now.
func (d *recovery) quietNow(ctx context.Context) (quiet outbox.Quiet, err error) {
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

// lookForQuiet updates the companies in quiet hours, and reports whether some begin. The walk over the outbox then
// restarts in the batch lanes, without rests: it passes the backlog faster than a carrier takes it. Intake schedules
// messages that arrive in quiet hours.
func (d *recovery) lookForQuiet(ctx context.Context) (begin bool, err error) {
	quiet, err := d.quietNow(ctx)
	if err != nil {
		return false, err
	}
	if begin = quiet.Begins(d.walk.quiet); begin {
		for at, l := range d.walk.lanes {
			if at.lane == queue.Batch {
				l.after, l.rush = 0, true
			}
		}
	}
	d.walk.quiet = quiet
	return begin, nil
}

// quieten postpones messages, by id, to the end of their companies' quiet hours.
func (d *recovery) quieten(ctx context.Context, ids []int64) error {
	var putOff int64
	var failed error
	for some := range slices.Chunk(ids, decidedAtOnce) {
		n, err := d.carrying.outbox.PutOff(ctx, d.walk.quiet, some)
		putOff, failed = putOff+n, errors.Join(failed, err)
	}
	if putOff > 0 {
		d.log.Info("queued messages of batches put off to the end of quiet hours", "event", "quiet_hours_begun", "messages", putOff)
	}
	return failed
}

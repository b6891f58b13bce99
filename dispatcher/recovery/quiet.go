package recovery

import (
	"context"
	"errors"
	"slices"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/messages/outbox"
)

// quietNow returns the companies whose batches are not sent now.
func (d *Recovery) quietNow(ctx context.Context) (quiet outbox.Quiet, err error) {
	now := postgres.Now()
	quiet.Otherwise, _ = d.Opts.QuietHours.End(now)
	if d.Opts.QuietCompanies == nil {
		return quiet, nil
	}
	own, err := d.Opts.QuietCompanies(ctx)
	if err != nil {
		return quiet, err
	}
	quiet.Until = make(map[int64]time.Time, len(own))
	for company, hours := range own {
		quiet.Until[company], _ = hours.End(now)
	}
	return quiet, nil
}

// LookForQuiet updates the companies in quiet hours, and reports whether they have just begun for any. The walk over
// the outbox then restarts in the batch lanes, without rests: it passes the backlog faster than a carrier takes it.
// Intake schedules messages that arrive in quiet hours.
func (d *Recovery) LookForQuiet(ctx context.Context) (begin bool, err error) {
	quiet, err := d.quietNow(ctx)
	if err != nil {
		return false, err
	}
	if begin = quiet.Begins(d.Walk.quiet); begin {
		for at, l := range d.Walk.Lanes {
			if at.Lane == queue.Batch {
				l.After, l.rush = 0, true
			}
		}
	}
	d.Walk.quiet = quiet
	return begin, nil
}

// quieten postpones messages, by id, to the end of their companies' quiet hours.
func (d *Recovery) quieten(ctx context.Context, ids []int64) error {
	var putOff int64
	var failed error
	for some := range slices.Chunk(ids, core.DecidedAtOnce) {
		n, err := d.Carrying.Outbox.PutOff(ctx, d.Walk.quiet, some)
		putOff, failed = putOff+n, errors.Join(failed, err)
	}
	if putOff > 0 {
		d.Log.Info("queued messages of batches put off to the end of quiet hours", "event", "quiet_hours_begun", "messages",
			putOff)
	}
	return failed
}

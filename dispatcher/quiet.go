package dispatcher

import (
	"context"
	"time"

	"intumwa/messages"
)

// quietNow says whose batches are not sent at this moment.
func (d *Dispatcher) quietNow(ctx context.Context) (quiet messages.Quiet, err error) {
	now := time.Now()
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

// putOffQuiet lets what batches have queued wait for the end of their quiet hours. Intake
// schedules what comes in them: this is for what waited when they began.
func (d *Dispatcher) putOffQuiet(ctx context.Context) error {
	quiet, err := d.quietNow(ctx)
	if err != nil {
		return err
	}
	putOff, err := d.store.PutOff(ctx, quiet)
	if putOff > 0 {
		d.log.Info("queued messages of batches put off to the end of quiet hours", "messages", putOff)
	}
	return err
}

package dashboard

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/webhooks"
)

const (
	tellEvery   = 30 * time.Second
	tellAtOnce  = 50 // letters of one round
	tellTimeout = 20 * time.Second
)

// tellFailing writes to the owners of endpoints that have begun to fail for good, until ctx ends.
func (d *Dashboard) tellFailing(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	trouble := false
	for {
		told, err := d.tellRound(ctx)
		if err != nil && ctx.Err() == nil && !trouble {
			d.log.Error("owners of failing webhook endpoints could not be notified; trying again", "error", err)
		}
		trouble = err != nil
		if told == tellAtOnce && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tellRound tells some owners, each exactly once, whichever process comes first: the letters are written when it is noted
// that they are told.
func (d *Dashboard) tellRound(ctx context.Context) (told int, err error) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	var failing []webhooks.Failing
	err = pgx.BeginFunc(ctx, d.rooms.Pool, func(tx pgx.Tx) (err error) {
		if failing, err = webhooks.TakeFailing(ctx, tx, tellAtOnce); err != nil {
			return err
		}
		for _, f := range failing {
			said := saidWebhook{Since: f.GivenUpAt, Off: f.DisabledReason != ""}
			if f.FailingSince != nil {
				said.Since = *f.FailingSince
			}
			if err := write(ctx, tx, letterWebhook, f.CompanyID, said); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("telling owners of failing endpoints: %w", err)
	}
	if len(failing) > 0 {
		d.Decided("")
	}
	return len(failing), nil
}

package dashboard

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/billing"
)

const (
	lowBalanceEvery = time.Minute
	tallyEvery      = 5 * time.Second
)

// runLowBalance writes to owners whose balance has fallen below their threshold, until ctx ends. Of several processes one
// writes of each crossing.
func (d *Dashboard) runLowBalance(ctx context.Context) {
	every(ctx, d.opts.LowBalanceEvery, func() {
		var warnings []billing.Warning
		err := pgx.BeginFunc(ctx, d.rooms.Pool, func(tx pgx.Tx) (err error) {
			if warnings, err = billing.TakeWarnings(ctx, tx); err != nil {
				return err
			}
			for _, w := range warnings {
				if err := write(ctx, tx, letterBalance, w.Company, saidBalance{w.Credits, w.Threshold}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			d.log.Warn("low balances could not be looked up", "error", err)
		}
		if err == nil && len(warnings) > 0 {
			d.Decided("")
		}
	})
}

// runTally counts messages by day for the charts, until ctx ends, and notes to which numbers they went, for who looks for
// one.
func (d *Dashboard) runTally(ctx context.Context) {
	all := func(do func(context.Context) (bool, error), fails string) {
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = do(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn(fails, "error", err)
			}
		}
	}
	every(ctx, tallyEvery, func() {
		all(d.counter.Tally, "messages could not be counted for the charts")
		all(d.counter.FilterNumbers, "messages could not be indexed by number; searches by number take longer")
	})
}

// every does something at once and then again and again, with a pause between, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

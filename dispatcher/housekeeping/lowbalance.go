package housekeeping

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts/letter"
	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/webhooks"
)

// tellLow warns companies whose balance has fallen below a threshold, by webhook, if their
// endpoint takes that event, and by mail. One transaction also records the warning.
func (d *Housekeeping) tellLow(ctx context.Context) error {
	var warnings []billing.Warning
	err := postgres.InTx(ctx, d.Pool, func(tx pgx.Tx) (err error) {
		if warnings, err = billing.TakeWarnings(ctx, tx); err != nil {
			return err
		}
		events := make([]webhooks.Event, len(warnings))
		for i, w := range warnings {
			events[i] = webhooks.Event{CompanyID: int64(w.Company), MessageID: w.Number, Name: webhooks.LowBalance, At: w.At,
				Data: webhooks.LowBalanceData{CompanyID: int64(w.Company), Credits: w.Credits, Threshold: w.Threshold}}
			if !w.Mail {
				continue
			}
			if err := letter.Write(ctx, tx, letter.Balance, w.Company,
				letter.BalanceValues{Credits: w.Credits, Threshold: w.Threshold}); err != nil {
				return err
			}
		}
		return d.Webhooks.Enqueue(ctx, tx, events)
	})
	if err != nil {
		return fmt.Errorf("telling of low balances: %w", err)
	}
	if len(warnings) > 0 {
		d.Metrics.LowBalances.Add(float64(len(warnings)))
	}
	return nil
}

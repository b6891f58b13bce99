package housekeeping

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/webhooks"
)

// TellFinished enqueues the event of each batch that has finished, for companies that ask for it. Without such a
// company it costs one query.
func (d *Housekeeping) TellFinished(ctx context.Context) error {
	companies, err := d.Webhooks.Asking(ctx, webhooks.BatchFinished)
	switch {
	case err != nil:
		return err
	case len(companies) > 0:
	case time.Now().Before(d.forgetAt):
		return nil
	default: // those that asked before are forgotten
		d.forgetAt = time.Now().Add(time.Minute)
	}
	err = postgres.InTx(ctx, d.Pool, func(tx pgx.Tx) error {
		finished, err := messages.FinishedBatches(ctx, tx, companies)
		if err != nil {
			return err
		}
		events := make([]webhooks.Event, len(finished))
		for i, b := range finished {
			events[i] = webhooks.Event{CompanyID: b.CompanyID, MessageID: b.Number, Name: webhooks.BatchFinished, At: b.At,
				Data: webhooks.BatchFinishedData{BatchID: b.ULID.String(), RecipientsCount: b.Recipients, Sent: b.Sent,
					Failed: b.Failed, Cancelled: b.Cancelled, LeftOut: b.LeftOut}}
		}
		return d.Webhooks.Enqueue(ctx, tx, events)
	})
	if err != nil {
		return fmt.Errorf("telling of finished batches: %w", err)
	}
	return nil
}

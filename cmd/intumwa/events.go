package main

import (
	"context"
	"time"

	"intumwa/messages/lookup"
	"intumwa/sms"
	"intumwa/webhooks"
)

// outcomesOf makes events of messages that were final before their company fetched its events.
func outcomesOf(store *lookup.Store) func(context.Context, int64, int64, int64, time.Time, int) ([]webhooks.Event,
	int64, error) {
	return func(ctx context.Context, company, after, upTo int64, since time.Time, limit int) ([]webhooks.Event, int64,
		error) {
		outcomes, last, err := store.Outcomes(ctx, company, after, upTo, since, limit)
		events := make([]webhooks.Event, len(outcomes))
		for i, o := range outcomes {
			events[i] = webhooks.Event{CompanyID: company, MessageID: o.MessageID, Name: webhooks.Failed,
				PhoneNumber: string(o.Number), At: o.At, Reference: o.Reference, CostCenter: o.CostCenter}
			if o.Status == sms.Sent {
				events[i].Name = webhooks.Sent
			}
		}
		return events, last, err
	}
}

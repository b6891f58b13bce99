package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"intumwa/acts"
	"intumwa/messages"
)

type adminRestoredCmd struct {
	Ahead int64 `help:"By how many ids; 0: 5,000 for each second since the newest message, and 10 million at least." placeholder:"N"`
}

type adminRestored struct {
	LastMessageID int64 `json:"last_message_id"`
	NextMessageID int64 `json:"next_message_id"`
}

// Run makes a restored database fit to go on with: no message_id and no webhook-id that a customer has seen comes again.
func (c *adminRestoredCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Ahead < 0 {
		return errors.New("--ahead must not be negative: ids only grow")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		var result adminRestored
		err := o.changeBusy(ctx, func(tx pgx.Tx) (entry acts.Entry, err error) {
			result.LastMessageID, result.NextMessageID, err = messages.SkipIDs(ctx, tx, c.Ahead)
			return acts.Entry{Act: "database.restored", Subject: "message ids",
				Before: map[string]any{"next": result.LastMessageID + 1}, After: map[string]any{"next": result.NextMessageID}}, err
		})
		if err != nil {
			return nil, err
		}
		return result, nil
	})
}

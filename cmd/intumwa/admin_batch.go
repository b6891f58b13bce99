package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/acts"
	"intumwa/dispatcher"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

type adminBatchCmd struct {
	Cancel adminBatchCancelCmd `cmd:"" help:"Stop what no carrier has yet of a bulk or template send, and give its credits back."`
}

type adminBatchCancelCmd struct {
	ID     string `arg:"" help:"The batch: batch_id of the send's answer." placeholder:"ULID"`
	Reason string `required:"" help:"Why; it stays in the record of acts."`
}

type adminCompanyCancelCmd struct {
	ID     int64  `required:"" help:"The company."`
	Reason string `required:"" help:"Why; it stays in the record of acts."`
}

type adminCancelled struct {
	CompanyID int64 `json:"company_id"`
	Cancelled int64 `json:"cancelled"`
	Credits   int64 `json:"credits_returned"`
	Left      int64 `json:"left"` // still queued, in a dispatcher's hand: cancel again for those that come back
}

// Run cancels a batch.
func (c *adminBatchCancelCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	id, err := ulid.ParseStrict(strings.ToUpper(c.ID))
	if err != nil {
		return fmt.Errorf("%q is no ULID", c.ID)
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		queued, err := messages.QueuedOf(ctx, o.pool, id)
		if err != nil {
			return nil, err
		}
		return o.cancel(ctx, queued, acts.Entry{Act: "batch.cancel", Subject: "batch " + id.String()}, c.Reason)
	})
}

// Run cancels all that a company has queued.
func (c *adminCompanyCancelCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		if _, err := o.accounts().CompanyByID(ctx, c.ID); err != nil {
			return nil, err
		}
		return o.cancel(ctx, messages.Queued{Company: c.ID}, acts.Entry{Act: "company.cancel", Subject: fmt.Sprintf("company %d", c.ID)}, c.Reason)
	})
}

// cancel records the act in the first transaction, and what came of it at the end.
func (o *operator) cancel(ctx context.Context, queued messages.Queued, entry acts.Entry, reason string) (any, error) {
	pool, err := postgres.Open(ctx, string(o.config.Database.Whole()), postgres.Options{MaxConns: 2, BatchUpdates: true})
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	defer pool.Close()
	entry.Actor, entry.Company = acts.Operator(), sms.CompanyID(queued.Company)
	done, failed := dispatcher.Cancel(ctx, pool, messages.New(pool), o.openWebhooks(), queued, o.config.Billing.Refund.Is, func(tx pgx.Tx) error {
		entry.After = map[string]any{"reason": reason}
		return acts.Record(ctx, tx, entry)
	})
	result := adminCancelled{CompanyID: queued.Company, Cancelled: done.Cancelled, Credits: done.Credits}
	if failed != nil && done.Cancelled == 0 {
		return nil, failed
	}
	result.Left, err = messages.New(pool).Left(ctx, queued)
	err = errors.Join(failed, err, o.change(ctx, func(pgx.Tx) (acts.Entry, error) {
		entry.Act += ".done"
		entry.After = result
		return entry, nil
	}))
	return result, err
}

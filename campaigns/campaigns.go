// Package campaigns keeps campaigns from the upload of a file until all of it is sent: it reads workbooks and CSV
// files, checks each recipient, and sends in parts.
//
// A campaign belongs to its company. While the person who sends it may not send for the company, it pauses; any other
// person who may can continue it in their own name ([Campaigns.Continue]).
package campaigns

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/billing"
	"intumwa/intake"
	"intumwa/messages"
	"intumwa/sms"
)

const (
	partsEvery  = 2 * time.Second
	partsAtOnce = 4 // campaigns that a process sends at a time
	sweepEvery  = time.Hour
)

// Deps are the packages that campaigns call.
type Deps struct {
	Pool    *pgxpool.Pool
	Holders *keys.Holders
	People  *people.Store
	Ledger  *billing.Ledger
	Intake  *intake.Intake // running
	Plan    *sms.Plan      // valid numbers
	Log     *slog.Logger
}

// Campaigns is safe for concurrent use, in any number of processes.
type Campaigns struct {
	Deps

	batches *messages.Store
}

// New returns Campaigns. Its Run sends the further parts; a process without it can begin campaigns.
func New(deps Deps) *Campaigns {
	return &Campaigns{Deps: deps, batches: messages.New(deps.Pool)}
}

// Run sends the further parts of campaigns and deletes old ones, until ctx ends. The second part of a campaign follows
// within seconds of the first, which another process may have sent.
func (c *Campaigns) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for range partsAtOnce {
		loops.Go(func() { every(ctx, partsEvery, func() { c.sendAll(ctx) }) })
	}
	loops.Go(func() {
		every(ctx, sweepEvery, func() {
			if err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
				c.Log.Warn("old campaigns could not be deleted; trying again", "event", "campaigns_not_deleted", "error", err)
			}
		})
	})
	loops.Wait()
	return nil
}

// every calls do now and after each pause until ctx ends.
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

// sendAll sends parts until none is due.
func (c *Campaigns) sendAll(ctx context.Context) {
	for found := true; found && ctx.Err() == nil; {
		var err error
		if found, err = c.SendNext(ctx); err != nil && ctx.Err() == nil {
			c.Log.Error("campaigns could not be sent further; trying again", "event", "campaigns_not_sent", "error", err)
		}
	}
}

package dashboard

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/webhooks"
)

const tallyEvery = 5 * time.Second

// runTally counts messages by day for the charts and indexes them by number for searches, until ctx ends.
func (d *Dashboard) runTally(ctx context.Context) {
	all := func(task string, do func(context.Context) (bool, error), rest int) {
		for more := true; more && ctx.Err() == nil; {
			start := time.Now()
			var err error
			if more, err = do(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("searches and charts fall behind; trying again", "event", "tally_failed", "task", task, "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(min(time.Duration(rest)*time.Since(start), tallyRestMost)):
			}
		}
	}
	runEvery(ctx, tallyEvery, func() {
		all("count messages for the charts", d.counter.Tally, tallyRest)
		all("index messages by number", d.counter.FilterNumbers, 0)
	})
}

// tallyRest is the pause after a count, in multiples of its duration: every count includes all pending messages,
// possibly millions.
const tallyRest = 50

// tallyRestMost bounds that pause: a count may also have waited for the database.
const tallyRestMost = 5 * time.Minute

// runEvery calls do now and after each pause until ctx ends.
func runEvery(ctx context.Context, pause time.Duration, do func()) {
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

const (
	failingEvery   = 30 * time.Second
	failingAtOnce  = 50 // letters of one round
	failingTimeout = 20 * time.Second
)

// runFailingWebhooks writes letters to the owners of endpoints that keep failing, until ctx ends.
func (d *Dashboard) runFailingWebhooks(ctx context.Context) {
	runEvery(ctx, failingEvery, func() {
		for written := failingAtOnce; written == failingAtOnce; {
			var err error
			if written, err = d.writeFailingLetters(ctx); err != nil && ctx.Err() == nil {
				d.log.Error("owners of failing webhook endpoints could not be notified; trying again", "event", "endpoint_owners_not_notified", "error", err)
			}
		}
	})
}

// writeFailingLetters writes letters to some owners, each exactly once: in the transaction that marks the owners as
// notified.
func (d *Dashboard) writeFailingLetters(ctx context.Context) (written int, err error) {
	ctx, cancel := context.WithTimeout(ctx, failingTimeout)
	defer cancel()
	var failing []webhooks.Failing
	err = pgx.BeginFunc(ctx, d.rooms.Pool, func(tx pgx.Tx) (err error) {
		if failing, err = webhooks.TakeFailing(ctx, tx, failingAtOnce); err != nil {
			return err
		}
		for _, f := range failing {
			if err := accounts.WriteLetter(ctx, tx, accounts.LetterWebhook, f.CompanyID, webhookLetter{Since: f.Since}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("writing letters about failing endpoints: %w", err)
	}
	if len(failing) > 0 {
		d.WakeLetters("")
	}
	return len(failing), nil
}

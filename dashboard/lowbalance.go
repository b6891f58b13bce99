package dashboard

import (
	"context"
	"time"

	"intumwa/accounts"
	"intumwa/billing"
)

const (
	lowBalanceEvery = time.Minute
	tallyEvery      = 5 * time.Second
)

// runLowBalance mails owners whose balance has fallen below their threshold, until ctx ends. Of several processes one
// mails of each crossing. What goes out stands in the mailer's memory: a mail that is lost with its process is not sent
// again, but the page shows the balance in red.
func (d *Dashboard) runLowBalance(ctx context.Context) {
	every(ctx, d.opts.LowBalanceEvery, func() {
		warnings, err := d.rooms.Ledger.TakeWarnings(ctx)
		for _, w := range warnings {
			if err := d.warn(ctx, w); err != nil && ctx.Err() == nil {
				d.log.Error("an owner is not told of a low balance", "company", int64(w.Company), "error", err)
			}
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("balances were not looked at", "error", err)
		}
	})
}

func (d *Dashboard) warn(ctx context.Context, w billing.Warning) error {
	company, err := d.rooms.Accounts.CompanyByID(ctx, int64(w.Company))
	if err != nil {
		return err
	}
	var owner accounts.User
	if owner, err = d.rooms.Accounts.UserByID(ctx, company.OwnerID); err != nil {
		return err
	}
	l, ok := d.words.ByTag(owner.Language)
	if !ok {
		l = d.words.Languages[0]
	}
	d.send(l, "low-balance", owner.Email, "mail.low.subject", l.T("mail.low.text", w.Credits, w.Threshold),
		d.link("/statement"), l.T("mail.low.settings"))
	return nil
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
		all(d.counter.Tally, "messages were not counted for the charts")
		all(d.counter.FilterNumbers, "messages were not noted by number; a search for one takes longer")
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

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/sms"
	"intumwa/webhooks"
)

const (
	tellEvery   = 30 * time.Second
	tellAtOnce  = 50 // mails of one round; the mailer takes more than these at a time
	tellTimeout = 20 * time.Second
)

// tellFailing mails the owners of endpoints that have begun to fail for good, until ctx ends.
func (d *Dashboard) tellFailing(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	trouble := false
	for {
		told, err := d.tellRound(ctx)
		if err != nil && ctx.Err() == nil && !trouble {
			d.log.Error("owners are not told of endpoints that fail; trying on", "error", err)
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

// tellRound tells some owners, each exactly once, whichever process comes first: the mails are handed over when it is
// noted that they are told.
func (d *Dashboard) tellRound(ctx context.Context) (told int, err error) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	var failing []webhooks.Failing
	owners := map[sms.CompanyID]accounts.User{}
	err = pgx.BeginFunc(ctx, d.rooms.Pool, func(tx pgx.Tx) (err error) {
		if failing, err = webhooks.TellFailing(ctx, tx, tellAtOnce); err != nil {
			return err
		}
		for _, f := range failing {
			owner, err := ownerOf(ctx, d.rooms.Accounts.In(tx), f.CompanyID)
			if errors.Is(err, accounts.ErrNotFound) { // nobody to tell; the others are told all the same
				continue
			}
			if err != nil {
				return err
			}
			owners[f.CompanyID] = owner
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("telling owners of failing endpoints: %w", err)
	}
	for _, f := range failing {
		if owner, ok := owners[f.CompanyID]; ok {
			d.mailFailing(owner, f)
		}
	}
	return len(failing), nil
}

func ownerOf(ctx context.Context, users *accounts.Accounts, id sms.CompanyID) (accounts.User, error) {
	company, err := users.CompanyByID(ctx, int64(id))
	if err != nil {
		return accounts.User{}, err
	}
	return users.UserByID(ctx, company.OwnerID)
}

func (d *Dashboard) mailFailing(to accounts.User, f webhooks.Failing) {
	l, ok := d.words.ByTag(to.Language)
	if !ok {
		l = d.words.Languages[0]
	}
	since := f.GivenUpAt
	if f.FailingSince != nil {
		since = *f.FailingSince
	}
	next := "mail.failing.next"
	if f.DisabledReason != "" {
		next = "mail.failing.off"
	}
	d.send(l, "webhook-failing", to.Email, "mail.failing.subject", l.T("mail.failing.text", l.Time(since)), l.T(next),
		d.link("/deliveries?state=failed"), l.T("mail.failing.daily"))
}

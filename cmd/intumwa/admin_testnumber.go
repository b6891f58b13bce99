package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/acts"
)

type adminTestNumberCmd struct {
	Set adminTestNumberSetCmd `cmd:"" help:"Give a user a test number without a one-time code."`
}

type adminTestNumberSetCmd struct {
	User     string `required:"" help:"Email of the user." placeholder:"EMAIL"`
	Number   string `required:"" help:"The number, in any form that a send accepts."`
	Verified bool   `help:"It may receive test messages at once."`
}

type adminTestNumber struct {
	UserID      int64  `json:"user_id"`
	PhoneNumber string `json:"phone_number"`
	Verified    bool   `json:"verified"`
}

// Run sets the number by the operator's word.
func (c *adminTestNumberSetCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		number, ok := planOf(o.config).Parse(c.Number)
		if !ok {
			return nil, fmt.Errorf("%q is not a valid Burundi (+257) number", c.Number)
		}
		var n accounts.TestNumber
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			users := o.accounts().In(tx)
			user, err := users.UserByEmail(ctx, c.User)
			if err != nil {
				return acts.Entry{}, err
			}
			entry := acts.Entry{Act: "test_number.set", Subject: fmt.Sprintf("user %d", user.ID)}
			switch before, err := users.TestNumberOf(ctx, user.ID); {
			case err == nil:
				entry.Before = map[string]any{"phone_number": before.PhoneNumber.Masked(), "verified": before.Verified}
			case !errors.Is(err, accounts.ErrNotFound):
				return acts.Entry{}, err
			}
			n, err = users.SetTestNumber(ctx, c.User, number, c.Verified)
			entry.After = map[string]any{"phone_number": n.PhoneNumber.Masked(), "verified": n.Verified}
			return entry, err
		})
		if err != nil {
			return nil, err
		}
		return adminTestNumber{UserID: n.UserID, PhoneNumber: string(n.PhoneNumber), Verified: n.Verified}, nil
	})
}

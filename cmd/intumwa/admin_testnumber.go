package main

import (
	"context"
	"fmt"
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
		n, err := o.accounts().SetTestNumber(ctx, c.User, number, c.Verified)
		if err != nil {
			return nil, err
		}
		return adminTestNumber{UserID: n.UserID, PhoneNumber: string(n.PhoneNumber), Verified: n.Verified}, nil
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"

	"intumwa/billing"
)

type adminCreditsCmd struct {
	Add adminCreditsAddCmd `cmd:"" help:"Add credits to a company, or take them."`
}

type adminCreditsAddCmd struct {
	Company int64  `required:"" help:"The company." placeholder:"ID"`
	Amount  signed `required:"" help:"How many; negative to take them. The balance never falls below zero."`
	Note    string `required:"" aliases:"reason" help:"Why; it stays in the ledger."`

	Correction bool `help:"They were not bought: the statement shows a correction."`
}

// do writes one ledger row.
func (c *adminCreditsAddCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Amount == 0 {
		return nil, errors.New("--amount must not be 0")
	}
	credits, err := o.by(nil).AddCredits(ctx, billing.Adjustment{Company: c.Company, Amount: int64(c.Amount), Note: c.Note,
		Correction: c.Correction})
	return done(balanceOf{c.Company, credits}, err)
}

// signed is a number that may be negative as a separate argument: --amount -5. Kong would take it for a flag.
type signed int64

// Decode implements kong.MapperValue.
func (s *signed) Decode(ctx *kong.DecodeContext) error {
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("expected a whole number, not %q", text)
	}
	*s = signed(n)
	return nil
}

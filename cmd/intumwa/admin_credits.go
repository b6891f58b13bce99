package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"

	"intumwa/billing"
	"intumwa/internal/audit"
	"intumwa/sms"
)

type adminCreditsCmd struct {
	Add adminCreditsAddCmd `cmd:"" help:"Add credits to a company, or take them."`
}

type adminCreditsAddCmd struct {
	Company int64  `required:"" help:"The company." placeholder:"ID"`
	Amount  signed `required:"" help:"How many; negative to take them. The balance never falls below zero."`
	Note    string `required:"" aliases:"reason" help:"Why; it stays in the ledger."`
}

// do writes one ledger row.
func (c *adminCreditsAddCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Amount == 0 {
		return nil, errors.New("--amount must not be 0")
	}
	if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	return o.changeBusy(ctx, func(tx pgx.Tx) (object, audit.Entry, error) {
		credits, err := billing.Grant(ctx, tx, c.Company, int64(c.Amount), c.Note)
		return object{{"company_id", c.Company}, {"credits", credits}},
			audit.Entry{Act: "credits.add", Subject: fmt.Sprintf("company %d", c.Company), Company: sms.CompanyID(c.Company),
				Before: map[string]any{"credits": credits - int64(c.Amount)},
				After:  map[string]any{"credits": credits, "amount": int64(c.Amount), "note": c.Note}}, err
	})
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

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"intumwa/billing"
	"intumwa/configs"
	"intumwa/sms"
)

type adminPriceCmd struct {
	Set  adminPriceSetCmd  `cmd:"" help:"Set what a credit costs from a day on. A month that is over keeps its price."`
	List adminPriceListCmd `cmd:"" help:"List prices."`
}

type adminTariffCmd struct {
	Set  adminTariffSetCmd  `cmd:"" help:"Set what a carrier takes for a segment from a day on."`
	List adminTariffListCmd `cmd:"" help:"List tariffs."`
}

// rateFlags has the flags of a rate.
type rateFlags struct {
	From day    `required:"" help:"Its first day in Burundi." placeholder:"2026-08-01"`
	BIF  string `required:"" name:"bif" help:"Francs, such as 12.5; none ends it." placeholder:"N|none"`
}

func (f *rateFlags) rate() (billing.Rate, error) {
	if f.From.month {
		return billing.Rate{}, errors.New("--from is a day, such as 2026-08-01")
	}
	rate := billing.Rate{From: f.From.at}
	if f.BIF == "none" {
		return rate, nil
	}
	price, err := billing.ParsePrice(f.BIF)
	rate.Price = &price
	return rate, err
}

// rateOf is a rate as it is printed.
func rateOf(key string, of any, r billing.Rate) object {
	return object{{key, of}, {"valid_from", r.From.Format(time.DateOnly)}, {"bif", r.Price}}
}

type adminPriceSetCmd struct {
	Company int64 `help:"The company. Without it: all that have no price of their own." placeholder:"ID"`
	rateFlags
}

func (c *adminPriceSetCmd) do(ctx context.Context, o *operator) (any, error) {
	rate, err := c.rate()
	if err != nil {
		return nil, err
	}
	if c.Company < 0 {
		return nil, errors.New("--company is a company's number")
	}
	return done(rateOf("company_id", orNull(c.Company), rate), o.by(nil).SetPrice(ctx, sms.CompanyID(c.Company), rate))
}

type adminPriceListCmd struct {
	Company int64 `help:"Only its own prices and those for all." placeholder:"ID"`
}

// do lists the prices, those for all companies first.
func (c *adminPriceListCmd) do(ctx context.Context, o *operator) (any, error) {
	all, err := billing.New(o.pool).AllPrices(ctx)
	if err != nil {
		return nil, err
	}
	list := []object{}
	for _, company := range slices.Sorted(maps.Keys(all)) {
		if c.Company != 0 && company != 0 && int64(company) != c.Company {
			continue
		}
		for _, rate := range all[company] {
			list = append(list, rateOf("company_id", orNull(int64(company)), rate))
		}
	}
	return list, nil
}

type adminTariffSetCmd struct {
	Carrier string `required:"" help:"The carrier." placeholder:"C"`
	rateFlags
}

func (c *adminTariffSetCmd) do(ctx context.Context, o *operator) (any, error) {
	rate, err := c.rate()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(o.config.Carriers, func(known configs.Carrier) bool { return known.Name == c.Carrier }) {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: warning: no carrier %q is in the configuration\n", sms.Printable(c.Carrier))
	}
	return done(rateOf("carrier", c.Carrier, rate), o.by(nil).SetTariff(ctx, c.Carrier, rate))
}

type adminTariffListCmd struct{}

// do lists the tariffs by carrier.
func (c *adminTariffListCmd) do(ctx context.Context, o *operator) (any, error) {
	all, err := billing.New(o.pool).Tariffs(ctx)
	if err != nil {
		return nil, err
	}
	list := []object{}
	for _, carrier := range slices.Sorted(maps.Keys(all)) {
		for _, rate := range all[carrier] {
			list = append(list, rateOf("carrier", carrier, rate))
		}
	}
	return list, nil
}

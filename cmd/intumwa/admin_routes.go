package main

import (
	"context"
	"errors"

	"intumwa/configs"
	"intumwa/messages/rerouting"
	"intumwa/sms"
)

type adminRoutesCmd struct {
	Diff string `help:"Another configuration: list what it routes elsewhere." type:"path" placeholder:"FILE"`
}

// do lists the ranges of numbers with their carriers, or those whose carrier another configuration changes.
func (c *adminRoutesCmd) do(ctx context.Context, o *operator) (any, error) {
	list, err := rerouting.Retirements(ctx, o.pool)
	if err != nil {
		return nil, err
	}
	next := map[string]string{}
	for _, r := range list {
		next[r.Carrier] = r.To
	}
	// tables returns where numbers go by a configuration, and where they go now that carriers are retired.
	tables := func(config *configs.Config) (by, now sms.Table, err error) {
		routes, err := routesOf(config)
		by, now = sms.Table{Plan: planOf(config), Routes: routes},
			sms.Table{Plan: planOf(config), Routes: routes.Without(next)}
		return by, now, err
	}
	by, now, err := tables(o.config)
	if err != nil {
		return nil, err
	}
	rows := []object{} // [] in JSON, not null
	if c.Diff == "" {
		for _, r := range sms.Ranges(by, now) {
			rows = append(rows, object{{"prefix", r.Prefix}, {"carrier", orNone(r.Carriers[0])},
				{"goes_to", orNone(r.Carriers[1])}, {"numbers", r.Numbers}})
		}
		return rows, nil
	}
	other, err := (&program{configPath: c.Diff, env: o.env}).checkedConfig()
	if err != nil {
		return nil, errors.Join(errors.New("--diff"), err)
	}
	_, then, err := tables(other)
	if err != nil {
		return nil, err
	}
	for _, r := range sms.Ranges(now, then) {
		if from, to := r.Carriers[0], r.Carriers[1]; from != to {
			rows = append(rows, object{{"prefix", r.Prefix}, {"from", orNone(from)}, {"to", orNone(to)}, {"numbers", r.Numbers}})
		}
	}
	return rows, nil
}

// orNone returns nil for no carrier.
func orNone(carrier string) any {
	if carrier == "" {
		return nil
	}
	return carrier
}

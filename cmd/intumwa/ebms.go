package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/configs"
)

// taxOffice returns the client of the eBMS; nil if it is not configured.
func taxOffice(c *configs.EBMS) (*ebms.Client, error) {
	if c.URL == "" {
		return nil, nil
	}
	access, err := c.Access()
	if err != nil {
		return nil, fmt.Errorf("ebms.%w", err)
	}
	return ebms.NewClient(access), nil
}

// reporter reports invoices to the tax office.
func (g *gateway) reporter(pool *pgxpool.Pool, client *ebms.Client, sales *orders.Store) *ebms.Reporter {
	return ebms.NewReporter(pool, ebms.Options{Client: client, Read: sales.ToReport, Log: g.log, Metrics: g.registry})
}

// tryEBMS logs in.
func tryEBMS(ctx context.Context, c *configs.EBMS) (string, error) {
	client, err := taxOffice(c)
	if err != nil {
		return "", err
	}
	defer client.End()
	if _, err := client.Login(ctx); err != nil {
		return "", err
	}
	return "the eBMS accepts the login", nil
}

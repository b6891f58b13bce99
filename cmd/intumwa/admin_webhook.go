package main

import (
	"context"
	"fmt"

	"intumwa/webhooks"
)

type adminWebhookCmd struct {
	Set adminWebhookSetCmd `cmd:"" help:"Set a company's webhook endpoint."`
}

type adminWebhookSetCmd struct {
	Company int64  `required:"" help:"The company." placeholder:"ID"`
	URL     string `help:"Where deliveries are posted; needed for a new endpoint."`
	Secret  string `help:"Signing secret, whsec_…; one is made when there is none."`
	Active  *bool  `help:"Whether deliveries are made." placeholder:"true|false"`
}

type adminWebhook struct {
	CompanyID int64  `json:"company_id"`
	URL       string `json:"url"`
	Secret    string `json:"secret"`
	Active    bool   `json:"active"`
}

// Run creates or changes the endpoint.
func (c *adminWebhookSetCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
			return nil, err
		}
		hooks, err := o.webhooks()
		if err != nil {
			return nil, err
		}
		e, err := hooks.SetEndpoint(ctx, c.Company, webhooks.Setting{URL: c.URL, Secret: c.Secret, Active: c.Active})
		if err != nil {
			return nil, err
		}
		return adminWebhook{CompanyID: e.CompanyID, URL: e.URL, Secret: e.Secret, Active: e.Active}, nil
	})
}

// webhooks is the room without its worker.
func (o *operator) webhooks() (*webhooks.Webhooks, error) {
	key, err := o.config.Webhooks.Key()
	if err != nil {
		return nil, fmt.Errorf("webhooks.encryption_key: %w", err)
	}
	return webhooks.New(o.pool, webhooks.Options{AllowPrivate: o.config.Webhooks.AllowPrivate, SecretKey: key}), nil
}

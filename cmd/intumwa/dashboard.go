package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/dashboard"
	"intumwa/dashboard/web"
	"intumwa/internal/mail"
	"intumwa/internal/throttle"
	"intumwa/sms"
)

// serveDashboard starts the role dashboard. It adds the limits to deps.
func (g *gateway) serveDashboard(ctx context.Context, life *life, rdb redis.UniversalClient, deps dashboard.Deps,
	plan *sms.Plan) error {
	c := g.config
	within := func(window time.Duration, name string, limit int) *throttle.Throttle {
		return throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix + ":tries:" + name, Limit: limit, Window: window,
			Log: g.log})
	}
	tries := func(name string, limit int) *throttle.Throttle { return within(triesWindow, name, limit) }
	deps.Tries = dashboard.Tries{Account: tries("account", triesOfAccount), Address: tries("address", triesOfAddress),
		Codes: within(codesWindow, "codes", codesOfUser), Mails: within(mailsWindow, "mails", mailsOfAddress),
		SignUps: within(codesWindow, "sign-ups", signUpsOfAddress), Warnings: within(codesWindow, "warnings", 1),
		Tests: tries("webhook-tests", testsOfCompany), Changes: tries("changes", changesOfUser),
		Papers: within(codesWindow, "papers", papersOfCompany)}
	d, err := dashboard.New(deps,
		dashboard.Options{PublicURL: publicURL(&c.Dashboard), DocsURL: c.Dashboard.DocsURL,
			CreditsNotice: c.Dashboard.CreditsNotice, Operator: operatorOf(c), APIURL: apiURL(c),
			TrustedProxies: c.API.TrustedProxies,
			Plan:           plan, TestSender: c.TestSender, TestQuota: c.Accounts.TestQuota,
			Refund:        refunds[c.Billing.Refund],
			SecureCookies: !c.Dashboard.Local(), AdminTOTP: c.Dashboard.AdminTOTP, SMPP: c.SMPPServer.Listen != "",
			AtOnce: int(deps.Pool.Config().MaxConns+1) / 2, // the other half is for tokens, tasks and heartbeats
			Log:    g.log, Metrics: g.registry})
	if err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	life.run("dashboard", d.Run)
	limits := newBounds("dashboard", c.API.TrustedProxies, g.log, g.registry)
	pages := newServer(d)
	pages.WriteTimeout = time.Minute // pages include downloads
	return life.listen(ctx, "dashboard", c.Dashboard.Listen, limits, pages)
}

// newMailer makes the mailer of letters and of the dashboard's own mails.
func (g *gateway) newMailer() (*mail.Mailer, error) {
	c := &g.config.Mail
	server, err := c.Server()
	if err != nil {
		return nil, fmt.Errorf("mail.url: %w", err)
	}
	mailer, err := mail.New(mail.Options{Server: server.Address, From: c.From, Username: server.Username,
		Password: server.Password, TLS: server.TLS, Log: g.log, Metrics: g.registry})
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	return mailer, nil
}

// operatorOf is the operator as pages print it.
func operatorOf(c *configs.Config) web.Operator {
	o := &c.Operator
	return web.Operator{Name: o.Name, NIF: o.NIF, TradeRegister: o.TradeRegister, Address: o.Address, Phone: o.Phone,
		Email: o.Email, BankAccounts: o.BankAccounts, MobileMoney: o.MobileMoney}
}

func publicURL(c *configs.Dashboard) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}
	return "http://" + c.Listen
}

// apiURL is {base_url} of the API in examples: beside the API reference, if its URL is
// configured.
func apiURL(c *configs.Config) string {
	if base, ok := strings.CutSuffix(strings.TrimRight(c.Dashboard.DocsURL, "/"), "/docs"); ok {
		return base + "/v1"
	}
	return "http://" + c.API.Listen + "/v1"
}

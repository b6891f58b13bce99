package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/dashboard"
	"intumwa/mail"
	"intumwa/notices"
	"intumwa/sms"
	"intumwa/throttle"
)

// What a stranger may try at the dashboard in triesWindow: at one account, and from one network address, behind which
// there may be many people.
const (
	triesWindow    = 15 * time.Minute
	triesOfAccount = 10
	triesOfAddress = 100
	testsOfCompany = 30 // test events to one company's endpoint
)

// serveDashboard starts the role dashboard with its rooms, to which it adds the mails and the bounds of tries.
func (g *gateway) serveDashboard(ctx context.Context, life *life, rdb redis.UniversalClient, rooms dashboard.Rooms, plan *sms.Plan, heard *notices.Listener) error {
	c := g.config
	mailer, err := mail.New(mail.Options{Server: string(c.Mail.Server), From: c.Mail.From, Username: c.Mail.Username,
		Password: string(c.Mail.Password), TLS: string(c.Mail.TLS.Is), Log: g.log, Metrics: g.registry})
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	tries := func(name string, limit int) *throttle.Throttle {
		return throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix + ":tries:" + name, Limit: limit, Window: triesWindow, Log: g.log})
	}
	rooms.Mailer = mailer
	rooms.Tries = dashboard.Tries{Account: tries("account", triesOfAccount), Address: tries("address", triesOfAddress),
		Tests: tries("webhook-tests", testsOfCompany)}
	d, err := dashboard.New(rooms,
		dashboard.Options{PublicURL: publicURL(&c.Dashboard), DocsURL: c.Dashboard.DocsURL, APIURL: apiURL(c), TrustedProxies: c.Dashboard.TrustedProxies,
			Plan: plan, TestSender: c.TestSender, TestQuota: c.Accounts.TestQuota, Replacements: c.Accounts.TestNumberReplacements,
			SecureCookies: c.Dashboard.SecureCookies, SessionIdle: c.Dashboard.SessionIdle, AdminTOTP: c.Dashboard.AdminTOTP,
			Log: g.log, Metrics: g.registry})
	if err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	heard.On(notices.Account, d.WakeLetters)
	heard.On(notices.Company, d.WakeLetters)
	life.run("mail", mailer.Run)
	life.run("dashboard", d.Run)
	door := newDoor("dashboard", c.API.MaxConnections, c.API.MaxConnectionsPerAddress, c.Dashboard.TrustedProxies, g.log, g.registry)
	server := &http.Server{Handler: d,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	server.RegisterOnShutdown(d.EndStreams)
	return life.listen(ctx, "dashboard", c.Dashboard.Listen, door, server)
}

// apiURL is {base_url} of the API as examples show it: beside its reference, where that is known.
func apiURL(c *configs.Config) string {
	if base, ok := strings.CutSuffix(strings.TrimRight(c.Dashboard.DocsURL, "/"), "/docs"); ok {
		return base + "/v1"
	}
	return "http://" + c.API.Listen + "/v1"
}

func publicURL(c *configs.Dashboard) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}
	return "http://" + c.Listen
}

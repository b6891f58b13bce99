package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/audit"
	"intumwa/sms"
	"intumwa/webhooks"
)

type adminWebhookCmd struct {
	Set        adminWebhookSetCmd  `cmd:"" help:"Set a company's webhook endpoint."`
	List       adminWebhookListCmd `cmd:"" help:"List webhook endpoints, without their secrets."`
	Rotate     adminRotateCmd      `cmd:"" help:"Give an endpoint a new signing secret; the one of before stays valid for a day."`
	Deliveries adminDeliveriesCmd  `cmd:"" help:"List a company's deliveries."`
	Resend     adminResendCmd      `cmd:"" help:"Send one delivery again."`
	Recover    adminRecoverCmd     `cmd:"" help:"Send everything again that was given up since a time."`
}

type adminWebhookSetCmd struct {
	Company     int64   `required:"" help:"The company." placeholder:"ID"`
	URL         string  `help:"Where deliveries are posted; needed for a new endpoint."`
	Secret      *string `help:"Signing secret, whsec_…; one is made when there is none. Other users of the machine can read it here." xor:"secret"`
	SecretStdin bool    `help:"Read the signing secret from standard input." xor:"secret"`
	SecretFile  *string `help:"Read the signing secret from a file." placeholder:"FILE" xor:"secret"`
	Active      *bool   `help:"Whether deliveries are made." placeholder:"true|false"`
	Events      *string `help:"Events that it gets beside sms.sent and sms.failed, separated by commas: sms.received, balance.low; empty for none." placeholder:"LIST"`
}

// adminWebhook has no secret: that is shown once, by the command that made or set it.
type adminWebhook struct {
	CompanyID int64    `json:"company_id"`
	URL       string   `json:"url"`
	Active    bool     `json:"active"`
	Events    []string `json:"events,omitempty"`
}

type adminWebhookSecret struct {
	CompanyID int64    `json:"company_id"`
	URL       string   `json:"url"`
	Secret    string   `json:"secret"`
	Active    bool     `json:"active"`
	Events    []string `json:"events,omitempty"`
}

// do creates or changes the endpoint.
func (c *adminWebhookSetCmd) do(ctx context.Context, o *operator) (any, error) {
	secret, err := c.secret(o.program)
	if err != nil {
		return nil, err
	}
	if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	hooks, err := o.webhooks()
	if err != nil {
		return nil, err
	}
	e, err := o.setEndpoint(ctx, hooks, c.Company, webhooks.Setting{URL: c.URL, Secret: secret, Active: c.Active, Events: c.events()})
	if err != nil {
		return nil, err
	}
	if secret != "" || e.Made {
		return adminWebhookSecret{CompanyID: e.CompanyID, URL: e.URL, Secret: e.Secret, Active: e.Active, Events: e.Events}, nil
	}
	return adminWebhook{CompanyID: e.CompanyID, URL: e.URL, Active: e.Active, Events: e.Events}, nil
}

// events are those that were given, nil when none were.
func (c *adminWebhookSetCmd) events() *[]string {
	if c.Events == nil {
		return nil
	}
	asked := []string{}
	for _, name := range strings.Split(*c.Events, ",") {
		if name = strings.TrimSpace(name); name != "" {
			asked = append(asked, name)
		}
	}
	return &asked
}

// secret is the secret that was given, "" when none was.
func (c *adminWebhookSetCmd) secret(p *program) (secret string, err error) {
	switch {
	case c.Secret != nil:
		_, _ = fmt.Fprintln(p.stderr, "intumwa: warning: --secret shows the secret to every user of this machine and to the shell's history; "+
			"--secret-stdin and --secret-file do not")
		secret = *c.Secret
	case c.SecretStdin:
		secret, err = readSecret(p.stdin)
	case c.SecretFile != nil:
		file, openErr := os.Open(*c.SecretFile)
		if openErr != nil {
			return "", fmt.Errorf("reading the secret: %w", openErr)
		}
		defer func() { _ = file.Close() }() // was only read
		secret, err = readSecret(file)
	default:
		return "", nil
	}
	if err == nil && secret == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("reading the secret: %w", err)
	}
	return secret, nil
}

// maxSecret bounds what is read as a secret, in octets. The longest that is valid is 94 long.
const maxSecret = 1024

// readSecret reads a secret to the end, and takes one newline from it.
func readSecret(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSecret+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSecret {
		return "", fmt.Errorf("it is longer than %d octets", maxSecret)
	}
	if line, ended := bytes.CutSuffix(text, []byte("\n")); ended {
		text = bytes.TrimSuffix(line, []byte("\r"))
	}
	return string(text), nil
}

// webhooks is the room without its worker.
func (o *operator) webhooks() (*webhooks.Webhooks, error) {
	if missing := o.config.Missing("encryption_key"); missing != nil {
		return nil, missing // without it a secret would be stored in plain
	}
	key, err := o.config.Key()
	if err != nil {
		return nil, fmt.Errorf("encryption_key: %w", err)
	}
	return webhooks.New(o.pool, webhooks.Options{AllowPrivate: o.config.Webhooks.AllowPrivate, SecretKey: key}), nil
}

type adminWebhookListCmd struct{ stretch }

// do lists the endpoints, without their secrets; --after is a company's id.
func (c *adminWebhookListCmd) do(ctx context.Context, o *operator) (any, error) {
	hooks := o.openWebhooks()
	return collect(c.stretch, func(after int64, limit int) ([]webhooks.Endpoint, error) { return hooks.Endpoints(ctx, after, limit) },
		func(e webhooks.Endpoint) int64 { return e.CompanyID }, endpointOf)
}

type adminDeliveriesCmd struct {
	Company int64   `required:"" help:"The company." placeholder:"ID"`
	State   string  `help:"pending, delivered or failed: given up." enum:",pending,delivered,failed" default:""`
	Since   instant `help:"Only of events of then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
	Limit   int     `help:"How many at most, the latest messages first." default:"1000"`
}

type adminDelivery struct {
	ID         int64      `json:"id"`
	MessageID  *int64     `json:"message_id"` // null: it is not about a message of the company
	InboundID  *int64     `json:"inbound_id,omitempty"`
	Event      string     `json:"event"`
	State      string     `json:"state"`
	Attempts   int        `json:"attempts"`
	WebhookID  string     `json:"webhook_id"`
	CreatedAt  time.Time  `json:"created_at"`
	NextAt     *time.Time `json:"next_at"`
	FinishedAt *time.Time `json:"finished_at"`
	LastResult string     `json:"last_result"`
}

// do lists a company's deliveries.
func (c *adminDeliveriesCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Limit < 1 {
		return nil, errors.New("--limit must be at least 1")
	}
	if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	hooks := o.openWebhooks()
	list, since := []adminDelivery{}, c.Since.moment()
	for before := int64(0); len(list) < c.Limit; {
		page, next, err := hooks.Deliveries(ctx, sms.CompanyID(c.Company),
			webhooks.Filter{State: c.State, Since: since}, before, min(listPage, c.Limit-len(list)))
		if err != nil {
			return nil, err
		}
		for i := range page {
			d := &page[i]
			shown := adminDelivery{ID: d.ID, MessageID: numberOrNull(d.MessageID), InboundID: numberOrNull(d.InboundID), Event: d.Event, State: d.State, Attempts: len(d.Attempts),
				WebhookID: d.WebhookID, CreatedAt: d.CreatedAt, NextAt: d.NextAt, FinishedAt: d.FinishedAt}
			if n := len(d.Attempts); n > 0 {
				shown.LastResult = d.Attempts[n-1].Result
			}
			list = append(list, shown)
		}
		if next == 0 {
			break
		}
		before = next
	}
	return list, nil
}

func numberOrNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

type adminResendCmd struct {
	ID int64 `required:"" help:"The delivery: id of 'admin webhook deliveries'." placeholder:"ID"`
}

type adminResent struct {
	Resent int64 `json:"resent"`
}

// do sends one delivery again. Whichever process serves webhooks makes the call.
func (c *adminResendCmd) do(ctx context.Context, o *operator) (any, error) {
	hooks := o.openWebhooks()
	err := o.changeBusy(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		within := hooks.In(tx)
		company, err := within.CompanyOf(ctx, c.ID)
		if err != nil {
			return audit.Entry{}, err
		}
		before, err := within.Delivery(ctx, company, c.ID)
		if err != nil {
			return audit.Entry{}, err
		}
		after, err := within.Resend(ctx, company, c.ID)
		return audit.Entry{Act: "webhook.resend", Subject: "delivery " + after.WebhookID, Company: company,
			Before: map[string]any{"state": before.State}, After: map[string]any{"state": after.State}}, err
	})
	return answer(adminResent{Resent: 1}, err)
}

type adminRecoverCmd struct {
	Company int64   `required:"" help:"The company." placeholder:"ID"`
	Since   instant `required:"" help:"Of events of then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
}

type adminRecovery struct {
	Resent    int64     `json:"resent"`
	CompanyID int64     `json:"company_id"`
	Since     time.Time `json:"since"`
}

// do makes everything due again that was given up since a time.
func (c *adminRecoverCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	company, done := sms.CompanyID(c.Company), adminRecovery{CompanyID: c.Company, Since: c.Since.moment()}
	for {
		var resent int64
		err := o.changeBusy(ctx, func(tx pgx.Tx) (audit.Entry, error) {
			var err error
			resent, err = o.openWebhooks().In(tx).Recover(ctx, company, done.Since)
			return audit.Entry{Act: "webhook.recover", Subject: "webhook of company " + company.String(), Company: company,
				After: map[string]any{"since": done.Since, "found": resent}}, err
		})
		if done.Resent += resent; err != nil || resent < webhooks.RecoverMost {
			return done, err
		}
	}
}

type adminRotateCmd struct {
	Company int64 `required:"" help:"The company." placeholder:"ID"`
	End     bool  `help:"End a rotation now: the secret of before signs no more."`
}

type adminRotation struct {
	CompanyID     int64      `json:"company_id"`
	Secret        string     `json:"secret,omitempty"`
	PreviousUntil *time.Time `json:"previous_until"`
}

// do gives an endpoint a new secret, which is shown this once; the one of
// before signs beside it for a day.
func (c *adminRotateCmd) do(ctx context.Context, o *operator) (any, error) {
	hooks, err := o.webhooks()
	if err != nil {
		return nil, err
	}
	company := sms.CompanyID(c.Company)
	result := adminRotation{CompanyID: c.Company}
	err = o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		rotate, act := hooks.In(tx).Rotate, "webhook.rotate"
		if c.End {
			rotate, act = hooks.In(tx).EndRotation, "webhook.rotation_end"
		}
		e, err := rotate(ctx, company)
		if !c.End {
			result.Secret = e.Secret
		}
		result.PreviousUntil = e.PreviousUntil
		return audit.Entry{Act: act, Subject: "webhook of company " + company.String(), Company: company,
			After: map[string]any{"previous_until": e.PreviousUntil}}, err
	})
	return answer(result, err)
}

// setEndpoint sets an endpoint and records it.
func (o *operator) setEndpoint(ctx context.Context, hooks *webhooks.Webhooks, company int64, s webhooks.Setting) (e webhooks.Endpoint, err error) {
	state := func(e webhooks.Endpoint) map[string]any {
		return map[string]any{"url": webhooks.RecordedURL(e.URL), "active": e.Active, "events": e.Events}
	}
	err = o.change(ctx, func(tx pgx.Tx) (audit.Entry, error) {
		within := hooks.In(tx)
		entry := audit.Entry{Act: "webhook.set", Subject: fmt.Sprintf("webhook of company %d", company), Company: sms.CompanyID(company)}
		before, err := within.Endpoints(ctx, company-1, 1)
		if err != nil {
			return entry, err
		}
		if len(before) == 1 && before[0].CompanyID == company {
			entry.Before = state(before[0])
		}
		e, err = within.SetEndpoint(ctx, company, s)
		after := state(e)
		after["secret_given"] = s.Secret != ""
		entry.After = after
		return entry, err
	})
	return e, err
}

// openWebhooks is the room for what opens no secret, and so needs no key.
func (o *operator) openWebhooks() *webhooks.Webhooks {
	return webhooks.New(o.pool, webhooks.Options{})
}

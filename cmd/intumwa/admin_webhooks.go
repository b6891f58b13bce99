package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
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
	return o.change(ctx, func(tx pgx.Tx) (object, audit.Entry, error) {
		within := hooks.In(tx)
		entry := audit.Entry{Act: "webhook.set", Subject: fmt.Sprintf("webhook of company %d", c.Company), Company: sms.CompanyID(c.Company)}
		state := func(e webhooks.Endpoint) map[string]any {
			return map[string]any{"url": webhooks.RecordedURL(e.URL), "active": e.Active, "events": e.Events}
		}
		before, err := within.Endpoints(ctx, c.Company-1, 1)
		if err != nil {
			return nil, entry, err
		}
		if len(before) == 1 && before[0].CompanyID == c.Company {
			entry.Before = state(before[0])
		}
		e, err := within.SetEndpoint(ctx, c.Company, webhooks.Setting{URL: c.URL, Secret: secret, Active: c.Active, Events: c.events()})
		if err == nil && (len(before) == 0 || before[0].CompanyID != c.Company || before[0].URL != e.URL) {
			err = accounts.WriteLetter(ctx, tx, accounts.LetterEndpoint, sms.CompanyID(c.Company), accounts.EndpointLetter{URL: webhooks.RecordedURL(e.URL)})
		}
		after := state(e)
		after["secret_given"] = secret != ""
		entry.After = after
		shown := "" // only the command that made or set it shows it
		if secret != "" || e.Made {
			shown = e.Secret
		}
		return object{{"company_id", e.CompanyID}, {"url", e.URL}, {"secret", optional{shown}}, {"active", e.Active}, {"events", optional{e.Events}}}, entry, err
	})
}

// events are those of the flag, nil without it.
func (c *adminWebhookSetCmd) events() *[]string {
	if c.Events == nil {
		return nil
	}
	names := []string{}
	for _, name := range strings.Split(*c.Events, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return &names
}

// secret is the secret of the flag, "" without it.
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
		defer func() { _ = file.Close() }() // read only
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

// maxSecret bounds the input in bytes. The longest valid secret has 94.
const maxSecret = 1024

// readSecret reads to the end and drops one trailing newline.
func readSecret(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSecret+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSecret {
		return "", fmt.Errorf("it is longer than %d bytes", maxSecret)
	}
	if line, ended := bytes.CutSuffix(text, []byte("\n")); ended {
		text = bytes.TrimSuffix(line, []byte("\r"))
	}
	return string(text), nil
}

// webhooks opens the package without its worker.
func (o *operator) webhooks() (*webhooks.Webhooks, error) {
	if missing := o.config.Missing("encryption_key"); missing != nil {
		return nil, missing // otherwise the secret would be stored in plain text
	}
	key, err := o.config.Key()
	if err != nil {
		return nil, fmt.Errorf("encryption_key: %w", err)
	}
	return webhooks.New(o.pool, webhooks.Options{AllowPrivate: o.config.Webhooks.AllowPrivate, SecretKey: key}), nil
}

type adminWebhookListCmd struct{ listFlags }

// do lists endpoints without their secrets. --after takes a company id.
func (c *adminWebhookListCmd) do(ctx context.Context, o *operator) (any, error) {
	return collectByID(ctx, c.listFlags, o.openWebhooks().Endpoints, endpointOf)
}

type adminDeliveriesCmd struct {
	Company int64   `required:"" help:"The company." placeholder:"ID"`
	State   string  `help:"pending, delivered or failed: given up." enum:",pending,delivered,failed" default:""`
	Since   instant `help:"Only of events of then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
	Limit   int     `help:"How many at most, the latest messages first." default:"1000"`
}

func (c *adminDeliveriesCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	filter := webhooks.Filter{State: c.State, Since: c.Since.moment()}
	return collect(0, c.Limit, func(before int64, limit int) ([]webhooks.Delivery, int64, error) {
		return o.openWebhooks().Deliveries(ctx, sms.CompanyID(c.Company), filter, before, limit)
	}, func(d webhooks.Delivery) object {
		last := ""
		if n := len(d.Attempts); n > 0 {
			last = d.Attempts[n-1].Result
		}
		return object{{"id", d.ID},
			{"message_id", orNull(d.MessageID)}, // null: not about a message
			{"inbound_id", optional{orNull(d.InboundID)}}, {"event", d.Event}, {"state", d.State}, {"attempts", len(d.Attempts)},
			{"webhook_id", d.WebhookID}, {"created_at", d.CreatedAt}, {"next_at", d.NextAt}, {"finished_at", d.FinishedAt}, {"last_result", last}}
	})
}

type adminResendCmd struct {
	ID int64 `required:"" help:"The delivery: id of 'admin webhook deliveries'." placeholder:"ID"`
}

// do makes one delivery due again. A process with the role webhooks makes the call.
func (c *adminResendCmd) do(ctx context.Context, o *operator) (any, error) {
	hooks := o.openWebhooks()
	return o.changeBusy(ctx, func(tx pgx.Tx) (object, audit.Entry, error) {
		within := hooks.In(tx)
		company, err := within.CompanyOf(ctx, c.ID)
		if err != nil {
			return nil, audit.Entry{}, err
		}
		before, err := within.Delivery(ctx, company, c.ID)
		if err != nil {
			return nil, audit.Entry{}, err
		}
		after, err := within.Resend(ctx, company, c.ID)
		return object{{"resent", 1}}, audit.Entry{Act: "webhook.resend", Subject: "delivery " + after.WebhookID, Company: company,
			Before: map[string]any{"state": before.State}, After: map[string]any{"state": after.State}}, err
	})
}

type adminRecoverCmd struct {
	Company int64   `required:"" help:"The company." placeholder:"ID"`
	Since   instant `required:"" help:"Of events of then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
}

// do makes due again all deliveries that were given up since a time.
func (c *adminRecoverCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	company, since, all := sms.CompanyID(c.Company), c.Since.moment(), int64(0)
	for {
		var resent int64
		_, err := o.changeBusy(ctx, func(tx pgx.Tx) (_ object, entry audit.Entry, err error) {
			resent, err = o.openWebhooks().In(tx).Recover(ctx, company, since)
			return nil, audit.Entry{Act: "webhook.recover", Subject: "webhook of company " + company.String(), Company: company,
				After: map[string]any{"since": since, "found": resent}}, err
		})
		if all += resent; err != nil || resent < webhooks.RecoverMost {
			return object{{"resent", all}, {"company_id", c.Company}, {"since", since}}, err
		}
	}
}

type adminRotateCmd struct {
	Company int64 `required:"" help:"The company." placeholder:"ID"`
	End     bool  `help:"End a rotation now: the secret of before signs no more."`
}

// do replaces an endpoint's secret and shows the new one once. The old secret also signs
// for a day.
func (c *adminRotateCmd) do(ctx context.Context, o *operator) (any, error) {
	hooks, err := o.webhooks()
	if err != nil {
		return nil, err
	}
	company := sms.CompanyID(c.Company)
	return o.change(ctx, func(tx pgx.Tx) (object, audit.Entry, error) {
		rotate, act := hooks.In(tx).Rotate, "webhook.rotate"
		if c.End {
			rotate, act = hooks.In(tx).EndRotation, "webhook.rotation_end"
		}
		e, err := rotate(ctx, company)
		secret := e.Secret
		if c.End {
			secret = ""
		}
		return object{{"company_id", c.Company}, {"secret", optional{secret}}, {"previous_until", e.PreviousUntil}},
			audit.Entry{Act: act, Subject: "webhook of company " + company.String(), Company: company,
				After: map[string]any{"previous_until": e.PreviousUntil}}, err
	})
}

// openWebhooks is for calls that read no secret and need no key.
func (o *operator) openWebhooks() *webhooks.Webhooks {
	return webhooks.New(o.pool, webhooks.Options{})
}

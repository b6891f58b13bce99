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

	"intumwa/operations"
	"intumwa/sms"
	"intumwa/webhooks"
)

type adminWebhookCmd struct {
	Set        adminWebhookSetCmd  `cmd:"" help:"Set a company's webhook endpoint."`
	List       adminWebhookListCmd `cmd:"" help:"List webhook endpoints, without their secrets."`
	Pull       adminPullCmd        `cmd:"" help:"Show who fetches a company's events, or set which."`
	Rotate     adminRotateCmd      `cmd:"" help:"Give an endpoint a new signing secret; the old one works for a day."`
	Deliveries adminDeliveriesCmd  `cmd:"" help:"List a company's deliveries."`
	Resend     adminResendCmd      `cmd:"" help:"Send one delivery again."`
	Recover    adminRecoverCmd     `cmd:"" help:"Send everything again that was given up since a time."`
}

type adminWebhookSetCmd struct {
	Company     int64   `required:"" help:"The company." placeholder:"ID"`
	URL         string  `help:"Where deliveries are posted; needed for a new endpoint."`
	Secret      *string `help:"Signing secret, whsec_…; other users of the machine can read it." xor:"secret"`
	SecretStdin bool    `help:"Read the signing secret from standard input." xor:"secret"`
	SecretFile  *string `help:"Read the signing secret from a file." placeholder:"FILE" xor:"secret"`
	Active      *bool   `help:"Whether deliveries are made." placeholder:"true|false"`
	Events      *string `help:"Events that it gets beside sms.sent and sms.failed, separated by commas: sms.received, balance.low, batch.finished, verification.finished; empty for none." placeholder:"LIST"`
}

// do creates or changes the endpoint.
func (c *adminWebhookSetCmd) do(ctx context.Context, o *operator) (any, error) {
	secret, err := c.secret(o.program)
	if err != nil {
		return nil, err
	}
	if _, err := o.companies().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	actor, err := o.withSecrets()
	if err != nil {
		return nil, err
	}
	e, err := actor.SetEndpoint(ctx, sms.CompanyID(c.Company),
		webhooks.Setting{URL: c.URL, Secret: secret, Active: c.Active, Events: c.events()}, nil)
	if secret == "" && !e.Made {
		e.Secret = "" // only the command that made or set it shows it
	}
	return done(endpointSet{e.CompanyID, e.URL, e.Secret, e.Active, e.Events}, err)
}

type endpointSet struct {
	Company int64    `json:"company_id"`
	URL     string   `json:"url"`
	Secret  string   `json:"secret,omitempty"`
	Active  bool     `json:"active"`
	Events  []string `json:"events,omitempty"`
}

// events are those of the flag, nil without it.
func (c *adminWebhookSetCmd) events() *[]string {
	if c.Events == nil {
		return nil
	}
	names := listed(*c.Events)
	return &names
}

// listed are the names of a list with commas.
func listed(list string) []string {
	names := []string{}
	for _, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

type adminPullCmd struct {
	Company int64   `required:"" help:"The company." placeholder:"ID"`
	Events  *string `help:"Events that its programs fetch beside those that everybody's do, separated by commas: batch.finished, verification.finished; empty for none." placeholder:"LIST"`
}

// do sets the events if there is a list, and shows the state of GET /v1/events.
func (c *adminPullCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.companies().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	company, hooks := sms.CompanyID(c.Company), o.openWebhooks()
	if c.Events != nil {
		if _, err := o.by(nil).SetPulled(ctx, company, listed(*c.Events)); err != nil {
			return nil, err
		}
	}
	p, err := hooks.PullingOf(ctx, company)
	return done(object{{"company_id", c.Company}, {"since", p.Since}, {"pulled_at", p.PulledAt}, {"events", p.Events},
		{"kept", p.Kept}}, err)
}

// secret is the secret of the flag, "" without it.
func (c *adminWebhookSetCmd) secret(p *program) (secret string, err error) {
	switch {
	case c.Secret != nil:
		_, _ = fmt.Fprintln(p.stderr, "intumwa: warning: --secret shows the secret to every user of this machine and to the "+
			"shell's history; "+
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

// withSecrets is by for acts with secrets of endpoints.
func (o *operator) withSecrets() (operations.Actor, error) {
	if missing := o.config.Missing("encryption_key"); missing != nil {
		return operations.Actor{}, missing // otherwise the secret would be stored in plain text
	}
	key, err := o.config.Key()
	if err != nil {
		return operations.Actor{}, fmt.Errorf("encryption_key: %w", err)
	}
	actor := o.by(nil)
	actor.Webhooks = webhooks.New(o.pool, webhooks.Options{AllowPrivate: o.config.Webhooks.AllowPrivate, SecretKey: key})
	return actor, nil
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
	if _, err := o.companies().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	filter := webhooks.Filter{State: c.State, Since: c.Since.moment()}
	return collect(0, c.Limit, func(before int64, limit int) ([]webhooks.Delivery, int64, error) {
		return o.openWebhooks().Deliveries(ctx, sms.CompanyID(c.Company), filter, before, limit)
	}, func(d webhooks.Delivery) any {
		last := ""
		if n := len(d.Attempts); n > 0 {
			last = d.Attempts[n-1].Result
		}
		return object{{"id", d.ID},
			{"message_id", orNull(d.MessageID)}, // null: not about a message
			{"inbound_id", optional{orNull(d.InboundID)}}, {"event", d.Event}, {"state", d.State}, {"attempts", len(d.Attempts)},
			{"webhook_id", d.WebhookID}, {"created_at", d.CreatedAt}, {"next_at", d.NextAt}, {"finished_at", d.FinishedAt},
			{"last_result", last}}
	})
}

type adminResendCmd struct {
	ID int64 `required:"" help:"The delivery: id of 'admin webhook deliveries'." placeholder:"ID"`
}

// do makes one delivery due again. A process with the role webhooks makes the call.
func (c *adminResendCmd) do(ctx context.Context, o *operator) (any, error) {
	return done(resent{Resent: 1}, o.by(nil).Resend(ctx, 0, c.ID))
}

// resent is how many deliveries are sent again.
type resent struct {
	Resent  int64      `json:"resent"`
	Company int64      `json:"company_id,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
}

type adminRecoverCmd struct {
	Company int64   `required:"" help:"The company." placeholder:"ID"`
	Since   instant `required:"" help:"Of events of then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
}

// do makes due again all deliveries that were given up since a time.
func (c *adminRecoverCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.companies().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	since := c.Since.moment()
	n, _, err := o.by(nil).Recover(ctx, sms.CompanyID(c.Company), since)
	return resent{n, c.Company, &since}, err
}

type adminRotateCmd struct {
	Company int64 `required:"" help:"The company." placeholder:"ID"`
	End     bool  `help:"End a rotation now: the secret of before signs no more."`
}

// do replaces an endpoint's secret and shows the new one once. The old secret also signs
// for a day.
func (c *adminRotateCmd) do(ctx context.Context, o *operator) (any, error) {
	actor, err := o.withSecrets()
	if err != nil {
		return nil, err
	}
	var e webhooks.Endpoint
	if c.End {
		e, err = actor.EndRotation(ctx, sms.CompanyID(c.Company))
		e.Secret = ""
	} else {
		e, err = actor.RotateSecret(ctx, sms.CompanyID(c.Company), nil)
	}
	return done(rotated{e.CompanyID, e.Secret, e.PreviousUntil}, err)
}

type rotated struct {
	Company       int64      `json:"company_id"`
	Secret        string     `json:"secret,omitempty"`
	PreviousUntil *time.Time `json:"previous_until"`
}

// openWebhooks is for calls that read no secret and need no key.
func (o *operator) openWebhooks() *webhooks.Webhooks {
	return webhooks.New(o.pool, webhooks.Options{})
}

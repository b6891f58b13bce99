package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

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
}

// adminWebhook has no secret: that is shown once, by the command that made or set it.
type adminWebhook struct {
	CompanyID int64  `json:"company_id"`
	URL       string `json:"url"`
	Active    bool   `json:"active"`
}

type adminWebhookSecret struct {
	CompanyID int64  `json:"company_id"`
	URL       string `json:"url"`
	Secret    string `json:"secret"`
	Active    bool   `json:"active"`
}

// Run creates or changes the endpoint.
func (c *adminWebhookSetCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	secret, err := c.secret(p)
	if err != nil {
		return err
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		if _, err := o.accounts().CompanyByID(ctx, c.Company); err != nil {
			return nil, err
		}
		hooks, err := o.webhooks()
		if err != nil {
			return nil, err
		}
		e, err := o.setEndpoint(ctx, hooks, c.Company, webhooks.Setting{URL: c.URL, Secret: secret, Active: c.Active})
		if err != nil {
			return nil, err
		}
		if secret != "" || e.Made {
			return adminWebhookSecret{CompanyID: e.CompanyID, URL: e.URL, Secret: e.Secret, Active: e.Active}, nil
		}
		return adminWebhook{CompanyID: e.CompanyID, URL: e.URL, Active: e.Active}, nil
	})
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
	if missing := o.config.Missing("webhooks.encryption_key"); missing != nil {
		return nil, missing // without it a secret would be stored in plain
	}
	key, err := o.config.Webhooks.Key()
	if err != nil {
		return nil, fmt.Errorf("webhooks.encryption_key: %w", err)
	}
	return webhooks.New(o.pool, webhooks.Options{AllowPrivate: o.config.Webhooks.AllowPrivate, SecretKey: key}), nil
}

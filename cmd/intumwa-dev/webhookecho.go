package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"intumwa/sms"
	"intumwa/webhooks"
)

// webhookEchoCmd receives webhooks, prints each one and checks its signature.
type webhookEchoCmd struct {
	Listen     string `help:"Address to listen on." default:"127.0.0.1:2781"`
	SecretFile string `help:"File with the endpoint's signing secret." required:"" type:"existingfile"`
}

const maxWebhookBody = 64 << 10

// Run serves until ctx ends.
func (c *webhookEchoCmd) Run(ctx context.Context, out output) error {
	text, err := os.ReadFile(c.SecretFile)
	if err != nil {
		return fmt.Errorf("reading the secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	return serveHTTP(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhookBody))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		verdict := "signature right"
		if err := webhooks.Verify(secret, r.Header, body, time.Now()); err != nil {
			verdict = "SIGNATURE WRONG: " + err.Error()
		}
		fmt.Fprintf(out.stdout, "%s webhook %s (%s)\n  %s\n", time.Now().Format(time.TimeOnly), sms.Printable(r.Header.Get("X-Webhook-Event")), verdict, sms.Printable(string(body)))
	}))
}

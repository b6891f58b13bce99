package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"intumwa/sms"
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
		if err := verify(secret, r.Header, body, time.Now()); err != nil {
			verdict = "SIGNATURE WRONG: " + err.Error()
		}
		fmt.Fprintf(out.stdout, "%s webhook %s (%s)\n  %s\n", time.Now().Format(time.TimeOnly),
			sms.Printable(r.Header.Get("X-Webhook-Event")), verdict, sms.Printable(string(body)))
	}))
}

// verifyTolerance is how old a signed request may be; an older one may be a replay.
const verifyTolerance = 5 * time.Minute

// verify is the receiver's side. It shares no code with the signer. It checks both signatures over the exact bytes of
// the body, and that the request is not a replay. During a rotation webhook-signature has several signatures, and
// secret may be either one; X-Webhook-Signature is then the old one's.
func verify(secret string, header http.Header, body []byte, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return fmt.Errorf("the secret is not whsec_ and base64: %w", err)
	}
	timestamp := header.Get("webhook-timestamp")
	want := "v1," + base64.StdEncoding.EncodeToString(sum(key, []byte(header.Get("webhook-id")+"."+timestamp+"."), body))
	signatures := strings.Fields(header.Get("webhook-signature"))
	if !slices.ContainsFunc(signatures, func(s string) bool { return equal(s, want) }) {
		return errors.New("webhook-signature does not match webhook-id, webhook-timestamp, the body and the secret")
	}
	if len(signatures) == 1 && !equal(header.Get("X-Webhook-Signature"), hex.EncodeToString(sum([]byte(secret), body))) {
		return errors.New("X-Webhook-Signature does not match the body and the secret")
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("webhook-timestamp %q is not a number of seconds", timestamp)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > verifyTolerance {
		return fmt.Errorf("the request was signed %s ago", age.Round(time.Second))
	}
	return nil
}

func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

func equal(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

package stories

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// inbox receives the webhooks of all companies. It checks both signatures of every call
// with the standard library alone, as a customer would.
type inbox struct {
	w    *world
	base string

	mu        sync.Mutex
	endpoints map[string]*endpoint // by path
	calls     map[int64][]call     // by company
	last      context.CancelFunc   // ends hanging calls
}

type endpoint struct {
	company *company
	answer  http.HandlerFunc
}

// call is one webhook request.
type call struct {
	at        time.Time
	header    http.Header
	body      []byte
	Event     string `json:"event"`
	Timestamp string `json:"timestamp"`
	Data      struct {
		MessageID   int64   `json:"message_id"`
		PhoneNumber string  `json:"phone_number"`
		Status      string  `json:"status"`
		SentAt      *string `json:"sent_at"`
		FailedAt    *string `json:"failed_at"`
	} `json:"data"`
}

func openInbox(w *world) *inbox {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatalf("opening the inbox: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &inbox{w: w, base: "http://" + listener.Addr().String(), endpoints: map[string]*endpoint{},
		calls: map[int64][]call{}, last: cancel}
	server := &http.Server{Handler: b, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	w.t.Cleanup(func() {
		cancel()
		_ = server.Close()
		<-done
	})
	return b
}

// of opens an endpoint for a company.
func (b *inbox) of(c *company, answer http.HandlerFunc) (url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	path := "/" + c.number() + "/" + word()
	b.endpoints[path] = &endpoint{c, answer}
	return b.base + path
}

// ServeHTTP receives one webhook.
func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	b.mu.Lock()
	e := b.endpoints[r.URL.Path]
	b.mu.Unlock()
	if e == nil {
		b.w.t.Errorf("a webhook for %s, an unknown path", r.URL.Path)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed
	}
	c := call{at: at, header: r.Header, body: body}
	if err := verify(e.company.secret, r, body, at); err != nil {
		b.w.t.Errorf("a webhook of %s: %v\n%s", e.company.sender, err, body)
	}
	if err := json.Unmarshal(body, &c); err != nil {
		b.w.t.Errorf("a webhook of %s is no JSON: %v\n%s", e.company.sender, err, body)
	}
	b.mu.Lock()
	b.calls[e.company.id] = append(b.calls[e.company.id], c)
	b.mu.Unlock()
	e.answer(w, r)
}

// verify checks a webhook as rule choices 8.1 describes for customers.
func verify(secret string, r *http.Request, body []byte, now time.Time) error {
	switch {
	case r.Method != http.MethodPost:
		return fmt.Errorf("method %s, want POST", r.Method)
	case r.Header.Get("Content-Type") != "application/json":
		return fmt.Errorf("Content-Type %q, want application/json", r.Header.Get("Content-Type"))
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	if want, got := hex.EncodeToString(mac.Sum(nil)), r.Header.Get("X-Webhook-Signature"); got != want {
		return fmt.Errorf("X-Webhook-Signature is %q, want %q", got, want)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) != 32 {
		return fmt.Errorf("the secret holds %d bytes (%w), want 32", len(key), err)
	}
	id, timestamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	mac = hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	if want, got := "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)),
		r.Header.Get("webhook-signature"); got != want || id == "" {
		return fmt.Errorf("webhook-signature of %q is %q, want %q", id, got, want)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || age < -2*time.Second || age > 30*time.Second {
		return fmt.Errorf("webhook-timestamp %q is %v from now: %w", timestamp, age, err)
	}
	return nil
}

// webhooks lists the calls that the company has received.
func (c *company) webhooks() []call {
	c.w.inbox.mu.Lock()
	defer c.w.inbox.mu.Unlock()
	return append([]call(nil), c.w.inbox.calls[c.id]...)
}

// webhooksOf lists the calls about one message.
func (c *company) webhooksOf(messageID int64) []call {
	var about []call
	for _, call := range c.webhooks() {
		if call.Data.MessageID == messageID {
			about = append(about, call)
		}
	}
	return about
}

// hears waits for the first webhook about a message.
func (c *company) hears(messageID int64, within time.Duration) call {
	c.w.t.Helper()
	c.w.eventually(within, "a webhook about message "+strconv.FormatInt(messageID, 10),
		func() bool { return len(c.webhooksOf(messageID)) > 0 })
	return c.webhooksOf(messageID)[0]
}

// paths lists the secret parts of the endpoints' addresses.
func (b *inbox) paths() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for path := range b.endpoints {
		list = append(list, path)
	}
	return list
}

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/tools/rig"
)

// load sends continuously for the busy carriers: single messages, occasional batches, and
// occasional invalid requests.
type load struct {
	url    string
	tokens [2]string
	client *http.Client
	cancel context.CancelFunc
	done   sync.WaitGroup

	sent, refused, failed atomic.Int64
}

func startLoad(ctx context.Context, url string, tokens [2]string, rate float64) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{url: url, tokens: tokens, cancel: cancel, client: &http.Client{Timeout: 5 * time.Second}}
	for i, prefix := range []string{"61", "71", "77"} {
		l.done.Go(func() { l.singles(ctx, prefix, rate, i) })
	}
	l.done.Go(func() { l.others(ctx) })
	return l
}

func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

func number(prefix string) string { return fmt.Sprintf("+257%s%06d", prefix, rand.IntN(1_000_000)) }

// singles sends at a steady rate, regardless of responses.
func (l *load) singles(ctx context.Context, prefix string, rate float64, offset int) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	slots := make(chan struct{}, 50) // bounds unanswered requests
	for n := offset; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case slots <- struct{}{}:
		default:
			continue
		}
		calls.Go(func() {
			defer func() { <-slots }()
			l.post(ctx, "/v1/sms", l.tokens[n%2], "", fmt.Sprintf(`{"phone_number":%q,"sender":"DRILL","message":"Amahoro %d"}`,
				number(prefix), n))
		})
	}
}

// others sends the rarer requests.
func (l *load) others(ctx context.Context) {
	for n := 0; rig.Rest(ctx, time.Second) == nil; n++ {
		token := l.tokens[n%2]
		switch n % 12 {
		case 0:
			var batch []string
			for _, prefix := range []string{"61", "71", "77"} {
				for range 5 {
					batch = append(batch, fmt.Sprintf(`{"phone_number":%q,"message":"Mwaramutse ê %d"}`, number(prefix), n))
				}
			}
			l.post(ctx, "/v1/sms/bulk", token, "", `{"sender":"DRILL","messages":[`+strings.Join(batch, ",")+`]}`)
		case 3:
			l.post(ctx, "/v1/sms/template", token, "",
				fmt.Sprintf(
					`{"sender":"DRILL","template":"Salut {{ name }}","recipients":[{"phone_number":%q,"variables":{"name":"Aline"}}]}`,
					number("71")))
		case 5: // the same request twice
			for range 2 {
				l.post(ctx, "/v1/sms", token, fmt.Sprintf("drill-%d", n),
					fmt.Sprintf(`{"phone_number":"+25761%06d","sender":"DRILL","message":"Rimwe"}`, n))
			}
		case 7:
			l.post(ctx, "/v1/sms", token, "", fmt.Sprintf(`{"phone_number":%q,"sender":"UNKNOWN","message":"x"}`, number("61")))
		case 9:
			l.post(ctx, "/v1/sms", "0|unknown", "", `{}`)
		}
	}
}

func (l *load) post(ctx context.Context, path, token, key, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+path, strings.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := l.client.Do(request)
	if err != nil {
		l.failed.Add(1)
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode < 300:
		l.sent.Add(1)
	case answer.StatusCode < 500:
		l.refused.Add(1)
	default:
		l.failed.Add(1)
	}
}

// sink is a customer's webhook endpoint.
type sink struct {
	url    string
	server *http.Server
	dead   atomic.Bool
}

func newSink(ctx context.Context) (*sink, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", err)
	}
	k := &sink{url: "http://" + listener.Addr().String() + "/hook"}
	k.server = &http.Server{ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 64<<10))
			if k.dead.Load() {
				panic(http.ErrAbortHandler) // the connection breaks without a response
			}
		})}
	go func() { _ = k.server.Serve(listener) }()
	return k, nil
}

func (k *sink) close() { _ = k.server.Close() }

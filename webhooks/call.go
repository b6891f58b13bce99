package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	connectTimeout = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	maxHeaderBytes = 16 << 10
	maxAnswerBytes = 64 << 10 // read, so that the connection can be used again
	excerptBytes   = 1 << 10  // kept of a failure's answer
	idleTimeout    = 90 * time.Second
)

// target is where an endpoint's calls go, and how they are signed.
type target struct {
	url    *url.URL
	signer *signer

	// As stored, to notice a change without opening the secret again.
	storedURL, storedSecret string
}

// caller makes the calls. It keeps connections alive between them, follows no
// redirect, asks for no compression and knows no proxy.
type caller struct {
	transport *http.Transport
	timeout   time.Duration
	keep      bool // the beginning of every answer, not of failures alone
}

// newCaller returns a caller whose dials end with ctx.
func newCaller(ctx context.Context, opts Options, g guard) *caller {
	dialer := &net.Dialer{Timeout: min(connectTimeout, opts.Timeout), KeepAlive: 15 * time.Second,
		Resolver: opts.resolver, Control: g.control}
	// net/http lets a dial go on when its call is over, for the next one: it has
	// bounds of its own, names, addresses and handshake each, and ends with ctx.
	dialed := func(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
		return func(call context.Context, network, address string) (net.Conn, error) {
			call, cancel := context.WithCancel(call)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return dial(call, network, address)
		}
	}
	dial := func(call context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(call, network, address)
		if err != nil {
			return nil, err
		}
		return &line{Conn: conn}, nil
	}
	dialTLS := func(call context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(call, network, address)
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = address
		}
		call, cancel := context.WithTimeout(call, min(tlsTimeout, opts.Timeout))
		defer cancel()
		// No ALPN: there is HTTP/1.1 and nothing else.
		secure := tls.Client(conn, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, ClientSessionCache: sessions})
		if err := secure.HandshakeContext(call); err != nil {
			_ = conn.Close() // the handshake's error says more
			return nil, &handshakeError{err}
		}
		return secure, nil
	}
	return &caller{
		timeout: opts.Timeout,
		transport: &http.Transport{
			DialContext:            dialed(dial),
			DialTLSContext:         dialed(dialTLS),
			DisableCompression:     true, // a compressed answer stays as small as it came
			MaxIdleConns:           opts.InFlight,
			MaxIdleConnsPerHost:    max(opts.InFlight/2, opts.PerEndpointMax), // companies may share a host
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
	}
}

// sessions spares a full handshake when a connection to a known server is opened again.
var sessions = tls.NewLRUClientSessionCache(256)

func (c *caller) close() { c.transport.CloseIdleConnections() }

// call makes one attempt, which ends within the timeout whatever is answered. ok
// is false when ctx ended it: then it says nothing about the endpoint.
func (c *caller) call(ctx context.Context, t *target, delivery int64, body []byte) (a Attempt, took time.Duration, ok bool) {
	start := time.Now()
	timed, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	a.At = start.UTC().Truncate(time.Millisecond)
	tied, untie := tie(timed)
	defer untie()
	response, err := c.transport.RoundTrip(newRequest(tied, t, delivery, body, start))
	if err != nil {
		if ctx.Err() != nil {
			return Attempt{}, 0, false
		}
		if timed.Err() != nil {
			err = timed.Err() // a connection that was ended for it says so in other words
		}
		a.Result, a.Error = resultOfError(err)
	} else {
		defer func() { _ = response.Body.Close() }() // the status has been seen: nothing else counts
		a.Status, a.Result = response.StatusCode, resultOfStatus(response.StatusCode)
		a.Excerpt = readAnswer(response, c.keep || a.Result != result2xx)
	}
	took = time.Since(start)
	a.DurationMS = took.Milliseconds()
	return a, took, true
}

// newRequest signs the body for one attempt. rule choices 8.1
func newRequest(ctx context.Context, t *target, delivery int64, octets []byte, at time.Time) *http.Request {
	id, timestamp := webhookID(delivery), strconv.FormatInt(at.Unix(), 10)
	r := &http.Request{
		Method: http.MethodPost,
		URL:    t.url,
		Host:   t.url.Host,
		Header: http.Header{
			"Content-Type":        {"application/json"},
			"User-Agent":          {"Intumwa-Webhooks/1"},
			"X-Webhook-Event":     {eventName(delivery)},
			"X-Webhook-Signature": {t.signer.contractSignature(octets)},
			"Webhook-Id":          {id},
			"Webhook-Timestamp":   {timestamp},
			"Webhook-Signature":   {t.signer.standardSignature(id, timestamp, octets)},
			// Not sent: it tells net/http that the call may be repeated when an idle
			// connection turns out to have been closed by the server.
			"X-Idempotency-Key": {},
		},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(octets)),
		Body:          io.NopCloser(bytes.NewReader(octets)),
		GetBody: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(octets)), nil
		},
	}
	return r.WithContext(ctx)
}

var answers = sync.Pool{New: func() any { return new([excerptBytes]byte) }}

// readAnswer reads an answer's body, of which with keep set it returns the
// excerpt. More than maxAnswerBytes are not read; closing such a body closes the
// connection. What follows a 101 is no answer but another protocol, without an
// end: it is not read at all.
func readAnswer(response *http.Response, keep bool) (excerpt string) {
	if response.Body == http.NoBody || response.StatusCode < 200 {
		return ""
	}
	head := answers.Get().(*[excerptBytes]byte)
	defer answers.Put(head)
	n, err := io.ReadFull(response.Body, head[:])
	if err == nil {
		_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBytes-excerptBytes)
	}
	if !keep {
		return ""
	}
	return excerptOf(head[:n])
}

// excerptOf makes octets from outside fit to be stored and shown: valid UTF-8
// without control characters.
func excerptOf(octets []byte) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r >= 0x7f && r < 0xa0: // C0, DEL, C1
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(octets[:min(len(octets), excerptBytes)]), ""))
	return strings.TrimSpace(text)
}

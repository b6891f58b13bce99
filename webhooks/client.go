package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"intumwa/internal/postgres"
)

const (
	connectTimeout = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	maxHeaderBytes = 16 << 10
	maxAnswerBytes = 64 << 10         // of a response that are read, so that the connection can be used again
	excerptBytes   = 1 << 10          // of a failure's response that are kept
	idleTimeout    = 90 * time.Second // of a connection between two calls
)

// newTransport speaks HTTP/1.1 without a proxy. Used by itself it follows no redirect. The guard
// checks each address that is dialled.
func newTransport(opts Options, g guard) *http.Transport {
	dialer := &net.Dialer{Timeout: min(connectTimeout, opts.Timeout), KeepAlive: 15 * time.Second, Resolver: opts.resolver, Control: g.control}
	sessions := tls.NewLRUClientSessionCache(256) // saves full handshakes with known servers
	dialTLS := func(ctx context.Context, network, address string) (net.Conn, error) {
		socket, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(address)
		secure := tls.Client(socket, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, ClientSessionCache: sessions})
		ctx, cancel := context.WithTimeout(ctx, min(tlsTimeout, opts.Timeout))
		defer cancel()
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = socket.Close() // the handshake's error is returned
			return nil, &handshakeError{err}
		}
		return secure, nil
	}
	return &http.Transport{DialContext: dialer.DialContext, DialTLSContext: dialTLS, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeaderBytes, IdleConnTimeout: idleTimeout, MaxIdleConns: opts.InFlight, MaxIdleConnsPerHost: max(1, opts.InFlight/2)}
}

// target is an endpoint's address and signing keys, ready for calls.
type target struct {
	url    *url.URL
	signer *signer
	stored storedEndpoint // what it was made of, to detect a change without decrypting the secret again
}

// call makes one attempt, which ends within the timeout whatever the endpoint does. keep
// keeps the beginning of every response, not only of failures. ok is false when ctx ended
// it; the attempt then has no meaning for the endpoint.
func (w *Webhooks) call(ctx context.Context, t *target, j *job, keep bool) (a Attempt, took time.Duration, ok bool) {
	start := time.Now()
	a.At = postgres.Moment(start).UTC().Truncate(time.Millisecond)
	limited, cancel := context.WithDeadline(ctx, start.Add(w.opts.Timeout))
	defer cancel()
	response, err := w.transport.RoundTrip(newRequest(limited, t, j, a.At)) //nolint:bodyclose // readAnswer closes it
	switch {
	case err == nil:
		a.Status, a.Result = response.StatusCode, resultOfStatus(response.StatusCode)
		if excerpt := readAnswer(response); keep || a.Result != result2xx { // the status alone decides the result
			a.Excerpt = excerpt
		}
	case ctx.Err() != nil:
		return Attempt{}, 0, false
	default:
		if limited.Err() != nil {
			err = limited.Err() // a timeout of the name look-up is another error
		}
		a.Result, a.Error = resultOfError(err)
	}
	took = time.Since(start)
	a.DurationMS = took.Milliseconds()
	return a, took, true
}

// newRequest makes a signed request. rule choices 8.1
func newRequest(ctx context.Context, t *target, j *job, at time.Time) *http.Request {
	body, id, timestamp := bodyOf(j.event()), webhookID(j.id), strconv.FormatInt(at.Unix(), 10)
	header := http.Header{
		"User-Agent":          {"Intumwa-Webhooks/1"},
		"Content-Type":        {"application/json"},
		"X-Webhook-Event":     {eventName(j.id)},
		"X-Webhook-Signature": {t.signer.contractSignature(body)},
		"Webhook-Id":          {id},
		"Webhook-Timestamp":   {timestamp},
		"Webhook-Signature":   {t.signer.standardSignature(id, timestamp, body)},
		// Not sent. The transport repeats the request when the server closed a kept connection
		// without an answer.
		"Idempotency-Key": {},
	}
	r := &http.Request{Method: http.MethodPost, URL: t.url, Host: t.url.Host, Header: header, ContentLength: int64(len(body)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }}
	r.Body, _ = r.GetBody() // never fails
	return r.WithContext(ctx)
}

// readAnswer reads a response's body, at most maxAnswerBytes, closes it and returns its
// beginning. After a 101 nothing is read: another protocol follows.
func readAnswer(response *http.Response) string {
	defer func() { _ = response.Body.Close() }() // nothing was written
	if response.StatusCode < 200 {
		return ""
	}
	head, _ := io.ReadAll(io.LimitReader(response.Body, excerptBytes)) // as much as came before an error
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBytes-excerptBytes)
	return excerptOf(head)
}

// excerptOf returns octets from outside as text that can be stored and shown: valid
// UTF-8 without control characters.
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

// The results of an attempt; there are no others.
const (
	result2xx     = "2xx"
	result3xx     = "3xx"
	result4xx     = "4xx"
	result5xx     = "5xx"
	resultTimeout = "timeout" // no status within the timeout
	resultDNS     = "dns"     // the name does not resolve
	resultTLS     = "tls"     // the handshake failed
	resultBlocked = "blocked" // the address is not public
	resultRefused = "refused" // connection refused
	resultOther   = "other"   // a broken connection, a response that is not HTTP, …
)

var results = []string{
	result2xx, result3xx, result4xx, result5xx, resultTimeout,
	resultDNS, resultTLS, resultBlocked, resultRefused, resultOther,
}

// handshakeError marks an error of a TLS handshake.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "tls handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

func resultOfStatus(status int) string {
	if class := status / 100; class >= 2 && class <= 5 {
		return strconv.Itoa(class) + "xx"
	}
	return resultOther
}

// resultOfError returns the result of a call without a response, and an explanation
// for the customer. The explanation never contains the addresses of a name: customers
// could use them to map a private network.
func resultOfError(err error) (result, explanation string) {
	var dns *net.DNSError
	var handshake *handshakeError
	var broken *net.OpError
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedPort),
		errors.Is(err, ssrf.ErrProhibitedNetwork), errors.Is(err, ssrf.ErrInvalidHostPort):
		return resultBlocked, "the host resolves to an address that is not public"
	case errors.As(err, &dns):
		return resultDNS, "the host name does not resolve"
	case timedOut(err):
		return resultTimeout, "no answer in time"
	case errors.As(err, &handshake) && errors.As(err, &broken) && broken.Source != nil:
		return resultTLS, "the connection broke during the TLS handshake" // the error's text has the addresses
	case errors.As(err, &handshake):
		return resultTLS, excerptOf([]byte(handshake.Error()))
	case errors.Is(err, syscall.ECONNREFUSED):
		return resultRefused, "the connection was refused"
	}
	return resultOther, "the connection failed or the answer was not HTTP"
}

func timedOut(err error) bool {
	var t net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &t) && t.Timeout()
}

package webhooks

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"intumwa/internal/postgres"
)

// target is an endpoint's address and signing keys, ready for calls.
type target struct {
	host   string // for the log
	head   string // of every request, up to the name of the event
	place  place
	signer *signer
	stored storedEndpoint // the row it was built from: detects a change without decrypting the secret
}

// call makes one attempt. It ends within the timeout whatever the endpoint does. excerpt keeps the beginning of every
// response, not only of failures. ok is false when ctx ended the attempt, which then does not count for the endpoint.
func (w *Webhooks) call(ctx context.Context, t *target, j *job, excerpt bool) (a Attempt, took time.Duration, ok bool) {
	start := time.Now()
	a.At = postgres.Moment(start).UTC().Truncate(time.Millisecond)
	r := signedRequests.Get().(*signedRequest)
	defer signedRequests.Put(r)
	r.fill(t, j, a.At)
	got, err := w.client.exchange(ctx, t.place, r.whole, excerpt)
	switch {
	case err == nil:
		a.Status, a.Result, a.Excerpt = got.status, resultOfStatus(got.status), got.excerpt // the status alone decides
	case ctx.Err() != nil:
		return Attempt{}, 0, false
	default:
		a.Result, a.Error = resultOfError(err)
	}
	took = time.Since(start)
	a.DurationMS = took.Milliseconds()
	return a, took, true
}

// signedRequest is the request of an attempt. Its memory is used again for the next one.
type signedRequest struct {
	whole []byte
	body  []byte
	stamp []byte // id.timestamp. of the body's signature
}

var signedRequests = sync.Pool{New: func() any { return new(signedRequest) }}

// fill makes the request of an attempt. rule choices 8.1
func (r *signedRequest) fill(t *target, j *job, at time.Time) {
	r.body = appendBody(r.body[:0], j)
	r.stamp = appendWebhookID(r.stamp[:0], j.id)
	id := r.stamp
	r.stamp = strconv.AppendInt(append(r.stamp, '.'), at.Unix(), 10)
	timestamp := r.stamp[len(id)+1:]
	r.stamp = append(r.stamp, '.')

	b := append(append(r.whole[:0], t.head...), eventName(j.id)...)
	b = t.signer.appendContract(append(b, "\r\nX-Webhook-Signature: "...), r.body)
	b = append(append(b, "\r\nWebhook-Id: "...), id...)
	b = append(append(b, "\r\nWebhook-Timestamp: "...), timestamp...)
	b = t.signer.appendStandard(append(b, "\r\nWebhook-Signature: "...), r.stamp, r.body)
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), int64(len(r.body)), 10)
	r.whole = append(append(b, "\r\n\r\n"...), r.body...)
}

// excerptOf turns outside bytes into text that is safe to store and show: valid UTF-8 without control characters.
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

// The results of an attempt; this list is complete.
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

var results = []string{ // those of a status first
	result2xx, result3xx, result4xx, result5xx, resultTimeout,
	resultDNS, resultTLS, resultBlocked, resultRefused, resultOther,
}

// errHandshake marks an error of a TLS handshake.
var errHandshake = errors.New("tls handshake")

func resultOfStatus(status int) string {
	if status < 200 || status > 599 {
		return resultOther
	}
	return results[status/100-2]
}

// resultOfError returns the result of a call that got no response, and an explanation for the customer. The explanation
// never contains a name's addresses: customers could map a private network with them.
func resultOfError(err error) (result, explanation string) {
	var dns *net.DNSError
	var broken *net.OpError
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedPort),
		errors.Is(err, ssrf.ErrProhibitedNetwork), errors.Is(err, ssrf.ErrInvalidHostPort):
		return resultBlocked, "the host resolves to an address that is not public"
	case errors.As(err, &dns):
		return resultDNS, "the host name does not resolve"
	case timedOut(err):
		return resultTimeout, "no answer in time"
	case errors.Is(err, errHandshake) && errors.As(err, &broken) && broken.Source != nil:
		return resultTLS, "the connection broke during the TLS handshake" // the error's text has the addresses
	case errors.Is(err, errHandshake):
		return resultTLS, excerptOf([]byte(err.Error()))
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

package webhooks

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"intumwa/internal/postgres"
)

// storedEndpoint is the part of an endpoint that a call needs.
type storedEndpoint struct {
	company     int64
	url, secret string // as stored
	previous    string // the previous secret, as stored, during a rotation
	failing     bool   // the last call failed
}

const storedColumns = `e.company_id, e.url, e.secret, 
	CASE WHEN e.previous_until > now() THEN coalesce(e.previous_secret, '') ELSE '' END AS previous,
	e.failing_since IS NOT NULL AS failing`

// fields returns the scan targets of storedColumns.
func (s *storedEndpoint) fields() []any {
	return []any{&s.company, &s.url, &s.secret, &s.previous, &s.failing}
}

// target is an endpoint's address and signing keys, ready for calls.
type target struct {
	host   string // for the log
	head   string // of every request, up to the name of the event; of a callback the whole
	place  place
	signer *signer
	stored storedEndpoint // the row it was built from: detects a change without decrypting the secret
}

func (c *core) newTarget(s storedEndpoint) (*target, error) {
	if s.company < 0 { // each callback has its own
		return &target{stored: s}, nil
	}
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, errors.New("the stored URL does not parse") // no URL in the log: it may hold a secret
	}
	secret, err := c.vault.Open(s.company, s.secret)
	if err != nil {
		return nil, err
	}
	sign, err := newSigner(secret)
	if err != nil {
		return nil, err
	}
	if s.previous != "" {
		before, err := c.vault.Open(s.company, s.previous)
		if err != nil {
			return nil, err
		}
		if sign.previous, err = newSigner(before); err != nil {
			return nil, err
		}
	}
	t := &target{host: u.Hostname(), place: placeOf(u), signer: sign, stored: s}
	// Common firewall rules (OWASP CRS 920300) answer 403 to a request without Accept.
	t.head = "POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host +
		"\r\nUser-Agent: Intumwa-Webhooks/1\r\nAccept: */*\r\nContent-Type: application/json\r\nX-Webhook-Event: "
	return t, nil
}

// call makes one attempt. It ends within the timeout whatever the endpoint does. excerpt keeps the beginning of every
// response, not only of failures. ok is false when ctx ended the attempt, which then does not count for the endpoint.
func (c *core) call(ctx context.Context, t *target, e *storedEvent, excerpt bool) (a Attempt, took time.Duration,
	ok bool) {
	start := time.Now()
	a.At = postgres.Moment(start).UTC().Truncate(time.Millisecond)
	r := signedRequests.Get().(*signedRequest)
	defer signedRequests.Put(r)
	r.fill(t, e, a.At)
	got, err := c.client.exchange(ctx, t.place, r.whole, excerpt)
	switch {
	case err == nil:
		a.Status, a.Result, a.Excerpt = got.status, resultOfStatus(got.status), got.excerpt // the status alone decides
		a.retryAfter = got.retryAfter
	case ctx.Err() != nil:
		return Attempt{}, 0, false
	default:
		a.Result, a.Error = resultOfError(err)
	}
	took = time.Since(start)
	a.DurationMS = took.Milliseconds()
	return a, took, true
}

// resultOfError returns the result of a call that got no response, and an explanation for the customer. The explanation
// never contains a name's addresses: customers could map a private network with them.
func resultOfError(err error) (result, explanation string) {
	var dns *net.DNSError
	var broken *net.OpError
	var late net.Error
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedPort),
		errors.Is(err, ssrf.ErrProhibitedNetwork), errors.Is(err, ssrf.ErrInvalidHostPort):
		return resultBlocked, "the host resolves to an address that is not public"
	case errors.As(err, &dns):
		return resultDNS, "the host name does not resolve"
	case errors.As(err, &late) && late.Timeout():
		return resultTimeout, "no answer in time"
	case errors.Is(err, errHandshake) && errors.As(err, &broken) && broken.Source != nil:
		return resultTLS, "the connection broke during the TLS handshake" // the error's text has the addresses
	case errors.Is(err, errHandshake):
		return resultTLS, handshakeFault(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return resultRefused, "the connection was refused"
	}
	return resultOther, "the connection failed or the answer was not HTTP"
}

// signedRequest is the request of an attempt. Its memory is used again for the next one.
type signedRequest struct {
	whole []byte
	body  []byte
	stamp []byte // id.timestamp. of the body's signature
}

var signedRequests = sync.Pool{New: func() any { return new(signedRequest) }}

// fill makes the request of an attempt. rule choices 8.1
func (r *signedRequest) fill(t *target, e *storedEvent, at time.Time) {
	if e.callback != "" {
		r.whole = append(r.whole[:0], t.head...)
		return
	}
	r.body = appendBody(r.body[:0], e)
	r.stamp = appendWebhookID(r.stamp[:0], e.id)
	id := r.stamp
	r.stamp = strconv.AppendInt(append(r.stamp, '.'), at.Unix(), 10)
	timestamp := r.stamp[len(id)+1:]
	r.stamp = append(r.stamp, '.')

	b := append(append(r.whole[:0], t.head...), eventName(e.id)...)
	b = t.signer.appendContract(append(b, "\r\nX-Webhook-Signature: "...), r.body)
	b = append(append(b, "\r\nWebhook-Id: "...), id...)
	b = append(append(b, "\r\nWebhook-Timestamp: "...), timestamp...)
	b = t.signer.appendStandard(append(b, "\r\nWebhook-Signature: "...), r.stamp, r.body)
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), int64(len(r.body)), 10)
	r.whole = append(append(b, "\r\n\r\n"...), r.body...)
}

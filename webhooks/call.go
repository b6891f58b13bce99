package webhooks

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

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

// errLongHead ends a response whose head is too long.
var errLongHead = errors.New("the head of the answer is too long")

// target is an endpoint's address and signing keys, ready for calls.
type target struct {
	host   string // for the log
	place  place
	head   string // of every request, the part that is always the same
	signer *signer
	stored storedEndpoint // what it was made of, to detect a change without decrypting the secret again
}

// newTargetOf makes a target of a URL.
func newTargetOf(u *url.URL, sign *signer) *target {
	t := &target{host: u.Hostname(), signer: sign}
	port := cmp.Or(u.Port(), "80")
	if u.Scheme == "https" {
		t.place.name, port = t.host, cmp.Or(u.Port(), "443")
	}
	t.place.address = net.JoinHostPort(t.host, port)
	host, zone, scoped := strings.Cut(u.Host, "%") // the zone of an IPv6 address is not sent (RFC 6874)
	if scoped {
		if _, end, ok := strings.Cut(zone, "]"); ok {
			host += "]" + end
		}
	}
	t.head = "POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + host +
		"\r\nUser-Agent: Intumwa-Webhooks/1\r\nContent-Type: application/json\r\nX-Webhook-Event: "
	return t
}

// caller makes calls to endpoints.
type caller struct {
	*client
	timeout time.Duration
	always  bool // the beginning of every response is kept, not only of failures
}

// newCaller returns a caller whose calls end with ctx.
func newCaller(ctx context.Context, opts Options, g guard) *caller {
	return &caller{client: newClient(ctx, opts, g), timeout: opts.Timeout}
}

func (c *caller) close() { c.closeAll() }

var requests = sync.Pool{New: func() any { room := make([]byte, 0, 1024); return &room }}

// call makes one attempt, which ends within the timeout whatever the endpoint does. ok
// is false when the caller's context ended it; the attempt then says nothing about
// the endpoint.
func (c *caller) call(t *target, j *job) (a Attempt, took time.Duration, ok bool) {
	start := time.Now()
	at := postgres.Moment(start)
	deadline := start.Add(c.timeout)
	room := requests.Get().(*[]byte)
	*room = appendRequest((*room)[:0], t, j, at)
	response, conn, err := c.exchange(t.place, *room, deadline) //nolint:bodyclose // the connection is closed or kept as a whole
	requests.Put(room)
	a.At = at.UTC().Truncate(time.Millisecond)
	if err != nil {
		if c.ctx.Err() != nil {
			return Attempt{}, 0, false
		}
		if timedOut(err) && time.Now().After(deadline) {
			err = context.DeadlineExceeded // a timeout of the name look-up is another error
		}
		a.Result, a.Error = resultOfError(err)
	} else {
		a.Status, a.Result = response.StatusCode, resultOfStatus(response.StatusCode)
		var whole bool // the status alone decides the result
		if a.Excerpt, whole = readAnswer(response, c.always || a.Result != result2xx); whole && !response.Close {
			c.keep(conn)
		} else {
			c.drop(conn)
		}
	}
	took = time.Since(start)
	a.DurationMS = took.Milliseconds()
	return a, took, true
}

// appendRequest appends a signed request. rule choices 8.1
func appendRequest(b []byte, t *target, j *job, at time.Time) []byte {
	var bodyRoom [256]byte
	var timeRoom [20]byte
	body, timestamp := appendBody(bodyRoom[:0], j.event()), strconv.AppendInt(timeRoom[:0], at.Unix(), 10)
	b = append(b, t.head...)
	b = append(b, eventName(j.id)...)
	b = append(b, "\r\nX-Webhook-Signature: "...)
	b = t.signer.appendContract(b, body)
	b = append(b, "\r\nWebhook-Id: "...)
	from := len(b)
	b = appendWebhookID(b, j.id)
	to := len(b)
	b = append(b, "\r\nWebhook-Timestamp: "...)
	b = append(b, timestamp...)
	b = append(b, "\r\nWebhook-Signature: "...)
	b = t.signer.appendStandard(b, b[from:to], timestamp, body)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

var answers = sync.Pool{New: func() any { return new([excerptBytes]byte) }}

// readAnswer reads a response's body, at most maxAnswerBytes, and returns an excerpt if
// keep is set. whole means that the body ended, so that the connection can be used
// again. After a 101 nothing is read: what follows is another protocol.
func readAnswer(response *http.Response, keep bool) (excerpt string, whole bool) {
	if response.StatusCode < 200 {
		return "", false
	}
	if response.Body == http.NoBody {
		return "", true
	}
	head := answers.Get().(*[excerptBytes]byte)
	defer answers.Put(head)
	n, err := io.ReadFull(response.Body, head[:])
	if err == nil {
		_, err = io.CopyN(io.Discard, response.Body, maxAnswerBytes-excerptBytes)
	}
	whole = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if !keep {
		return "", whole
	}
	return excerptOf(head[:n]), whole
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

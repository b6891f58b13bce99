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
)

const (
	connectTimeout = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	maxHeaderBytes = 16 << 10
	maxAnswerBytes = 64 << 10         // read, so that the connection can be used again
	excerptBytes   = 1 << 10          // kept of a failure's answer
	idleTimeout    = 90 * time.Second // of a connection between two calls
)

// errLongHead is what ends an answer whose head has no end.
var errLongHead = errors.New("the head of the answer is too long")

// target is where an endpoint's calls go, and how they are signed.
type target struct {
	host   string // for the log
	place  place
	head   string // of every request, up to what differs
	signer *signer

	// As stored, to notice a change without opening the secret again.
	storedURL, storedSecret string
}

// aimAt makes a target of a URL.
func aimAt(u *url.URL, sign *signer) *target {
	t := &target{host: u.Hostname(), signer: sign}
	port := cmp.Or(u.Port(), "80")
	if u.Scheme == "https" {
		t.place.name, port = t.host, cmp.Or(u.Port(), "443")
	}
	t.place.address = net.JoinHostPort(t.host, port)
	host, zone, scoped := strings.Cut(u.Host, "%") // of an IPv6 address, which is nobody else's business (RFC 6874)
	if scoped {
		if _, end, ok := strings.Cut(zone, "]"); ok {
			host += "]" + end
		}
	}
	t.head = "POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + host +
		"\r\nUser-Agent: Intumwa-Webhooks/1\r\nContent-Type: application/json\r\nX-Webhook-Event: "
	return t
}

// caller makes the calls.
type caller struct {
	*client
	timeout time.Duration
	always  bool // the beginning of every answer is kept, not of failures alone
}

// newCaller returns a caller whose calls end with ctx.
func newCaller(ctx context.Context, opts Options, g guard) *caller {
	return &caller{client: newClient(ctx, opts, g), timeout: opts.Timeout}
}

func (c *caller) close() { c.closeAll() }

var requests = sync.Pool{New: func() any { room := make([]byte, 0, 1024); return &room }}

// call makes one attempt, which ends within the timeout whatever is answered. ok
// is false when the caller's context ended it: then it says nothing about the
// endpoint.
func (c *caller) call(t *target, j *job) (a Attempt, took time.Duration, ok bool) {
	start := time.Now()
	deadline := start.Add(c.timeout)
	room := requests.Get().(*[]byte)
	*room = appendRequest((*room)[:0], t, j, start)
	response, conn, err := c.exchange(t.place, *room, deadline) //nolint:bodyclose // the connection ends or is kept as a whole
	requests.Put(room)
	a.At = start.UTC().Truncate(time.Millisecond)
	if err != nil {
		if c.ctx.Err() != nil {
			return Attempt{}, 0, false
		}
		if timedOut(err) && time.Now().After(deadline) {
			err = context.DeadlineExceeded // the looking up of a name says so in other words
		}
		a.Result, a.Error = resultOfError(err)
	} else {
		a.Status, a.Result = response.StatusCode, resultOfStatus(response.StatusCode)
		var whole bool // the status has been seen: for the result nothing else counts
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

// appendRequest appends a request with its signatures. rule choices 8.1
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

// readAnswer reads an answer's body, of which with keep set it returns the
// excerpt. More than maxAnswerBytes are not read; whole tells that there were no
// more, so that the connection can be used again. What follows a 101 is no answer
// but another protocol, without an end: it is not read at all.
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

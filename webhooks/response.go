package webhooks

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strconv"
	"time"
)

const (
	maxHeadBytes   = 16 << 10 // of a response's status line and headers, those of early 1xx responses included
	maxAnswerBytes = 64 << 10 // of a response to read, with its head

	maxRetryAfter = 24 * time.Hour // the schedule bounds it further
)

// response is the part of a response that we use.
type response struct {
	status  int
	excerpt string // the beginning of the body
	whole   bool   // read to its end: the connection can be reused

	retryAfter time.Duration
}

// head is what a response's status line and headers say that we use.
type head struct {
	status  int
	length  int64 // of the body; -1: not given
	chunked bool
	odd     bool // the response may end elsewhere than the head says, or with the connection
	cut     bool // the head has no end

	retryAfter time.Duration // the longest one; 0: none
}

// statusLine is what a response begins with: a version, and a status of three digits. What follows the status does not
// matter.
var statusLine = regexp.MustCompile(`^\s*((?i:HTTP)(?:/\S*)?)\s+([0-9]{3})(?:[^0-9]|$)`)

var errNotHTTP = errors.New("the answer is not HTTP")

// statusOf returns the status of a status line, -1 if it is none, and whether it is odd. The usual form costs no
// regular expression: every delivery reads one.
func statusOf(line []byte) (status int, odd bool) {
	const usual = "HTTP/1.1 "
	end := len(usual) + 3
	if len(line) >= end && string(line[:len(usual)]) == usual && (len(line) == end || !isDigit(line[end])) {
		if n, err := strconv.ParseUint(string(line[len(usual):end]), 10, 16); err == nil {
			return int(n), false
		}
	}
	start := statusLine.FindSubmatch(line)
	if start == nil {
		return -1, true
	}
	status, _ = strconv.Atoi(string(start[2])) // three digits
	return status, string(start[1]) != usual[:len(usual)-1]
}

// readHead reads up to the empty line after the headers. Only a status is required: any other fault makes the head odd,
// even its end. http.ReadResponse would refuse most of them, and a 2xx status that was read is a success.
func readHead(r *bufio.Reader) (h head, err error) {
	var line []byte
	for len(line) == 0 { // some servers send an empty line first
		if line, _, err = r.ReadLine(); err != nil {
			return h, err
		}
	}
	status, odd := statusOf(line)
	if status < 0 {
		return h, errNotHTTP
	}
	h = head{status: status, length: -1, odd: odd}
	for within := len(line) == r.Size(); ; { // of a line longer than the buffer, only the first part counts
		line, more, err := r.ReadLine()
		if err != nil {
			h.cut = true
			return h, nil
		}
		if !within {
			if len(line) == 0 {
				break
			}
			h.field(line)
		}
		within = more
	}
	if h.status == http.StatusNoContent || h.status == http.StatusNotModified {
		h.length, h.chunked = 0, false
	}
	h.odd = h.odd || h.chunked == (h.length >= 0)
	return h, nil
}

// field takes over a header that says where the response ends.
func (h *head) field(line []byte) {
	name, value, found := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case !found, len(bytes.TrimSpace(name)) != len(name): // a folded line, or a space before the colon
		h.odd = true
	case bytes.EqualFold(name, []byte("Content-Length")):
		length, err := strconv.ParseUint(string(value), 10, 63)
		h.odd = h.odd || err != nil || h.length >= 0
		h.length = int64(length)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		h.odd = h.odd || h.chunked || !bytes.EqualFold(value, []byte("chunked"))
		h.chunked = true
	case bytes.EqualFold(name, []byte("Connection")):
		h.odd = h.odd || bytes.Contains(bytes.ToLower(value), []byte("close"))
	case bytes.EqualFold(name, []byte("Retry-After")):
		h.retryAfter = max(h.retryAfter, retryAfter(string(value), time.Now()))
	}
}

// retryAfter returns how long to wait for a Retry-After: seconds, perhaps with a fraction, or a date (RFC 9110,
// 10.2.3). It is 0 for other texts.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	return 0
}

// readBody reads the body after h and ignores errors. It keeps a success's excerpt only on request. After a 101 it
// reads nothing: another protocol follows.
func readBody(r *bufio.Reader, h head, excerpt bool) response {
	a := response{status: h.status, retryAfter: h.retryAfter}
	body := io.Reader(r)
	switch {
	case h.status < 200, h.cut:
		return a
	case !h.odd && h.chunked:
		body = httputil.NewChunkedReader(r)
	case !h.odd:
		body = io.LimitReader(r, h.length)
	}
	var begin []byte
	if excerpt || resultOfStatus(a.status) != result2xx {
		begin, _ = io.ReadAll(io.LimitReader(body, excerptBytes))
		a.excerpt = excerptOf(begin)
	}
	if h.odd {
		return a // not reused, so its end does not matter
	}
	n, err := io.Copy(io.Discard, body)
	if !h.chunked {
		a.whole = int64(len(begin))+n == h.length
	} else if err == nil {
		line, _, err := r.ReadLine() // the end, unless a trailer follows
		a.whole = err == nil && len(line) == 0
	}
	return a
}

package webhooks

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

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
	switch status / 100 {
	case 2:
		return result2xx
	case 3:
		return result3xx
	case 4:
		return result4xx
	case 5:
		return result5xx
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
	case errors.Is(err, http.ErrSchemeMismatch):
		return resultTLS, "the server does not speak TLS"
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

// state of a delivery, as stored.
type state int16

const (
	pending   state = 0
	delivered state = 1
	exhausted state = 2
	returned  state = 3 // not of a delivery: its claim ends without an attempt
)

// String returns the state's name as the API and pages show it.
func (s state) String() string {
	switch s {
	case pending:
		return StatePending
	case delivered:
		return StateDelivered
	}
	return StateFailed
}

// schedule is the delays between a failure and the next attempt. rule api 6
type schedule []time.Duration

// after returns the state of a delivery after the attempt number tries (from 1) of its
// round, and the delay before the next attempt.
func (s schedule) after(tries int, success bool) (state, time.Duration) {
	switch {
	case success:
		return delivered, 0
	case tries > len(s):
		return exhausted, 0
	}
	return pending, s[tries-1]
}

package webhooks

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"time"
	"unicode"

	"code.dny.dev/ssrf"

	"intumwa/sms"
)

// Attempt is one call to an endpoint.
type Attempt struct {
	Number     int       `json:"-"` // from 1
	At         time.Time `json:"at"`
	Status     int       `json:"status,omitempty"` // of the response; 0: none came
	Result     string    `json:"result"`           // 2xx 3xx 4xx 5xx timeout dns tls blocked refused other
	DurationMS int64     `json:"ms"`
	Error      string    `json:"error,omitempty"`   // why no response came
	Excerpt    string    `json:"excerpt,omitempty"` // beginning of the response's body, at most 1 KiB
}

// Answer returns the beginning of an attempt's response, safe to show anywhere: without non-graphic characters and
// those that change the text direction. A line break becomes a space.
func (a Attempt) Answer() string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case sms.IsControl(r) || !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, a.Excerpt)
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
		return resultTLS, excerptOf([]byte(err.Error()))
	case errors.Is(err, syscall.ECONNREFUSED):
		return resultRefused, "the connection was refused"
	}
	return resultOther, "the connection failed or the answer was not HTTP"
}

// excerptBytes is how much of a response an attempt keeps.
const excerptBytes = 1 << 10

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

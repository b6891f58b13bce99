package webhooks

import (
	"strings"
	"time"
	"unicode"

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

	retryAfter time.Duration // that a failure's response asked for
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

func resultOfStatus(status int) string {
	if status < 200 || status > 599 {
		return resultOther
	}
	return results[status/100-2]
}

const excerptBytes = 1 << 10 // of a response to keep

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

// Package sms has the basic types of messages: phone numbers, encodings, segments,
// templates, statuses and refusals. It does no I/O and imports nothing outside the
// standard library.
//
// SplitEncoded is the only place in the product that cuts a text into segments, and Count
// the only one that counts them: billing, previews and the dispatcher use the same
// rules.
package sms

import "strconv"

// Status is the state of a message (rule api 3). The values are stored and never change.
type Status uint8

const (
	// Pending: recorded and paid, not final yet.
	Pending Status = 0
	// Sent: confirmed by the carrier.
	Sent Status = 1
	// Failed: refused or reported as failed by the carrier, or expired.
	Failed Status = 2
)

var statusNames = [...]string{Pending: "pending", Sent: "sent", Failed: "failed"}

// String returns the status's name in the API.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// Final reports whether the status never changes again.
func (s Status) Final() bool { return s == Sent || s == Failed }

// ParseStatus parses a name of String.
func ParseStatus(name string) (Status, bool) {
	for status, known := range statusNames {
		if name == known {
			return Status(status), true
		}
	}
	return 0, false
}

// Refusal is the error of a send that a business rule forbids (rule api 7.2). The API returns its text to the customer
// with HTTP 400, word for word. Use errors.As.
type Refusal struct {
	Reason string // the rule, a label value of metrics: from a closed set
	Text   string // for the customer
}

// Error returns the text for the customer.
func (r Refusal) Error() string { return r.Text }

// CompanyID is the company whose rows are looked up. It has its own type so that a user's or a message's id cannot be
// passed by mistake. The zero value finds nothing, and no value finds the rows of all companies.
type CompanyID int64

// Valid reports whether c can be the id of a company.
func (c CompanyID) Valid() bool { return c > 0 }

// String returns the number.
func (c CompanyID) String() string { return strconv.FormatInt(int64(c), 10) }

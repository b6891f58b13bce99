package sms

import (
	"strings"
	"time"
)

// Limits of what customers give, in characters (rule api 8, rule choices 12.1).
const (
	MaxText     = 600 // of a message, a template or a reply
	MaxVariable = 255 // of a template's variable
	MaxSender   = 11
	MaxLabel    = 64 // a client_reference or cost_center
)

// Limits of when a message is sent (rule choices 12.2).
const (
	MaxAhead = 30 * 24 * time.Hour // until it is to be sent
	MaxValid = 3 * 24 * time.Hour  // after that, until it expires
)

// ValidSender reports whether a name can be a sender ID: 1 to 11 ASCII letters and digits.
func ValidSender(name string) bool {
	return name != "" && len(name) <= MaxSender &&
		strings.Trim(name, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

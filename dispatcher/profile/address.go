package profile

import (
	"strings"

	"intumwa/sms"
)

// TONNPI is a type of number and a numbering plan (SMPP 3.4, 5.2.5 and 5.2.6).
type TONNPI struct{ TON, NPI uint8 }

// Sources holds the TON and NPI for each kind of sender.
type Sources struct {
	Alphanumeric  TONNPI
	Short         TONNPI // a short code: digits without a country's code
	International TONNPI // a number with its country's code
}

// longestShort is the most digits of a number without a country's code: Burundi's subscribers have 8 digits, its short
// codes 3 to 6.
const longestShort = 8

// countryCode is Burundi's.
const countryCode = "257"

// Kind is the kind of a sender, as the configuration spells it.
type Kind string

// Kinds of senders.
const (
	Alphanumeric  Kind = "alphanumeric"
	Short         Kind = "short"
	International Kind = "international"
)

// KindOf returns a sender's kind and its digits, or the sender itself if it has letters. A number loses its +: TON 1
// says that.
func KindOf(sender string) (Kind, string) {
	digits := strings.TrimPrefix(sender, "+")
	switch {
	case digits == "" || strings.Trim(digits, "0123456789") != "":
		return Alphanumeric, sender
	case len(digits) <= longestShort:
		return Short, digits
	}
	return International, digits
}

// For returns the TON and NPI of a kind. The caller may change them.
func (s *Sources) For(kind Kind) *TONNPI {
	switch kind {
	case Short:
		return &s.Short
	case International:
		return &s.International
	}
	return &s.Alphanumeric
}

// DestForm is how the recipient's number is written.
type DestForm uint8

// Forms of the recipient's number.
const (
	DestInternational DestForm = iota // 25779123456
	DestPlus                          // +25779123456
	DestZeros                         // 0025779123456
	DestNational                      // 79123456
	DestTrunk                         // 079123456
)

// write returns the number in this form.
func (f DestForm) write(number sms.Number) string {
	digits := number.Digits()
	switch f {
	case DestPlus:
		return "+" + digits
	case DestZeros:
		return "00" + digits
	case DestNational, DestTrunk:
		national := strings.TrimPrefix(digits, countryCode)
		if f == DestTrunk {
			return "0" + national
		}
		return national
	}
	return digits
}

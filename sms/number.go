package sms

import "strings"

// Burundi numbers: country code 257 and eight national digits, without a trunk prefix; 00 is the international prefix.
const (
	countryCode    = "257"
	nationalDigits = 8

	localForm         = nationalDigits
	bareForm          = len(countryCode) + nationalDigits
	internationalForm = len("00") + bareForm
	e164Length        = len("+") + bareForm
)

// Number is a Burundi phone number in E.164 form, "+257XXXXXXXX". Plan.Parse returns
// valid ones; a stored one may be converted without parsing.
type Number string

// National returns the eight national digits.
func (n Number) National() string {
	if len(n) != e164Length {
		return ""
	}
	return string(n[len("+")+len(countryCode):])
}

// Digits returns the number without its plus sign, as in a submit_sm: "257XXXXXXXX".
func (n Number) Digits() string {
	if len(n) != e164Length {
		return ""
	}
	return string(n[len("+"):])
}

// Masked returns the number for logs: "+25779****56", and "+250****67" for a foreign one.
func (n Number) Masked() string {
	switch {
	case len(n) < 11:
		return "****"
	case len(n) != e164Length:
		return string(n[:4]) + "****" + string(n[len(n)-2:])
	}
	return string(n[:6]) + "****" + string(n[len(n)-2:])
}

// Obscured returns the number's form after its retention: "+2577XXXXX12", which cannot be parsed, sent to or searched. A
// hundred thousand numbers share it.
func (n Number) Obscured() string {
	if len(n) != e164Length {
		return "X"
	}
	return string(n[:5]) + "XXXXX" + string(n[10:])
}

// IsObscured reports whether n is a result of Obscured.
func (n Number) IsObscured() bool { return strings.Contains(string(n), "X") }

// Country returns the ISO 3166-1 alpha-2 code of the number's country.
func (n Number) Country() string { return "BI" }

// digits collects the significant characters of a typed number.
type digits struct {
	at   [internationalForm]byte
	n    int
	plus bool
}

// read parses a number: ASCII digits, and at most one plus sign before the first digit; spaces, hyphens, dots and
// parentheses are ignored. It returns false for anything else, and for more digits than any form has.
func (d *digits) read(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			if d.n == len(d.at) {
				return false
			}
			d.at[d.n] = c
			d.n++
		case c == ' ' || c == '-' || c == '.' || c == '(' || c == ')':
		case c == '+' && !d.plus && d.n == 0:
			d.plus = true
		default:
			return false
		}
	}
	return true
}

// national returns the eight national digits of the four accepted forms: +257 and 8, 257 and 8, 00257 and 8, or 8 alone
// (rule choices 2.1).
func (d *digits) national() ([]byte, bool) {
	all := d.at[:d.n]
	switch {
	case d.n == localForm && !d.plus:
		return all, true
	case d.n == bareForm && string(all[:3]) == countryCode:
		return all[3:], true
	case d.n == internationalForm && !d.plus && string(all[:5]) == "00"+countryCode:
		return all[5:], true
	}
	return nil, false
}

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

// Obscured returns the number's form after its retention: "+2577XXXXX12", which cannot be parsed, sent to or searched.
// A hundred thousand numbers share it.
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

package sms

import (
	"strings"
	"unicode"
)

// CompactAddress removes what may stand between the digits of a number: spaces, hyphens, dots, parentheses and
// invisible characters. "+257 22 00-11.22" is "+25722001122". Text that is not a number is returned unchanged.
func CompactAddress(text string) string {
	bare := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(".()", r) {
			return -1
		}
		return r
	}, text)
	if strings.Trim(strings.TrimPrefix(bare, "+"), "0123456789") != "" {
		return text
	}
	return bare
}

// FromCarrier returns the national number of an address in the forms in which carriers write it: 79123456, 079123456,
// +079123456, and 25779123456, 257079123456 with or without 0, 00, 000 or +. It ignores which ranges are open.
// +79123456 and 0079123456 are none: those are foreign numbers.
func FromCarrier(address string) (number Number, ok bool) {
	digits, plus := strings.CutPrefix(CompactAddress(address), "+")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	rest := strings.TrimLeft(digits, "0")
	zeros := len(digits) - len(rest)
	if national, ours := strings.CutPrefix(rest, countryCode); ours && zeros <= 3 {
		if national = strings.TrimPrefix(national, "0"); len(national) == nationalDigits {
			return Number("+" + countryCode + national), true
		}
	}
	if len(rest) == nationalDigits && (zeros == 1 || zeros == 0 && !plus) { // no country code begins with 0
		return Number("+" + countryCode + rest), true
	}
	return "", false
}

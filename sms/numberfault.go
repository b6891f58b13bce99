package sms

import (
	"regexp"
	"strings"
	"unicode"
)

// NumberFault is why a text is not a number, as far as its writer can do something about it.
type NumberFault int

// The faults of a number.
const (
	NumberOther      NumberFault = iota
	NumberScientific             // a spreadsheet shortened it: 2.5779E+10
	NumberDecimal                // a spreadsheet made it a decimal: 79123400.0
	NumberSeveral                // more than one number
	NumberTrunk                  // a 0 before the eight digits
)

const maxTyped = 200 // bytes of a text that Fault explains

var (
	scientific = regexp.MustCompile(`^\+?[0-9]+([.,][0-9]+)?[eE]\+?[0-9]{1,2}$`)
	decimal    = regexp.MustCompile(
		`^\+?[0-9]{5,}[.,][0-9]{1,6}$|^\+?[0-9]{1,3}(\.[0-9]{3})+[.,][0-9]$|^[0-9]{2}[.,][0-9]{6}$`)
	trunk   = regexp.MustCompile(`^(?:\+?257|00257)?0([0-9]{8})$`)
	between = regexp.MustCompile(`[^0-9+]+`)
)

// Fault explains a text that Parse refuses.
func (p *Plan) Fault(s string) NumberFault {
	if len(s) > maxTyped {
		return NumberOther
	}
	inner, _ := unwrap(s)
	bare := strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) || isSeparator(c) {
			return -1
		}
		return c
	}, inner)
	switch {
	case scientific.MatchString(bare):
		return NumberScientific
	case decimal.MatchString(bare):
		return NumberDecimal
	case p.several(inner):
		return NumberSeveral
	}
	if m := trunk.FindStringSubmatch(bare); m != nil {
		if _, ok := p.Parse(m[1]); ok {
			return NumberTrunk
		}
	}
	return NumberOther
}

// several reports whether a text has two numbers or more, one after the other.
func (p *Plan) several(s string) bool {
	found, typed := 0, ""
	for _, group := range between.Split(s, -1) {
		if strings.HasPrefix(group, "+") {
			typed = ""
		}
		typed += group
		if _, ok := p.Parse(typed); ok {
			found, typed = found+1, ""
		}
	}
	return found > 1
}

package sms

import (
	"slices"
	"sync/atomic"
)

// mobilePrefixes are Burundi's mobile ranges (rule choices 2.2): 29 former UCOM, 6x Lumitel, 71, 72, 76, 79 Leo, 75, 78
// former Smart, 77 Onatel.
//
// libphonenumber accepts all of 61–69. Our list has precedence and lacks 63 and 64: a carrier that serves them lists
// them as its prefixes.
var mobilePrefixes = [...]string{
	"29", "61", "62", "65", "66", "67", "68", "69",
	"71", "72", "75", "76", "77", "78", "79",
}

// Plan is the set of valid national numbers: the mobile ranges and the prefixes of the configured carriers, because
// ranges open before tables list them. It is safe for concurrent use. The zero Plan refuses every number.
type Plan struct {
	ranges atomic.Pointer[[]numberRange] // ascending, disjoint
}

// numberRange is a run of national numbers, both ends included.
type numberRange struct {
	first, last uint32
}

// NewPlan returns the plan of the mobile ranges and the carriers' prefixes of 1 to 8 national digits. Invalid prefixes
// (ValidPrefix) are ignored; the configuration reports them.
func NewPlan(carrierPrefixes ...string) *Plan {
	var ranges []numberRange
	for _, list := range [][]string{mobilePrefixes[:], carrierPrefixes} {
		for _, prefix := range list {
			if ValidPrefix(prefix) {
				ranges = append(ranges, rangeOf(prefix))
			}
		}
	}
	slices.SortFunc(ranges, func(a, b numberRange) int { return int(a.first) - int(b.first) })
	merged := ranges[:1]
	for _, next := range ranges[1:] {
		if end := &merged[len(merged)-1]; next.first <= end.last+1 {
			end.last = max(end.last, next.last)
			continue
		}
		merged = append(merged, next)
	}
	plan := new(Plan)
	merged = slices.Clip(merged)
	plan.ranges.Store(&merged)
	return plan
}

// Replace copies another plan into p, for all users of p.
func (p *Plan) Replace(other *Plan) { p.ranges.Store(other.ranges.Load()) }

// ValidPrefix reports whether a prefix is one to eight ASCII digits.
func ValidPrefix(prefix string) bool {
	if len(prefix) == 0 || len(prefix) > nationalDigits {
		return false
	}
	for i := 0; i < len(prefix); i++ {
		if prefix[i] < '0' || prefix[i] > '9' {
			return false
		}
	}
	return true
}

// rangeOf returns the national numbers that begin with a prefix.
func rangeOf(prefix string) numberRange {
	first, width := uint32(0), uint32(1)
	for i := range nationalDigits {
		first *= 10
		if i < len(prefix) {
			first += uint32(prefix[i] - '0')
		} else {
			width *= 10
		}
	}
	return numberRange{first: first, last: first + width - 1}
}

// Parse parses a number in any accepted form and returns it in E.164. A number that is in E.164 already is not copied:
// the result shares the input's memory.
func (p *Plan) Parse(s string) (Number, bool) {
	var d digits
	if !d.read(s) {
		return "", false
	}
	national, ok := d.national()
	if !ok || !p.covers(national) {
		return "", false
	}
	if len(s) == e164Length { // a plus sign and eleven digits: already E.164
		if s[0] == '+' && d.n == bareForm {
			return Number(s), true
		}
	}
	e164 := [e164Length]byte{'+', '2', '5', '7'}
	copy(e164[1+len(countryCode):], national)
	return Number(e164[:]), true
}

// covers reports whether a range contains the eight digits.
func (p *Plan) covers(national []byte) bool {
	number := uint32(0)
	for _, digit := range national {
		number = number*10 + uint32(digit-'0')
	}
	ranges := p.ranges.Load()
	if ranges == nil {
		return false
	}
	for _, r := range *ranges {
		if number <= r.last {
			return number >= r.first
		}
	}
	return false
}

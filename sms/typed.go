package sms

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// digits collects the significant characters of a typed number. Everything that takes a number from people or programs
// reads it with this: the API, files, pages and commands.
type digits struct {
	at   [internationalForm]byte
	n    int
	plus bool
}

// read parses a number: ASCII digits, and at most one plus sign before the first digit. Ignored are Unicode's format
// characters (direction marks, zero width spaces, soft hyphens), spaces (Zs) and dashes (Pd, and the minus sign), and
// parentheses; also what marks a text in spreadsheets, and "tel:". Dots separate groups (rule choices 2.1). It returns
// false for anything else, and for more digits than any form has.
func (d *digits) read(s string) bool {
	s, ok := unwrap(s)
	if !ok {
		return false
	}
	var g groups
	for i := 0; i < len(s); {
		c, size := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[i:])
		}
		i += size
		switch {
		case c >= '0' && c <= '9':
			if d.n == len(d.at) {
				return false
			}
			d.at[d.n] = byte(c)
			d.n++
			g.digit()
		case c == '.':
			if !g.dot() {
				return false
			}
		case c == '+' && !d.plus && d.n == 0:
			d.plus = true
		case unicode.Is(unicode.Cf, c):
		case isSeparator(c):
			g.open = false
		default:
			return false
		}
	}
	return g.whole(d)
}

// isSeparator reports whether a character may stand anywhere between the digits of a number.
func isSeparator(c rune) bool {
	if c < utf8.RuneSelf {
		return c == ' ' || c == '-' || c == '(' || c == ')'
	}
	return c == '\u2212' || unicode.In(c, unicode.Zs, unicode.Pd)
}

// unwrap removes what marks a text in spreadsheets ('1, ="1", "1"), and "tel:" (RFC 3966). ok is false if a mark has no
// end.
func unwrap(s string) (inner string, ok bool) {
	begin := strings.IndexFunc(s, func(c rune) bool { return !isSeparator(c) && !unicode.Is(unicode.Cf, c) })
	if begin < 0 {
		return s, true
	}
	switch c := s[begin]; {
	case c == '\'':
		return s[begin+1:], true
	case strings.HasPrefix(s[begin:], "\u2019"):
		return s[begin+len("\u2019"):], true
	case c == '=' && strings.HasPrefix(s[begin:], `="`):
		return strings.CutSuffix(s[begin+2:], `"`)
	case c == '"':
		return strings.CutSuffix(s[begin+1:], `"`)
	case len(s) >= begin+4 && strings.EqualFold(s[begin:begin+4], "tel:"):
		return s[begin+4:], true
	}
	return s, true
}

// groups are the groups of digits of a number. A dot may separate two, as in 79.12.34.00. It may also be a decimal
// point: a spreadsheet writes the number 7912340 as "7912340.0", whose eight digits are a stranger's number.
type groups struct {
	sizes [internationalForm]int
	n     int  // groups that have begun
	open  bool // the last one may get more digits

	dots    int
	dotted  int  // the group behind the last dot
	hanging bool // no group has followed the last dot yet
}

func (g *groups) digit() {
	if !g.open {
		if g.hanging {
			g.dotted, g.hanging = g.n, false
		}
		g.n++
		g.open = true
	}
	g.sizes[g.n-1]++
}

// dot ends a group with a dot; false if there is none.
func (g *groups) dot() bool {
	ok := g.open
	g.open, g.hanging = false, true
	g.dots++
	return ok
}

// whole reports whether all dots are between groups. A dot before the last group is a decimal point, unless there are
// others, it stands behind the country code, or all groups are pairs; and nobody writes a last group of one digit.
func (g *groups) whole(d *digits) bool {
	first := 0 // of the national number
	if code := string(d.at[:g.sizes[0]]); code == countryCode || code == "00"+countryCode {
		first = 1
	}
	last := g.n - 1
	switch {
	case g.dots == 0:
		return true
	case g.hanging:
		return false
	case g.dotted < last, g.dots == 1 && g.dotted == first:
		return true
	case g.dots == 1:
		return !slices.ContainsFunc(g.sizes[first:g.n], func(size int) bool { return size != 2 })
	}
	return g.sizes[last] > 1 || slices.Max(g.sizes[:g.n]) == 1
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

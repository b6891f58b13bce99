package kannel

import (
	"strconv"
	"strings"
)

// parameters are the CGI variables of a request. The first of several values counts.
type parameters map[string]string

// add adds those of a query string or a form.
func (p parameters) add(encoded string) {
	for pair := range strings.SplitSeq(encoded, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name = unescape(name); name != "" {
			if _, has := p[name]; !has {
				p[name] = unescape(value)
			}
		}
	}
}

// unescape decodes a value. A percent sign that encodes no octet stands for itself: Kannel takes such requests, and
// clients send them ("100% sure", or a dlr-url whose %d is not encoded again).
func unescape(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b.WriteByte(' ')
		case s[i] == '%' && i+2 < len(s):
			if octet, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil && s[i+1] != '+' {
				b.WriteByte(byte(octet))
				i += 2
				continue
			}
			b.WriteByte('%')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// either returns the value of the first name that is given: Kannel has second names for some.
func (p parameters) either(names ...string) (value string, given bool) {
	for _, name := range names {
		if value, given = p[name]; given {
			return value, true
		}
	}
	return "", false
}

// number returns a number from least to most; unset if the parameter is missing, empty or -1, as in Kannel. What stands
// behind the digits does not count (1440.0, 31;), as in Kannel.
func (p parameters) number(least, most int, names ...string) (n int, unset, ok bool) {
	text, _ := p.either(names...)
	text = strings.TrimSpace(text)
	digits := 0
	for digits < len(text) && (text[digits] >= '0' && text[digits] <= '9' || digits == 0 &&
		(text[0] == '-' || text[0] == '+')) {
		digits++
	}
	if text == "" || text[:digits] == "-1" {
		return 0, true, true
	}
	n, err := strconv.Atoi(text[:digits])
	return n, false, err == nil && n >= least && n <= most
}

// bearer returns the API key: the username is the number before its bar. The password is what stands behind it; a whole
// key counts too, if its number is the same.
func (p parameters) bearer() string {
	user, _ := p.either("username", "user")
	password, _ := p.either("password", "pass")
	if number, _, whole := strings.Cut(password, "|"); whole && number == user {
		return password
	}
	return user + "|" + password
}

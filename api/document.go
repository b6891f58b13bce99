package api

import (
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a body: the deepest legal one has four levels.
const maxDepth = 32

// value is one JSON value: its text without space around it, known to be
// valid; "" where there is none. It is read where it is needed, so a body costs
// no memory beyond its own text, whatever it holds.
type value string

// parse checks that a body is exactly one JSON value (RFC 8259), in UTF-8,
// nested at most maxDepth deep, with every escaped surrogate in a pair: half a
// pair is no character and could not be sent.
func parse(body string) (value, bool) {
	if !utf8.ValidString(body) {
		return "", false
	}
	start := space(body, 0)
	end := check(body, start, 0)
	if end < 0 || space(body, end) != len(body) {
		return "", false
	}
	return value(body[start:end]), true
}

// isNull tells null and no value at all alike: both are a missing field.
func (v value) isNull() bool { return v == "" || v == "null" }

func (v value) isObject() bool { return v != "" && v[0] == '{' }

func (v value) isArray() bool { return v != "" && v[0] == '[' }

// text answers a string's text; ok is false for any other value. A text
// without escapes shares the body's memory.
func (v value) text() (text string, ok bool) {
	if v == "" || v[0] != '"' {
		return "", false
	}
	return unescape(string(v[1:len(v)-1]), maxText), true
}

// maxText is how many octets of a text with escapes are read: more than any
// text may have. What is cut ends with U+FFFD, which neither a number nor a
// blank text has, so it is refused all the same.
const maxText = 64 << 10

// unescape answers a text without its escapes, cut at some most octets.
func unescape(s string, most int) string {
	at := strings.IndexByte(s, '\\')
	if at < 0 {
		return s
	}
	var out strings.Builder
	out.Grow(min(len(s), most))
	for ; at >= 0; at = strings.IndexByte(s, '\\') {
		if out.Len()+at > most {
			break
		}
		out.WriteString(s[:at])
		c := s[at+1]
		s = s[at+2:]
		if c != 'u' {
			if mean := strings.IndexByte("bfnrt", c); mean >= 0 {
				c = "\b\f\n\r\t"[mean]
			}
			out.WriteByte(c)
			continue
		}
		r, _ := hex4(s, 0)
		s = s[4:]
		if utf16.IsSurrogate(r) {
			low, _ := hex4(s, 2)
			r = utf16.DecodeRune(r, low)
			s = s[6:]
		}
		out.WriteRune(r)
	}
	if room := most - out.Len(); at >= 0 || len(s) > room {
		out.WriteString(s[:min(len(s), max(0, room))])
		out.WriteRune(utf8.RuneError)
		return out.String()
	}
	out.WriteString(s)
	return out.String()
}

// members goes over an object's members in the order of the text; over nothing
// if the value is none. Keys are compared exactly, and of equal ones the last
// is to win: readers simply let each member replace what went before.
func (v value) members() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		if !v.isObject() {
			return
		}
		s := string(v)
		for i := space(s, 1); s[i] != '}'; {
			end := skipString(s, i)
			key := unescape(s[i+1:end-1], maxText)
			start := space(s, space(s, end)+1)
			end = skip(s, start)
			if !yield(key, value(s[start:end])) {
				return
			}
			if i = space(s, end); s[i] == ',' {
				i = space(s, i+1)
			}
		}
	}
}

// elements goes over an array's elements; over nothing if the value is none.
func (v value) elements() iter.Seq[value] {
	return func(yield func(value) bool) {
		if !v.isArray() {
			return
		}
		s := string(v)
		for i := space(s, 1); s[i] != ']'; {
			end := skip(s, i)
			if !yield(value(s[i:end])) {
				return
			}
			if i = space(s, end); s[i] == ',' {
				i = space(s, i+1)
			}
		}
	}
}

// skip answers where the valid value that starts at i ends.
func skip(s string, i int) int {
	switch s[i] {
	case '"':
		return skipString(s, i)
	case '{', '[':
		for depth := 0; ; {
			switch s[i] {
			case '"':
				i = skipString(s, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(s) && strings.IndexByte(",]} \n\r\t", s[i]) < 0 {
		i++
	}
	return i
}

func skipString(s string, i int) int {
	for i++; ; i++ {
		i += strings.IndexByte(s[i:], '"')
		slashes := 0
		for s[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

package api

import (
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a body: the deepest legal one has four levels.
const maxDepth = 32

// value is one valid JSON value: its text without surrounding whitespace, "" where
// there is none. It is parsed only where it is used, so a body costs no memory beyond
// its own text, whatever it contains. encoding/json would allocate every value.
type value string

// parse checks that a body is exactly one JSON value (RFC 8259), in UTF-8,
// nested at most maxDepth deep, with every escaped surrogate in a pair: a single
// surrogate is not a character and could not be sent.
func parse(body string) (value, bool) {
	if !utf8.ValidString(body) {
		return "", false
	}
	start := skipSpace(body, 0)
	end := checkValue(body, start, 0)
	if end < 0 || skipSpace(body, end) != len(body) {
		return "", false
	}
	return value(body[start:end]), true
}

// isNull reports whether v is null or missing; both count as a missing field.
func (v value) isNull() bool { return v == "" || v == "null" }

func (v value) isObject() bool { return v != "" && v[0] == '{' }

func (v value) isArray() bool { return v != "" && v[0] == '[' }

// text returns a string's text; ok is false for any other value. A text without
// escapes shares the body's memory.
func (v value) text() (text string, ok bool) {
	if v == "" || v[0] != '"' {
		return "", false
	}
	return unescape(string(v[1:len(v)-1]), maxText), true
}

// maxText is how many octets of a text with escapes are unescaped: more than any
// field may have. A truncated text ends with U+FFFD, so that it cannot pass for a
// number or a blank text.
const maxText = 64 << 10

// unescape resolves the escapes of a text, truncated at about most octets.
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

// members iterates over an object's members in the order of the text; any other value
// has none. Keys are case-sensitive. Of equal keys the last one counts, so callers let
// each member replace the one before.
func (v value) members() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		if !v.isObject() {
			return
		}
		s := string(v)
		for i := skipSpace(s, 1); s[i] != '}'; {
			end := skipString(s, i)
			key := unescape(s[i+1:end-1], maxText)
			start := skipSpace(s, skipSpace(s, end)+1)
			end = skipValue(s, start)
			if !yield(key, value(s[start:end])) {
				return
			}
			if i = skipSpace(s, end); s[i] == ',' {
				i = skipSpace(s, i+1)
			}
		}
	}
}

// elements iterates over an array's elements; any other value has none.
func (v value) elements() iter.Seq[value] {
	return func(yield func(value) bool) {
		if !v.isArray() {
			return
		}
		s := string(v)
		for i := skipSpace(s, 1); s[i] != ']'; {
			end := skipValue(s, i)
			if !yield(value(s[i:end])) {
				return
			}
			if i = skipSpace(s, end); s[i] == ',' {
				i = skipSpace(s, i+1)
			}
		}
	}
}

// skipValue returns the end of the valid value that starts at i.
func skipValue(s string, i int) int {
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

// skipSpace returns the first position from i on that is not JSON whitespace.
func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// checkValue returns the end of the value that starts at i, -1 if it is not valid.
func checkValue(s string, i, depth int) int {
	if i >= len(s) {
		return -1
	}
	switch s[i] {
	case '"':
		return checkString(s, i)
	case '{':
		return checkList(s, i, depth+1, '}')
	case '[':
		return checkList(s, i, depth+1, ']')
	case 't':
		return checkWord(s, i, "true")
	case 'f':
		return checkWord(s, i, "false")
	case 'n':
		return checkWord(s, i, "null")
	}
	return checkNumber(s, i)
}

// checkList checks an array or, closed by a brace, an object.
func checkList(s string, i, depth int, closing byte) int {
	if depth > maxDepth {
		return -1
	}
	if i = skipSpace(s, i+1); i < len(s) && s[i] == closing {
		return i + 1
	}
	for {
		if closing == '}' {
			if i >= len(s) || s[i] != '"' {
				return -1
			}
			if i = checkString(s, i); i < 0 {
				return -1
			}
			if i = skipSpace(s, i); i >= len(s) || s[i] != ':' {
				return -1
			}
			i = skipSpace(s, i+1)
		}
		if i = checkValue(s, i, depth); i < 0 {
			return -1
		}
		if i = skipSpace(s, i); i >= len(s) {
			return -1
		}
		switch s[i] {
		case closing:
			return i + 1
		case ',':
			i = skipSpace(s, i+1)
		default:
			return -1
		}
	}
}

func checkWord(s string, i int, word string) int {
	if !strings.HasPrefix(s[i:], word) {
		return -1
	}
	return i + len(word)
}

func checkNumber(s string, i int) int {
	if s[i] == '-' {
		i++
	}
	switch {
	case i < len(s) && s[i] == '0':
		i++
	default:
		if i = checkDigits(s, i); i < 0 {
			return -1
		}
	}
	if i < len(s) && s[i] == '.' {
		if i = checkDigits(s, i+1); i < 0 {
			return -1
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		return checkDigits(s, i)
	}
	return i
}

// checkDigits requires at least one digit.
func checkDigits(s string, i int) int {
	start := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

func checkString(s string, i int) int {
	for i++; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			if i++; i >= len(s) {
				return -1
			}
			if s[i] != 'u' {
				if strings.IndexByte(`"\/bfnrt`, s[i]) < 0 {
					return -1
				}
				continue
			}
			unit, ok := hex4(s, i+1)
			if !ok {
				return -1
			}
			i += 4
			if !utf16.IsSurrogate(unit) {
				continue
			}
			if !strings.HasPrefix(s[i+1:], `\u`) {
				return -1
			}
			low, ok := hex4(s, i+3)
			if !ok || utf16.DecodeRune(unit, low) == utf8.RuneError {
				return -1
			}
			i += 6
		}
	}
	return -1
}

// hex4 reads four hexadecimal digits.
func hex4(s string, i int) (r rune, ok bool) {
	if i+4 > len(s) {
		return 0, false
	}
	for _, c := range []byte(s[i : i+4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

package api

import (
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// value is one valid JSON value: its text without surrounding whitespace, "" for none. It is parsed where it is used,
// so a body costs no memory beyond its own text (TestAttackMemory). encoding/json only checks it: decoding would
// allocate every value.
type value string

// parse checks that a body in UTF-8 is exactly one JSON value (RFC 8259), with every escaped surrogate in a pair: a
// single surrogate is not a character and could not be sent. A byte order mark may stand before it.
func parse(body string) (value, bool) {
	body = strings.TrimPrefix(body, "\ufeff")
	if body == "" || !json.Valid(bytesOf(body)) || !paired(body) {
		return "", false
	}
	return value(strings.Trim(body, " \n\r\t")), true
}

// bytesOf is a text for json.Valid, without a copy of up to 16 MiB. The slice is read-only.
func bytesOf(text string) []byte {
	return unsafe.Slice(unsafe.StringData(text), len(text)) //nolint:gosec // the slice is only read, and text is not empty
}

// paired reports whether every escaped surrogate of a valid text is one of a pair.
func paired(s string) bool {
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			return true
		}
		s = s[at:]
		unit, escaped := unitOf(s)
		switch {
		case !escaped:
			s = s[2:]
		case !utf16.IsSurrogate(unit):
			s = s[6:]
		default:
			low, escaped := unitOf(s[6:])
			if !escaped || utf16.DecodeRune(unit, low) == utf8.RuneError {
				return false
			}
			s = s[12:]
		}
	}
}

// unitOf returns the UTF-16 unit that a text begins with as an escape.
func unitOf(s string) (unit rune, escaped bool) {
	if !strings.HasPrefix(s, `\u`) {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}

// isNull reports whether v is null or missing; both count as a missing field.
func (v value) isNull() bool { return v == "" || v == "null" }

func (v value) isObject() bool { return v != "" && v[0] == '{' }

func (v value) isArray() bool { return v != "" && v[0] == '[' }

// maxText is the length up to which a text with escapes is unescaped: more than any field may have.
const maxText = 64 << 10

// text returns a string's text; ok is false for any other value. A text without escapes shares the body's memory. One
// with escapes that is longer than maxText is cut and ends with U+FFFD: too long for every field, and neither a number
// nor blank.
func (v value) text() (text string, ok bool) {
	switch {
	case v == "" || v[0] != '"':
		return "", false
	case strings.IndexByte(string(v), '\\') < 0:
		return string(v[1 : len(v)-1]), true
	case len(v) > maxText:
		return strings.ToValidUTF8(string(v[1:maxText]), "") + string(utf8.RuneError), true
	}
	return unescaped(v)
}

func unescaped(v value) (text string, ok bool) {
	err := json.Unmarshal([]byte(v), &text)
	return text, err == nil
}

// members iterates over an object's members in the order of the text; any other value has none. Keys are
// case-sensitive. Of equal keys the last one counts: callers overwrite the earlier one.
func (v value) members() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		if !v.isObject() {
			return
		}
		s := string(v)
		for i := skipSpace(s, 1); s[i] != '}'; {
			end := skipString(s, i)
			key, _ := value(s[i:end]).text()
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

package api

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// space answers the first position from i on that is no JSON whitespace.
func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// check answers where the value that starts at i ends, -1 if it is not valid.
func check(s string, i, depth int) int {
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
	if i = space(s, i+1); i < len(s) && s[i] == closing {
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
			if i = space(s, i); i >= len(s) || s[i] != ':' {
				return -1
			}
			i = space(s, i+1)
		}
		if i = check(s, i, depth); i < 0 {
			return -1
		}
		if i = space(s, i); i >= len(s) {
			return -1
		}
		switch s[i] {
		case closing:
			return i + 1
		case ',':
			i = space(s, i+1)
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

// checkDigits wants at least one.
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

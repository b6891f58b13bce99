package configs

import (
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// bounds checks a number or a duration against the tags min and max.
func (k *checker) bounds(f reflect.StructField, path string, v int64) {
	low, hasLow := bound(f, "min")
	high, hasHigh := bound(f, "max")
	if !(hasLow && v < low) && !(hasHigh && v > high) {
		return
	}
	switch {
	case hasLow && hasHigh:
		k.problem(path, "must be from %s to %s", inWords(f, low), inWords(f, high))
	case hasLow:
		k.problem(path, "must be at least %s", inWords(f, low))
	default:
		k.problem(path, "must be at most %s", inWords(f, high))
	}
}

// line checks a text with the tag max: one line of printable characters.
func (k *checker) line(l leaf) {
	most, ok := bound(l.field, "max")
	if !ok {
		return
	}
	text := l.value.String()
	if n := utf8.RuneCountInString(text); int64(n) > most || !utf8.ValidString(text) ||
		strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		k.problem(l.path, "must be one line of at most %d printable characters", most)
	}
}

// inWords returns a bound as it is written in the file.
func inWords(f reflect.StructField, v int64) string {
	if !isDuration(f) {
		return strconv.FormatInt(v, 10)
	}
	text := time.Duration(v).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

func isDuration(f reflect.StructField) bool {
	return f.Type == durationType || f.Type == reflect.TypeFor[[]time.Duration]()
}

func bound(f reflect.StructField, tag string) (int64, bool) {
	if isDuration(f) {
		d, err := time.ParseDuration(f.Tag.Get(tag))
		return int64(d), err == nil
	}
	n, err := strconv.ParseInt(f.Tag.Get(tag), 10, 64)
	return n, err == nil
}

// unusual are the values below the tag usual: possible, but probably a mistake.
func (c *Config) unusual() (out []Problem) {
	walk(c, func(l leaf) {
		if least, ok := bound(l.field, "usual"); ok && l.value.Int() < least {
			if low, _ := bound(l.field, "min"); l.value.Int() < low {
				return // refused
			}
			out = append(out, Problem{Key: l.path, Line: c.lines[l.path], Text: "is unusually low: below " +
				inWords(l.field, least)})
		}
	})
	return out
}

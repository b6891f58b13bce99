package configs

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// meaning is the Word of what it means.
func meaning[T comparable](is T) Word[T] { return Word[T]{is} }

// TestWords: whatever key takes one of a few words takes each of those that it tells, and each means something of its own.
func TestWords(t *testing.T) {
	lines := strings.Split(string(Sample), "\n")
	found := 0
	c := load(t, string(Sample))
	walk(c, func(l leaf) {
		of := l.field.Type
		if of.Kind() == reflect.Map {
			of = of.Elem()
		}
		into := reflect.New(of)
		word, ok := into.Interface().(encoding.TextUnmarshaler)
		if !ok {
			return
		}
		found++
		known, _ := strings.CutPrefix(fmt.Sprint(word.UnmarshalText([]byte("none of them"))), "must be one of ")
		var meanings []any
		for text := range strings.SplitSeq(known, ", ") {
			if err := word.UnmarshalText([]byte(text)); err != nil || fmt.Sprint(into.Elem()) != text {
				t.Errorf("%s: %s is %v, %v", l.path, text, into.Elem(), err)
			}
			if is := into.Elem().Interface(); slices.Contains(meanings, is) {
				t.Errorf("%s: %s means the same as another word", l.path, text)
			} else {
				meanings = append(meanings, is)
			}
			// The comment of the sample is up to three lines above the key.
			if line := c.lines[l.path]; !strings.Contains(strings.Join(lines[line-4:line-1], " "), text) {
				t.Errorf("%s: the sample does not tell the word %s", l.path, text)
			}
		}
		if len(meanings) < 2 {
			t.Errorf("%s takes only %v", l.path, meanings)
		}
	})
	if found != 14 {
		t.Errorf("%d keys take words", found)
	}
}

// TestUnknownWords: a word that a key does not know is a mistake of reading, for every command: nothing goes on with
// another word in its place.
func TestUnknownWords(t *testing.T) {
	got := refused(t, "billing: {refund: sometimes}\nlog: {level: INFO}\n"+twoCarriers+"    error_classes: {88: bad}\n    on_ambiguous: ''\n",
		"INTUMWA_CARRIERS_LEO_CONFIRM=soon", "INTUMWA_CARRIERS_LUMITEL_RECEIPT_STATES=UNKNOWN=sent,ACCEPTD=maybe")
	want := []string{
		`billing.refund (line 1): must be one of unsubmitted, failed, never, not "sometimes"`,
		`log.level (line 2): must be one of debug, info, warn, error, not "INFO"`,
		`carriers[1].error_classes.88 (line 9): must be one of throttled, temporary, permanent, unroutable, configuration, not "bad"`,
		`carriers[1].on_ambiguous (line 10): must be one of resend, hold, fail, not ""`,
		`INTUMWA_CARRIERS_LUMITEL_RECEIPT_STATES: must be one of sent, failed, none`,
		`INTUMWA_CARRIERS_LEO_CONFIRM: must be one of receipt, submit`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

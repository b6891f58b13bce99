package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// plain is a value as encoding/json would give it.
func (v value) plain(t *testing.T) any {
	switch {
	case v.isNull():
		return nil
	case v.isObject():
		out := map[string]any{}
		for key, member := range v.members() {
			out[key] = member.plain(t)
		}
		return out
	case v.isArray():
		out := []any{}
		for element := range v.elements() {
			out = append(out, element.plain(t))
		}
		return out
	}
	if text, ok := v.text(); ok {
		return text
	}
	var out any
	if err := json.Unmarshal([]byte(v), &out); err != nil {
		if strings.Contains(err.Error(), "cannot unmarshal number") {
			return string(v)
		}
		t.Fatalf("scalar %q: %v", string(v), err)
	}
	return out
}

var surrogate = regexp.MustCompile(`(?i)\\uD[89A-F]`)

// encoding/json is the reference for syntax and values.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"a":"two","A":null}`, `[]`, ` [ 1 , -0.5e+10, true,false,null ] `, `"a\"b\\\u00e9\ud83d\ude00\n"`, `"\ud83d"`,
		`"\ude00\ud83d"`,
		`{"a":{"b":["\\",{"c":"\\\""}]}}`, `01`, `1.`, `.5`, `-`, `1e`, `[1,]`, `{"a":1,}`, `{,}`, `{"a"}`, `nul`, `truee`,
		"\"\x01\"", "\"\xff\"", `"\x"`,
		`"\u12g4"`, `"\u12`, `{} {}`, ``, ` `, `[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]`,
		"\ufeff{}", `{"a\u0062":1,"ab":2}`,
		strings.Repeat(`[`, 99) + strings.Repeat(`]`, 99), `"unterminated`, `{"a":"b"`, `[1 2]`, `{"a" 1}`, `{1:2}`, `"\`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, refused := decode(text, ""); refused != nil {
			if utf8.ValidString(text) {
				t.Fatalf("%q is refused", text)
			}
			return
		}
		v, ok := parse(text)
		text = strings.TrimPrefix(text, "\ufeff")
		legal := json.Valid([]byte(text))
		if ok && !legal {
			t.Fatalf("%q is taken", text)
		}
		if !ok {
			if legal && !surrogate.MatchString(text) {
				t.Fatalf("%q is refused", text)
			}
			return
		}
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal number") {
				return // beyond float64; nothing here reads numbers
			}
			t.Fatalf("%q: %v", text, err)
		}
		if got := v.plain(t); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %#v, not %#v", text, got, want)
		}
	})
}

// TestByteOrderMark: programs on Windows write one before the JSON (RFC 8259, 8.1: a reader may ignore it). Other
// encodings are refused.
func TestByteOrderMark(t *testing.T) {
	for _, test := range []struct {
		source, body string
		want         string
	}{
		{"PowerShell 5, .NET Encoding.UTF8", "\ufeff{\"a\":\"b\"}", "b"},
		{"and blanks", "\ufeff \r\n{\"a\":\"b\"}\n", "b"},
		{"two marks", "\ufeff\ufeff{\"a\":\"b\"}", ""},
		{"a mark behind blanks", " \ufeff{\"a\":\"b\"}", ""},
		{"a mark at the end", "{\"a\":\"b\"}\ufeff", ""},
		{"only a mark", "\ufeff", ""},
		{"a mark within a text stays", "{\"a\":\"\ufeffb\"}", "\ufeffb"},
		{"UTF-16 little", "\xff\xfe{\x00}\x00", ""},
		{"UTF-16 big", "\xfe\xff\x00{\x00}", ""},
		{"UTF-16 without a mark", "{\x00}\x00", ""},
	} {
		got := ""
		root, ok := parse(test.body)
		for _, v := range root.members() {
			got, _ = v.text()
		}
		if ok != (test.want != "") || got != test.want {
			t.Errorf("%s: %q, %v", test.source, got, ok)
		}
	}
}

func TestLoneSurrogateIsNoText(t *testing.T) {
	for _, text := range []string{`"\ud83d"`, `"\ude00"`, `"\ud83dx"`, `"\ud83d\ud83d"`, `"\ude00\ud83d"`, `{"\ud83d":1}`,
		`"\ud83d\u0041"`} {
		if _, ok := parse(text); ok {
			t.Errorf("%s is taken", text)
		}
	}
	v, ok := parse(`"\ud83d\ude00\uD83D\uDE00"`)
	if text, _ := v.text(); !ok || text != "😀😀" {
		t.Errorf("a pair is read as %q, %v", text, ok)
	}
}

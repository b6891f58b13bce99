package sms

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is a text with placeholders (rule api 4.3). A placeholder is a name
// in double curly braces, with or without whitespace around it: an ASCII letter
// or underscore, then letters, digits or underscores. Whatever is not exactly
// that stays as text. A Template is immutable and safe for concurrent use.
type Template struct {
	pieces []piece
	names  []string
}

// piece is a stretch of text and the placeholder after it, as an index into
// the names; the last piece has none.
type piece struct {
	text string
	name int
}

const noName = -1

// ParseTemplate takes a text apart. Every text is a template. The time it takes
// is linear in the text: a failed placeholder is left at its first character
// that cannot belong to one, and no two attempts read the same stretch.
func ParseTemplate(text string) *Template {
	t := &Template{}
	known := make(map[string]int)
	start, at := 0, 0 // what is not yet in a piece; where to look next
	for {
		open := strings.Index(text[at:], "{{")
		if open < 0 {
			break
		}
		open += at
		name, length := placeholder(text[open:])
		if length == 0 {
			at = open + 1 // "{{{a}}": the second brace may open one
			continue
		}
		index, ok := known[name]
		if !ok {
			index = len(t.names)
			known[name] = index
			t.names = append(t.names, name)
		}
		t.pieces = append(t.pieces, piece{text: text[start:open], name: index})
		at = open + length
		start = at
	}
	if start < len(text) {
		t.pieces = append(t.pieces, piece{text: text[start:], name: noName})
	}
	return t
}

// placeholder reads the placeholder that a text begins with: its name and its
// length in bytes, 0 if there is none. The text begins with two braces.
func placeholder(text string) (name string, length int) {
	begin := skipSpace(text, len("{{"))
	end := begin
	for end < len(text) && isNameByte(text[end], end == begin) {
		end++
	}
	if end == begin {
		return "", 0
	}
	name = text[begin:end]
	end = skipSpace(text, end)
	if !strings.HasPrefix(text[end:], "}}") {
		return "", 0
	}
	return name, end + len("}}")
}

// skipSpace returns the first position from at on that is not whitespace
// (Unicode White_Space).
func skipSpace(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !unicode.IsSpace(r) {
			break
		}
		at += size
	}
	return at
}

func isNameByte(c byte, first bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		return true
	case c >= '0' && c <= '9':
		return !first
	}
	return false
}

// Names returns the placeholders, each once, in order of first use. The slice
// is the template's own: read it only.
func (t *Template) Names() []string { return t.names }

// Missing returns the placeholders that have no value, in order of first use.
// A key that is there with a null (nil) has one: the empty string.
func (t *Template) Missing(variables map[string]*string) []string {
	var missing []string
	for _, name := range t.names {
		if _, ok := variables[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// Render puts the values in their places. Null and missing ones render as
// nothing, a value is never looked at for placeholders, and keys that the
// template does not use are ignored (rule api 4.3).
func (t *Template) Render(variables map[string]*string) string {
	switch {
	case len(t.pieces) == 0:
		return ""
	case len(t.names) == 0:
		return t.pieces[0].text
	}
	var few [8]string
	values := few[:0]
	for _, name := range t.names {
		value := ""
		if v := variables[name]; v != nil {
			value = *v
		}
		values = append(values, value)
	}
	size := 0
	for _, p := range t.pieces {
		size += len(p.text)
		if p.name != noName {
			size += len(values[p.name])
		}
	}
	var text strings.Builder
	text.Grow(size)
	for _, p := range t.pieces {
		text.WriteString(p.text)
		if p.name != noName {
			text.WriteString(values[p.name])
		}
	}
	return text.String()
}

package sms

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is a text with placeholders (rule api 4.3). A placeholder is a name in double curly braces, with optional
// whitespace around it. A Template is immutable and safe for concurrent use.
type Template struct {
	pieces []piece
	names  []string
}

// piece is text and the placeholder after it, as an index into the names; the last piece has none.
type piece struct {
	text string
	name int
}

const noName = -1

// ParseTemplate parses a template of the API. A name is a letter or underscore, then letters with their accents, digits
// or underscores, of any script. Everything else is plain text, so every text is valid.
func ParseTemplate(text string) *Template { return parseTemplate(text, placeholder) }

// ParseColumns parses a template whose names are the columns of a file: any text without braces. Check FirstBrace
// before it is sent.
func ParseColumns(text string) *Template { return parseTemplate(text, column) }

// parseTemplate takes linear time: a failed placeholder ends at the first character that cannot belong to one, and no
// two attempts read the same text.
func parseTemplate(text string, placeholder func(string) (name string, length int)) *Template {
	t := &Template{}
	known := make(map[string]int)
	start, at := 0, 0 // start of the text that is in no piece yet; where to search next
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

// placeholder parses the placeholder at the beginning of a text and returns its name
// and its length in bytes, 0 if there is none. The text begins with two braces.
func placeholder(text string) (name string, length int) {
	begin := skipSpace(text, len("{{"))
	end := begin
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !inName(r, end == begin) {
			break
		}
		end += size
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

// skipSpace returns the first position from at on that is not whitespace (Unicode
// White_Space).
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

// inName reports whether a name may have a character. An accent may be a character of its own, behind its letter.
func inName(r rune, first bool) bool {
	return r == '_' || unicode.IsLetter(r) || !first && (unicode.IsDigit(r) || unicode.IsMark(r))
}

// column is placeholder for ParseColumns.
func column(text string) (name string, length int) {
	end := len("{{") + strings.IndexAny(text[len("{{"):], "{}")
	if end < len("{{") || !strings.HasPrefix(text[end:], "}}") {
		return "", 0
	}
	name = strings.TrimSpace(text[len("{{"):end])
	if name == "" || strings.HasPrefix(text[end:], "}}}") {
		return "", 0
	}
	return name, end + len("}}")
}

// FirstBrace returns the first double brace of a template's plain text with some of what follows, and its line and
// column in the template, from 1. found is false if there is none: all of the template's double braces are
// placeholders.
func FirstBrace(text string) (near string, line, column int, found bool) {
	at := -1
	for rest := 0; rest < len(text); {
		next := strings.IndexAny(text[rest:], "{}\uff5b\uff5d") // full-width ones, of a keyboard for Chinese or Japanese
		if next < 0 {
			break
		}
		rest += next
		if _, length := columnAt(text[rest:]); length > 0 {
			rest += length
			continue
		}
		_, size := utf8.DecodeRuneInString(text[rest:])
		if strings.HasPrefix(text[rest+size:], text[rest:rest+size]) {
			at = rest
			break
		}
		rest += size
	}
	if at < 0 {
		return "", 0, 0, false
	}
	before := text[:at]
	near, _, _ = strings.Cut(text[at:], "\n")
	if runes := []rune(near); len(runes) > nearRunes {
		near = string(runes[:nearRunes])
	}
	line = 1 + strings.Count(before, "\n")
	return strings.TrimSpace(near), line, 1 + utf8.RuneCountInString(before[1+strings.LastIndexByte(before, '\n'):]), true
}

const nearRunes = 20 // of a fault in a template

// columnAt is column for a text that may begin otherwise.
func columnAt(text string) (name string, length int) {
	if !strings.HasPrefix(text, "{{") {
		return "", 0
	}
	return column(text)
}

// Names returns the placeholders, each once, in the order of first use. Do not change the slice.
func (t *Template) Names() []string { return t.names }

// Missing returns the placeholders without a value, in the order of first use. A key
// with null (nil) has a value: the empty string.
func (t *Template) Missing(variables map[string]*string) []string {
	var missing []string
	for _, name := range t.names {
		if _, ok := variables[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// Render replaces the placeholders by their values. Null and missing values become the empty string, placeholders in
// values are not replaced, and unused keys are ignored (rule api 4.3).
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

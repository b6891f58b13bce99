package configs

import (
	"fmt"
	"reflect"
	"strings"
)

// Sample is a configuration file with every key, its default and its text.
func Sample() string {
	var out strings.Builder
	out.WriteString(`# The configuration of Intumwa, every key at its default. Generated: go generate ./configs
#
# Required: database.url, redis.url (or redis.addresses), one carrier. "intumwa config check" reports all mistakes at once.
# ${NAME} in a value is an environment variable, ${file:/path} the line that a file has, $$ a dollar. Every key can be
# overridden by a variable: INTUMWA_ and its path in upper case, e.g. INTUMWA_API_LISTEN; lists are comma-separated there,
# carriers and links given by name: INTUMWA_CARRIERS_LUMITEL_LINKS_LUMITEL_1_PASSWORD. Durations are 500ms, 90s, 5m, 24h.
`)
	sampleSection(&out, reflect.TypeFor[Config](), "", "")
	return out.String()
}

// sampleSection writes the keys of a section. first is the indent of its first key: that of a list's object has a dash.
func sampleSection(out *strings.Builder, section reflect.Type, first, indent string) {
	for i, f := range reflect.VisibleFields(section) {
		key := keyOf(f)
		if key == "" {
			continue
		}
		if indent == "" {
			out.WriteString("\n")
		}
		dash := indent
		if i == 0 {
			dash = first
		}
		if text := words(f) + f.Tag.Get("text"); text != "" {
			comment(out, indent, text)
		}
		out.WriteString(dash + key + ":")
		switch {
		case isList(f.Type) && f.Tag.Get("example") != "":
			out.WriteString(" " + f.Tag.Get("example") + "\n")
		case isList(f.Type):
			out.WriteString("\n")
			sampleSection(out, f.Type.Elem(), indent+"  - ", indent+"    ")
		case f.Type.Kind() == reflect.Struct && f.Type != tlsType:
			out.WriteString("\n")
			sampleSection(out, f.Type, indent+"  ", indent+"  ")
		default:
			out.WriteString(" " + sampleValue(f) + "\n")
		}
	}
}

const sampleWidth = 118

func comment(out *strings.Builder, indent, text string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > sampleWidth {
			out.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	out.WriteString(line + "\n")
}

// sampleValue is a key's example or default as YAML.
func sampleValue(f reflect.StructField) string {
	text := f.Tag.Get("default")
	if example := f.Tag.Get("example"); example != "" {
		text = example
	}
	switch kind := f.Type.Kind(); {
	case kind == reflect.Map:
		return "{}"
	case kind == reflect.Slice && f.Type.Elem().Kind() == reflect.String:
		return "[" + strings.Join(quoted(split(text)), ", ") + "]"
	case kind == reflect.Slice:
		return "[" + strings.Join(split(text), ", ") + "]"
	case text == "":
		return zero(f)
	}
	return text
}

// quoted quotes the texts that look like numbers.
func quoted(texts []string) []string {
	for i, text := range texts {
		if strings.Trim(text, "0123456789") == "" {
			texts[i] = fmt.Sprintf("%q", text)
		}
	}
	return texts
}

// zero is the value of a key without a default.
func zero(f reflect.StructField) string {
	switch {
	case f.Type == durationType:
		return "0s"
	case f.Type.Kind() == reflect.Bool:
		return "false"
	case f.Type.Kind() == reflect.String:
		return `""`
	}
	return "0"
}

// Manual are the lists of docs/configuration.md: a section each, with a line for every key: its default and the first
// sentence of its text. The sample has the whole text.
func Manual() string {
	var out strings.Builder
	general := heading(&out, "General")
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if key := keyOf(f); key != "" && !isSection(key) {
			general(key, f)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if key := keyOf(f); key != "" && isSection(key) {
			section, path := f.Type, key
			if isList(section) {
				section, path = section.Elem(), key+"[]"
			}
			line := heading(&out, strings.ToUpper(key[:1])+key[1:])
			manualSection(section, path, line)
		}
	}
	return out.String()
}

// isSection reports whether a top-level key has keys of its own.
func isSection(key string) bool {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if keyOf(f) == key {
			return isList(f.Type) || f.Type.Kind() == reflect.Struct
		}
	}
	return false
}

// heading begins a section and returns the function that adds lines to its list.
func heading(out *strings.Builder, name string) func(path string, f reflect.StructField) {
	fmt.Fprintf(out, "\n## %s\n\n", name)
	return func(path string, f reflect.StructField) {
		value := f.Tag.Get("default")
		if f.Tag.Get("required") != "" {
			value = "required"
		}
		if value != "" {
			value = " (" + strings.ReplaceAll(value, ",", ", ") + ")"
		}
		fmt.Fprintf(out, "- `%s`%s: %s\n", path, value, words(f)+firstSentence(f.Tag.Get("text")))
	}
}

// firstSentence ends before a full stop and a capital.
func firstSentence(text string) string {
	for i := range len(text) - 2 {
		if text[i] == '.' && text[i+1] == ' ' && text[i+2] >= 'A' && text[i+2] <= 'Z' {
			return text[:i+1]
		}
	}
	return text
}

// words lists a key's permitted words, unless its text has them.
func words(f reflect.StructField) string {
	list := strings.Fields(f.Tag.Get("oneof"))
	for _, word := range list {
		if !strings.Contains(f.Tag.Get("text"), word) {
			return strings.Join(list, ", ") + ". "
		}
	}
	return ""
}

func manualSection(section reflect.Type, path string, line func(path string, f reflect.StructField)) {
	for _, f := range reflect.VisibleFields(section) {
		key := keyOf(f)
		switch {
		case key == "":
		case isList(f.Type):
			manualSection(f.Type.Elem(), path+"."+key+"[]", line)
		case f.Type.Kind() == reflect.Struct && f.Type != tlsType:
			manualSection(f.Type, path+"."+key, line)
		default:
			line(path+"."+key, f)
		}
	}
}

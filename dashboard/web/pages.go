package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"intumwa/sms"
)

// longWord is the most characters of a word that a cell of a table keeps in one piece.
const longWord = 24

// wrap is [sms.Printable] for a cell of a table: an endless word may break, a usual one may not.
func wrap(text string) template.HTML {
	var out strings.Builder
	word := 0
	for _, r := range sms.Printable(text) {
		if word++; r == ' ' {
			word = 0
		}
		if word > longWord {
			out.WriteString("<wbr>")
		}
		if r == '+' { // as html/template does
			out.WriteString("&#43;")
		} else {
			out.WriteString(template.HTMLEscapeString(string(r)))
		}
	}
	return template.HTML(out.String()) //nolint:gosec // escaped above
}

// Indented formats JSON over several lines; other text is unchanged.
func Indented(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}

// execute writes a page within its frame.
func (s *Site) execute(w io.Writer, name string, data *View) error {
	all, err := s.opts.Templates()
	if err != nil {
		return err
	}
	var title, main strings.Builder
	if err := all.ExecuteTemplate(&title, name+" title", data); err != nil {
		return err
	}
	if err := all.ExecuteTemplate(&main, name+" main", data); err != nil {
		return err
	}
	data.Title, data.Main = template.HTML(title.String()), template.HTML(main.String()) //nolint:gosec // templates escaped
	return all.ExecuteTemplate(w, "frame", data)
}

// field is a labelled input, for the part "field".
type field struct {
	Name, Label, Hint, Type, Value, Wrong string
	Autocomplete, Inputmode, Accept       string
	Required, Autofocus                   bool
	MaxLength, Rows                       int
	Options                               []Option
}

// newField makes a field:  {{field $ "email" "signin.email" "type" "email" "autocomplete" "username"}}. The options are
// type (of an input, or choice or lines), label (a text instead of its key), autocomplete, inputmode, accept (of a
// file), value, hint (a text), options (of a choice), rows (of lines), max (of lines and texts), optional (with any
// value) and focus (false: not).
func newField(p *View, name, label string, options ...any) (field, error) {
	f := field{Name: name, Label: p.T(label), Type: "text", Autocomplete: "off", Required: true,
		Value: p.Form.Value(name), Wrong: p.Form.Wrong(name), Rows: 3}
	if len(options)%2 != 0 {
		return f, fmt.Errorf("field %s: options come in pairs", name)
	}
	for i := 0; i < len(options); i += 2 {
		text, _ := options[i+1].(string)
		number, _ := options[i+1].(int)
		switch options[i] {
		case "type":
			f.Type = text
		case "label":
			f.Label = text
		case "autocomplete":
			f.Autocomplete = text
		case "inputmode":
			f.Inputmode = text
		case "accept":
			f.Accept = text
		case "value":
			f.Value = cmp.Or(f.Value, text)
		case "hint":
			f.Hint = text
		case "options":
			f.Options, _ = options[i+1].([]Option)
		case "rows":
			f.Rows = number
		case "max":
			f.MaxLength = number
		case "optional":
			f.Required = false
		case "focus":
			f.Autofocus = options[i+1] != false
		default:
			return f, fmt.Errorf("field %s: there is no option %v", name, options[i])
		}
	}
	switch f.Type {
	case "choice": // one is always chosen, and an empty one is a choice too
		f.Required = false
	case "file", "lines":
	case "password": // never sent back to the browser
		f.Value, f.MaxLength = "", 1024
	default:
		f.MaxLength = cmp.Or(f.MaxLength, 254)
	}
	return f, nil
}

// Option is a line of a choice.
type Option struct{ Value, Text string }

// Tick is a line of a list of which any number can be chosen.
type Tick struct {
	Option

	On bool
}

// Ticks returns the lines of a list for a field whose values are those that are chosen.
func (f *Form) Ticks(field string, of []Option) (list []Tick) {
	for _, o := range of {
		list = append(list, Tick{o, slices.Contains(f.Values[field], o.Value)})
	}
	return list
}

// Options returns the lines of a choice: pairs of a value and the key of its text.
func (v *Visit) Options(pairs ...string) (list []Option) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, Option{pairs[i], v.Lang.T(pairs[i+1])})
	}
	return list
}

// newPart passes several values to a template: {{template "badge" (part "Kind" "good" "Text" (.T "x"))}}.
func newPart(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("part: names and values come in pairs")
	}
	values := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("part: %v is no name", pairs[i])
		}
		values[name] = pairs[i+1]
	}
	return values, nil
}

// Functions are those that every template may call.
var Functions = template.FuncMap{"field": newField, "part": newPart, "plain": sms.Printable, "wrap": wrap,
	"indented": Indented}

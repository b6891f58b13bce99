package configs

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder lays a file's values over a Config that holds the defaults, and notes every mistake.
type decoder struct {
	env      *environ
	lines    map[string]int
	foreign  map[string]bool
	missing  []Problem
	problems Problems
}

var (
	tlsType      = reflect.TypeFor[TLS]()
	durationType = reflect.TypeFor[time.Duration]()
	carrierType  = reflect.TypeFor[Carrier]()
	linkType     = reflect.TypeFor[Link]()
	secretType   = reflect.TypeFor[Secret]()
	urlType      = reflect.TypeFor[URL]()
)

func (d *decoder) file(root *node, c *Config) { d.value("", root, reflect.ValueOf(c).Elem()) }

func (d *decoder) problem(path string, line int, format string, args ...any) {
	d.problems = append(d.problems, Problem{Key: path, Line: line, Text: fmt.Sprintf(format, args...)})
}

// value decodes n into v. A null leaves the default.
func (d *decoder) value(path string, n *node, v reflect.Value) {
	d.lines[path] = n.line
	if n.kind == null {
		return
	}
	switch {
	case v.Type() == tlsType:
		d.tls(path, n, v)
	case v.Kind() == reflect.Struct:
		d.object(path, n, v)
	case v.Kind() == reflect.Map:
		d.mapping(path, n, v)
	case v.Kind() == reflect.Slice:
		d.list(path, n, v)
	case n.kind != scalar:
		d.problem(path, n.line, "must be a single value")
	default:
		d.scalar(path, n, v)
	}
}

func (d *decoder) object(path string, n *node, v reflect.Value) {
	if n.kind != object {
		d.problem(path, n.line, "must be an object with keys")
		return
	}
	for _, p := range n.pairs {
		at := join(path, p.key)
		field, ok := fieldNamed(v, p.key)
		if !ok {
			d.problem(at, p.line, "unknown key")
			continue
		}
		d.value(at, p.value, field)
	}
}

// tls is true, false, or an object, which means true.
func (d *decoder) tls(path string, n *node, v reflect.Value) {
	if n.kind == scalar {
		d.scalar(path, n, v.FieldByName("Enabled"))
		return
	}
	if n.kind != object {
		d.problem(path, n.line, "must be true, false or an object with ca, cert, key, server_name")
		return
	}
	v.FieldByName("Enabled").SetBool(true)
	d.object(path, n, v)
}

func (d *decoder) mapping(path string, n *node, v reflect.Value) {
	if n.kind != object {
		d.problem(path, n.line, "must be an object with keys")
		return
	}
	out := map[string]string{}
	for _, p := range n.pairs {
		at := join(path, p.key)
		d.lines[at] = p.line
		if p.value.kind != scalar {
			d.problem(at, p.line, "must be a single value")
			continue
		}
		out[p.key] = d.expand(at, p.value, nil)
	}
	v.Set(reflect.ValueOf(out))
}

func (d *decoder) list(path string, n *node, v reflect.Value) {
	if n.kind != list {
		d.problem(path, n.line, "must be a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		element := out.Index(i)
		switch v.Type().Elem() {
		case carrierType:
			element.Set(reflect.ValueOf(DefaultCarrier()))
		case linkType:
			element.Set(reflect.ValueOf(DefaultLink()))
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if item.kind == null {
			d.problem(at, item.line, "is empty")
		}
		d.value(at, item, element)
	}
	v.Set(out)
}

func (d *decoder) scalar(path string, n *node, v reflect.Value) {
	before := len(d.problems)
	text := d.expand(path, n, v.Type())
	if len(d.problems) > before {
		return
	}
	if err := setScalar(v, text); err != nil {
		d.problem(path, n.line, "%s%s", err, not(d.foreign, path, text))
	}
}

// setScalar gives v the value that text is. Its errors do not quote the text.
func setScalar(v reflect.Value, text string) error {
	switch {
	case v.Type() == durationType:
		t, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("must be a duration such as 90s, 5m or 24h")
		}
		v.SetInt(int64(t))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		v.SetBool(text == "true")
	case v.CanInt():
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return errors.New("must be a whole number")
		}
		v.SetInt(i)
	default:
		return errors.New("cannot be set to a single value")
	}
	return nil
}

// setText gives v the value that an environment variable holds: lists and maps are comma-separated there.
func setText(v reflect.Value, text string) error {
	switch v.Kind() {
	case reflect.Slice:
		parts := splitList(text)
		out := reflect.MakeSlice(v.Type(), len(parts), len(parts))
		for i, part := range parts {
			if err := setScalar(out.Index(i), part); err != nil {
				return err
			}
		}
		v.Set(out)
	case reflect.Map:
		out := map[string]string{}
		for _, part := range splitList(text) {
			key, value, ok := strings.Cut(part, "=")
			if !ok {
				return errors.New("must be comma-separated key=value pairs")
			}
			out[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
		v.Set(reflect.ValueOf(out))
	default:
		return setScalar(v, text)
	}
	return nil
}

func splitList(text string) []string {
	if strings.TrimSpace(text) == "" {
		return []string{}
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// fieldNamed finds a struct's field by its key.
func fieldNamed(v reflect.Value, key string) (reflect.Value, bool) {
	t := v.Type()
	i := slices.IndexFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return keyOf(f) == key })
	if key == "" || i < 0 {
		return reflect.Value{}, false
	}
	return v.Field(i), true
}

// keyOf is a field's key in the file, empty when it has none.
func keyOf(f reflect.StructField) string {
	if key := f.Tag.Get("yaml"); key != "-" {
		return key
	}
	return ""
}

func join(path, key string) string {
	key = keyShown(key)
	if path == "" {
		return key
	}
	return path + "." + key
}

package configs

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

const envPrefix = "INTUMWA"

// reader lays the values of a file and of the environment over a Config that holds the defaults, and notes every mistake.
type reader struct {
	*document
	env      map[string]string
	asked    map[string]bool // variables that name a key
	lines    map[string]int  // key path -> line of the file
	foreign  map[string]bool // key paths whose values came from outside the file
	missing  []Problem       // secrets that cannot be had; see Config.Check
	problems Problems
}

var (
	tlsType      = reflect.TypeFor[TLS]()
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	urlType      = reflect.TypeFor[URL]()
)

func newReader(env []string) *reader {
	r := &reader{env: map[string]string{}, asked: map[string]bool{envPrefix + "_CONFIG": true},
		lines: map[string]int{}, foreign: map[string]bool{}}
	for _, assignment := range env {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			r.env[name] = value
		}
	}
	return r
}

func (r *reader) problem(path string, line int, format string, args ...any) {
	r.problems = append(r.problems, Problem{Key: path, Line: line, Text: fmt.Sprintf(format, args...)})
}

// value gives v what n says. A null leaves the default.
func (r *reader) value(path string, n ast.Node, v reflect.Value) {
	n = r.plain(n)
	r.lines[path] = lineOf(n)
	if null(n) {
		return
	}
	switch {
	case v.Type() == tlsType:
		r.tls(path, n, v)
	case isSection(v.Type()):
		r.object(path, n, v)
	case v.Kind() == reflect.Map:
		r.mapping(path, n, v)
	case v.Kind() == reflect.Slice:
		r.list(path, n, v)
	default:
		r.scalar(path, n, v)
	}
}

func (r *reader) object(path string, n ast.Node, v reflect.Value) {
	for _, p := range r.pairs(path, n) {
		at := join(path, p.key)
		i := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool { return p.key != "" && keyOf(f) == p.key })
		if i < 0 {
			r.problem(at, p.line, "%s", unknown(at))
			continue
		}
		r.value(at, p.value, v.Field(i))
	}
}

// tls is true, false, or an object, which means true.
func (r *reader) tls(path string, n ast.Node, v reflect.Value) {
	enabled := v.FieldByName("Enabled")
	if _, ok := written(n); ok {
		r.scalar(path, n, enabled)
	} else if _, ok := n.(ast.MapNode); ok {
		enabled.SetBool(true)
		r.object(path, n, v)
	} else {
		r.problem(path, lineOf(n), "must be true, false or an object with ca, cert, key, server_name")
	}
}

func (r *reader) mapping(path string, n ast.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range r.pairs(path, n) {
		at, value := join(path, p.key), reflect.New(v.Type().Elem()).Elem()
		r.lines[at] = p.line
		r.scalar(at, r.plain(p.value), value)
		v.SetMapIndex(reflect.ValueOf(p.key), value)
	}
}

func (r *reader) list(path string, n ast.Node, v reflect.Value) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		r.problem(path, lineOf(n), "must be a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(sequence.Values), len(sequence.Values)))
	for i, item := range sequence.Values {
		switch element := v.Index(i).Addr().Interface().(type) {
		case *Carrier:
			*element = *withDefaults[Carrier]()
		case *Link:
			*element = *withDefaults[Link]()
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if item = r.plain(item); null(item) {
			r.problem(at, lineOf(item), "is empty")
		}
		r.value(at, item, v.Index(i))
	}
}

func (r *reader) scalar(path string, n ast.Node, v reflect.Value) {
	text, ok := written(n)
	if !ok {
		r.problem(path, lineOf(n), "must be a single value")
		return
	}
	if text, ok = r.expand(path, lineOf(n), text, v.Type()); !ok {
		return
	}
	if err := set(v, text); err != nil {
		r.problem(path, lineOf(n), "%s%s", err, not(r.foreign, path, text))
	}
}

// set gives v the value that text is. Its errors do not quote the text.
func set(v reflect.Value, text string) error {
	if word, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return word.UnmarshalText([]byte(text))
	}
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
	}
	return nil
}

// reference is what expand replaces.
var reference = regexp.MustCompile(`\$\$|\$\{([^}]*)(\}?)`)

// expand replaces ${NAME} in a scalar from the environment; $$ is a dollar. A dollar before anything else is itself. A
// variable that is not set is a mistake at once, except in a secret: not every process needs every secret, see
// [Config.Check].
//
// In a URL the values are written as [inURL] says.
func (r *reader) expand(path string, line int, text string, of reflect.Type) (expanded string, ok bool) {
	at, problems := 0, len(r.problems)
	for _, m := range reference.FindAllStringSubmatchIndex(text, -1) {
		expanded += text[at:m[0]]
		at = m[1]
		if m[2] < 0 {
			expanded += "$"
			continue
		}
		name := text[m[2]:m[3]]
		if name == "" || m[4] == m[5] {
			r.problem(path, line, "has a ${ that is not closed; write $$ for a dollar")
			return "", false
		}
		value, set := r.variable(name)
		r.foreign[path] = true
		if of == urlType {
			value = inURL(text, m[0])(value)
		}
		expanded += value
		problem := Problem{Key: path, Line: line, Text: "names an environment variable that is not set; write $$ for a dollar"}
		if plainVariable.MatchString(name) { // else it may be a piece of a secret that has ${ in it
			problem.Text = fmt.Sprintf("the environment variable %s is not set", name)
		}
		switch {
		case set:
		case of == secretType || of == secretFileType:
			r.missing = append(r.missing, problem)
		default:
			r.problems = append(r.problems, problem)
		}
	}
	return expanded + text[at:], len(r.problems) == problems
}

func (r *reader) variable(name string) (string, bool) {
	r.asked[name] = true
	value, ok := r.env[name]
	return value, ok
}

// serviceLink matches what Kubernetes puts into the environment for a service called intumwa, intumwa-api and so on.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$`)

// override lays the INTUMWA_ variables over c.
func (r *reader) override(c *Config) {
	walk(c, func(l leaf) {
		for _, name := range l.variables {
			text, set := r.variable(name)
			if !set || serviceLink.MatchString(name) && strings.Contains(text, "://") {
				continue // or a service called intumwa-redis of the same namespace
			}
			if err := setText(l.value, text); err != nil {
				r.problem(name, 0, "%s", err)
				continue
			}
			delete(r.lines, l.path)
			r.foreign[l.path] = true
			r.missing = slices.DeleteFunc(r.missing, func(p Problem) bool { return p.Key == l.path })
			if l.within != nil { // a key of tls's object turns TLS on
				l.within.Enabled = true
			}
		}
	})
}

// setText gives v the value of a variable: lists and maps are comma-separated there.
func setText(v reflect.Value, text string) error {
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Map {
		return set(v, text)
	}
	var parts []string
	if strings.TrimSpace(text) != "" {
		parts = strings.Split(text, ",")
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(parts), len(parts)))
	} else {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for i, part := range parts {
		if v.Kind() == reflect.Slice {
			if err := set(v.Index(i), strings.TrimSpace(part)); err != nil {
				return err
			}
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return errors.New("must be comma-separated key=value pairs")
		}
		element := reflect.New(v.Type().Elem()).Elem()
		if err := set(element, strings.TrimSpace(value)); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(strings.TrimSpace(key)), element)
	}
	return nil
}

// unused are the INTUMWA_ variables that nothing asked for: probably misspelt keys.
func (r *reader) unused() []Problem {
	var out []Problem
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		if strings.HasPrefix(name, envPrefix+"_") && !r.asked[name] && !serviceLink.MatchString(name) {
			out = append(out, Problem{Key: name, Text: "this environment variable names no key of the configuration"})
		}
	}
	return out
}

package configs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Load reads the file at path (an empty path: no file, only defaults), replaces ${NAME} and ${file:PATH} in its values,
// and overrides it by env's INTUMWA_ variables. env has the form of os.Environ.
//
// A key's variable is INTUMWA_ and the key path in upper case with underscores: INTUMWA_API_LISTEN. Lists are
// comma-separated there, maps comma-separated key=value pairs. A variable names a carrier or link by its name
// (INTUMWA_CARRIERS_LUMITEL_LINKS_LUMITEL_1_PASSWORD) or its index (INTUMWA_CARRIERS_0_LINKS_0_PASSWORD). If both are
// set, the name wins. Variables add no carriers or links.
//
// Load returns everything unreadable as [Problems]. If the file is YAML at all, it also returns the Config, and
// [Config.Check] finds the mistakes in its values. No problem quotes a value.
func Load(path string, env []string) (*Config, error) {
	c, r := Default(), newReader(env)
	if path != "" {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("there is no configuration file %s; --config or INTUMWA_CONFIG names another, and 'intumwa "+
				"config sample' prints one", path)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		body, problem := parse(text)
		if problem != nil {
			return nil, fmt.Errorf("reading the configuration %s: %w", path, Problems{*problem})
		}
		r.value("", body, reflect.ValueOf(c).Elem())
	}
	r.override(c)
	r.presets(c)
	r.unused()
	c.lines, c.missing, c.problems, c.warnings = r.lines, r.missing, r.problems, r.warnings
	return c, r.problems.orNil()
}

const envPrefix = "INTUMWA"

// reader applies a file and the environment to the defaults, and collects every mistake.
type reader struct {
	env      map[string]string
	known    map[string]bool // variables that name a key
	given    map[string]bool // key paths with a value in the file or the environment
	lines    map[string]int  // key path -> line of the file
	missing  []Problem       // unavailable secrets
	problems Problems
	warnings []Problem
}

func newReader(env []string) *reader {
	r := &reader{env: map[string]string{}, known: map[string]bool{envPrefix + "_CONFIG": true}, given: map[string]bool{},
		lines: map[string]int{}}
	for _, assignment := range env {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			r.env[name] = value
		}
	}
	return r
}

func (r *reader) variable(name string) (string, bool) {
	r.known[name] = true
	value, ok := r.env[name]
	return value, ok
}

func (r *reader) problem(path string, line int, format string, args ...any) {
	r.problems = append(r.problems, Problem{Key: path, Line: line, Text: fmt.Sprintf(format, args...)})
}

// value sets v from n. A null keeps the default.
func (r *reader) value(path string, n ast.Node, v reflect.Value) {
	r.lines[path] = lineOf(n)
	r.given[path] = !null(n)
	_, scalar := written(n)
	switch {
	case null(n):
	case v.Type() == tlsType && scalar: // true or false; an object means true
		r.scalar(path, n, v.FieldByName("Enabled"))
	case v.Type() == tonNPIType && n.Type() == ast.SequenceType: // for all kinds of senders
		for i := range v.NumField() {
			at := join(path, keyOf(v.Type().Field(i)))
			r.lines[at], r.given[at] = lineOf(n), true
			r.list(path, n, v.Field(i))
		}
	case v.Kind() == reflect.Struct:
		if v.Type() == tlsType {
			v.FieldByName("Enabled").SetBool(true)
		}
		r.object(path, n, v)
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, p := range r.pairs(path, n) {
			at, value := join(path, p.key), reflect.New(v.Type().Elem()).Elem()
			r.lines[at] = p.line
			r.scalar(at, p.value, value)
			v.SetMapIndex(reflect.ValueOf(p.key), value)
		}
	case v.Kind() == reflect.Slice:
		r.list(path, n, v)
	default:
		r.scalar(path, n, v)
	}
}

func (r *reader) object(path string, n ast.Node, v reflect.Value) {
	for _, p := range r.pairs(path, n) {
		at := join(path, p.key)
		i := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
			return p.key != "" &&
				keyOf(f) == p.key
		})
		if i < 0 {
			r.problem(at, p.line, "unknown key%s", instead(p.key))
			continue
		}
		r.value(at, p.value, v.Field(i))
	}
}

// replaced are keys of earlier builds, by their last member, and what to write instead.
var replaced = map[string]string{
	"encryption_key": "encryption_key at the top of the file",
	"source_ton":     "source_ton_npi", "source_npi": "source_ton_npi",
	"dest_ton": "dest_ton_npi", "dest_npi": "dest_ton_npi",
	"receipt_retention": "retention.receipts",
}

// instead says what replaces an unknown key; "": nothing.
func instead(key string) string {
	if key == "test_number_replacements" {
		return ": a test number can always be replaced 3 times"
	}
	if of, file := strings.CutSuffix(key, "_file"); file && plainKey.MatchString(key) {
		return fmt.Sprintf(": write %s: ${file:PATH}", of)
	}
	if with := replaced[key]; with != "" {
		return ": write " + with
	}
	return ""
}

func (r *reader) list(path string, n ast.Node, v reflect.Value) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		r.problem(path, lineOf(n), "must be a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(sequence.Values), len(sequence.Values)))
	for i, item := range sequence.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		if null(item) {
			r.problem(at, lineOf(item), "is empty")
		}
		if v.Index(i).Kind() == reflect.Struct {
			fill(v.Index(i))
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
	if text, ok = r.expand(path, lineOf(n), text, v.Type() == secretType); !ok {
		return
	}
	if err := set(v, text); err != nil {
		r.problem(path, lineOf(n), "%s", err)
	}
}

// set parses text into v: lists are comma-separated, maps comma-separated key=value pairs. Its errors do not quote the
// text.
func set(v reflect.Value, text string) error {
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
		base := 10
		if digits, hex := strings.CutPrefix(text, "0x"); hex {
			text, base = digits, 16
		}
		i, err := strconv.ParseInt(text, base, v.Type().Bits())
		if err != nil {
			return errors.New("must be a whole number")
		}
		v.SetInt(i)
	case v.Kind() == reflect.Slice:
		parts := split(text)
		v.Set(reflect.MakeSlice(v.Type(), len(parts), len(parts)))
		for i, part := range parts {
			if err := set(v.Index(i), part); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, part := range split(text) {
			key, value, ok := strings.Cut(part, "=")
			if !ok {
				return errors.New("must be comma-separated key=value pairs")
			}
			v.SetMapIndex(reflect.ValueOf(strings.TrimSpace(key)), reflect.ValueOf(strings.TrimSpace(value)))
		}
	}
	return nil
}

// split returns the parts of a comma-separated text.
func split(text string) (parts []string) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		parts = append(parts, strings.TrimSpace(part))
	}
	return parts
}

// override applies the INTUMWA_ variables to c.
func (r *reader) override(c *Config) {
	walk(c, func(l leaf) {
		for _, name := range slices.Concat(l.shared, l.variables) {
			text, is := r.variable(name)
			if !is {
				continue
			}
			if err := set(l.value, text); err != nil {
				r.problem(name, 0, "%s", err)
				continue
			}
			r.given[l.path] = true
			delete(r.lines, l.path)
			r.missing = slices.DeleteFunc(r.missing, func(p Problem) bool { return p.Key == l.path })
			if l.within != nil { // a key within tls turns TLS on
				l.within.Enabled = true
			}
		}
	})
}

// serviceLink matches the variables that Kubernetes sets for services named intumwa, intumwa-api and so on.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$`)

// unused warns of INTUMWA_ variables that name no key.
func (r *reader) unused() {
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		if !strings.HasPrefix(name, envPrefix+"_") || r.known[name] || serviceLink.MatchString(name) {
			continue
		}
		r.warnings = append(r.warnings, Problem{Key: name,
			Text: "this environment variable names no key of the configuration"})
	}
}

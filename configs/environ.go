package configs

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

const envPrefix = "INTUMWA"

// environ is a set of environment variables that remembers which of them were asked for.
type environ struct {
	values map[string]string
	asked  map[string]bool
}

func newEnviron(env []string) *environ {
	e := &environ{values: map[string]string{}, asked: map[string]bool{envPrefix + "_CONFIG": true}}
	for _, assignment := range env {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			e.values[name] = value
		}
	}
	return e
}

func (e *environ) get(name string) (string, bool) {
	e.asked[name] = true
	value, ok := e.values[name]
	return value, ok
}

// serviceLink matches what Kubernetes puts into the environment for a service called intumwa, intumwa-api and so on.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$`)

// unused are the INTUMWA_ variables that nothing asked for: probably misspelt keys.
func (e *environ) unused() []Problem {
	var out []Problem
	for name := range e.values {
		if strings.HasPrefix(name, envPrefix+"_") && !e.asked[name] && !serviceLink.MatchString(name) {
			out = append(out, Problem{Key: name, Text: "this environment variable names no key of the configuration"})
		}
	}
	slices.SortFunc(out, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// expand replaces ${NAME} in a scalar from the environment; $$ is a dollar. A dollar before anything else is itself. A
// variable that is not set is a mistake at once, except in a secret: not every process needs every secret, see
// [Config.CheckFor].
//
// In a URL the values are written as [inURL] says.
func (d *decoder) expand(path string, n *node, of reflect.Type) string {
	var out strings.Builder
	rest := n.text
	secret := of == secretType || of == secretFileType
	for {
		before, after, found := strings.Cut(rest, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		switch {
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			rest = after[1:]
		case strings.HasPrefix(after, "{"):
			name, tail, closed := strings.Cut(after[1:], "}")
			if !closed || name == "" {
				d.problem(path, n.line, "has a ${ that is not closed; write $$ for a dollar")
				return ""
			}
			value, set := d.env.get(name)
			d.foreign[path] = true
			problem := Problem{Key: path, Line: n.line, Text: "names an environment variable that is not set; write $$ for a dollar"}
			if plainVariable.MatchString(name) { // else it may be a piece of a secret that has ${ in it
				problem.Text = fmt.Sprintf("the environment variable %s is not set", name)
			}
			switch {
			case set:
			case secret:
				d.missing = append(d.missing, problem)
			default:
				d.problems = append(d.problems, problem)
			}
			if of == urlType {
				value = inURL(n.text, len(n.text)-len(after)-1)(value)
			}
			out.WriteString(value)
			rest = tail
		default:
			out.WriteByte('$')
			rest = after
		}
	}
}

// override lays the INTUMWA_ variables over c.
func (d *decoder) override(c *Config) {
	walk(c, func(l leaf) {
		for _, name := range l.variables {
			text, set := d.env.get(name)
			if !set || serviceLink.MatchString(name) && strings.Contains(text, "://") {
				continue // or a service called intumwa-redis of the same namespace
			}
			if err := setText(l.value, text); err != nil {
				d.problem(name, 0, "%s", err)
				continue
			}
			delete(d.lines, l.path)
			d.foreign[l.path] = true
			d.missing = slices.DeleteFunc(d.missing, func(p Problem) bool { return p.Key == l.path })
			if l.within != nil { // a key of tls's object turns TLS on
				l.within.Enabled = true
			}
		}
	})
}

// leaf is one key of a Config that holds a value: a scalar, a list of scalars or a map.
type leaf struct {
	path      string
	variables []string // environment variables that override it, the weightier later
	field     reflect.StructField
	value     reflect.Value
	within    *TLS // set for the keys of a tls object
}

// walk calls visit for every leaf, in the order of the structs.
func walk(c *Config, visit func(leaf)) {
	walkStruct("", []string{envPrefix}, reflect.ValueOf(c).Elem(), visit)
}

func walkStruct(path string, variables []string, v reflect.Value, visit func(leaf)) {
	for i, f := range reflect.VisibleFields(v.Type()) {
		key := keyOf(f)
		if key == "" {
			continue
		}
		at, names, field := join(path, key), extend(variables, key), v.Field(i)
		switch {
		case f.Type == tlsType:
			walkTLS(at, names, f, field, visit)
		case f.Type.Kind() == reflect.Struct:
			walkStruct(at, names, field, visit)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			for j := range field.Len() {
				element := field.Index(j)
				own := extend(names, fmt.Sprint(j))
				if name := element.FieldByName("Name").String(); name != "" {
					own = append(own, extend(names, name)...)
				}
				walkStruct(fmt.Sprintf("%s[%d]", at, j), own, element, visit)
			}
		default:
			visit(leaf{path: at, variables: names, field: f, value: field})
		}
	}
}

func walkTLS(path string, variables []string, f reflect.StructField, v reflect.Value, visit func(leaf)) {
	visit(leaf{path: path, variables: variables, field: f, value: v.FieldByName("Enabled")})
	within := v.Addr().Interface().(*TLS)
	walkStruct(path, variables, v, func(l leaf) {
		l.within = within
		visit(l)
	})
}

// extend appends a key to each of the variable names.
func extend(variables []string, key string) []string {
	out := make([]string, len(variables))
	for i, v := range variables {
		out[i] = v + "_" + upperSnake(key)
	}
	return out
}

func upperSnake(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
}

package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

var (
	tlsType      = reflect.TypeFor[TLS]()
	tonNPIType   = reflect.TypeFor[TONNPI]()
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
)

// leaf is one key of a Config that holds a value: a scalar, a list of scalars or a map.
type leaf struct {
	path      string
	variables []string // environment variables that override it, in rising precedence
	shared    []string // variables that override it and others; its own come before them
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
			tls := field.Addr().Interface().(*TLS) //nolint:forcetypeassert // tlsType
			visit(leaf{path: at, variables: names, field: f, value: field.FieldByName("Enabled")})
			walkStruct(at, names, field, func(l leaf) {
				l.within = tls
				visit(l)
			})
		case f.Type == tonNPIType: // its own variables set all kinds
			walkStruct(at, names, field, func(l leaf) {
				l.shared = names
				visit(l)
			})
		case f.Type.Kind() == reflect.Struct:
			walkStruct(at, names, field, visit)
		case isList(f.Type):
			for j := range field.Len() {
				own := extend(names, fmt.Sprint(j))
				if name := field.Index(j).FieldByName("Name").String(); name != "" {
					own = append(own, extend(names, name)...)
				}
				walkStruct(fmt.Sprintf("%s[%d]", at, j), own, field.Index(j), visit)
			}
		default:
			visit(leaf{path: at, variables: names, field: f, value: field})
		}
	}
}

// isList reports whether a type is a list of objects.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// Default is the configuration of an empty file, without the required keys: the two URLs and a carrier.
func Default() *Config {
	c := new(Config)
	fill(reflect.ValueOf(c).Elem())
	return c
}

// fill gives the keys of a section the values of their default tags. Lists and maps are empty, not nil.
func fill(section reflect.Value) {
	for i, f := range reflect.VisibleFields(section.Type()) {
		text, given := f.Tag.Lookup("default")
		kind := f.Type.Kind()
		switch {
		case keyOf(f) == "" || f.Type == tlsType:
		case kind == reflect.Struct:
			fill(section.Field(i))
		case given || kind == reflect.Slice || kind == reflect.Map:
			if err := set(section.Field(i), text); err != nil {
				panic(fmt.Sprintf("the default of %s: %v", f.Name, err))
			}
		}
	}
}

// Changed lists the key paths with different values, secrets included, in order.
func (c *Config) Changed(other *Config) []string {
	values := func(c *Config) map[string]any {
		out := map[string]any{}
		walk(c, func(l leaf) { out[l.path] = l.value.Interface() })
		return out
	}
	before, after := values(c), values(other)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)),
		func(key string) bool { return reflect.DeepEqual(before[key], after[key]) })
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

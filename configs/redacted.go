package configs

import (
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Redacted is the whole configuration for people's eyes, by key path: secrets are hidden, URLs stand without
// their user and password, and what should be an address or a path and is something else is hidden too.
func (c *Config) Redacted() map[string]string {
	out := map[string]string{}
	walk(c, func(l leaf) { out[l.path] = fmt.Sprint(l.shown()) })
	return out
}

// LogValue is what slog shows of a Config.
func (c *Config) LogValue() slog.Value {
	var attrs []slog.Attr
	walk(c, func(l leaf) { attrs = append(attrs, slog.Any(l.path, l.shown())) })
	return slog.GroupValue(attrs...)
}

// Format hides the secrets under every verb.
func (c *Config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.Redacted()) }

// shown is a leaf's value, or hidden where a text looks like more than what belongs there.
func (l leaf) shown() any {
	switch v := l.value.Interface().(type) {
	case string:
		if keyOf(l.field) == "listen" {
			return Address(v).redacted()
		}
		return textShown(v)
	case []string:
		out := make([]string, len(v))
		for i, text := range v {
			out[i] = textShown(text)
		}
		return out
	}
	if l.value.Kind() != reflect.Map {
		return l.value.Interface()
	}
	out := map[string]string{}
	for it := l.value.MapRange(); it.Next(); {
		text := fmt.Sprint(it.Value().Interface())
		if keyOf(l.field) == "roles" {
			text = Address(text).redacted()
		}
		out[keyShown(it.Key().String())] = textShown(text)
	}
	return out
}

// textShown hides a text with a URL, a user and password, or lines of a file in it.
func textShown(text string) string {
	if strings.ContainsAny(text, "@\n\r") || strings.Contains(text, "://") {
		return hidden
	}
	return text
}

// Changed are the key paths whose values are not the same in both, secrets included, in order.
func (c *Config) Changed(other *Config) []string {
	values := func(c *Config) map[string]any {
		out := map[string]any{}
		walk(c, func(l leaf) { out[l.path] = l.value.Interface() })
		return out
	}
	before, after := values(c), values(other)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool { return reflect.DeepEqual(before[key], after[key]) })
}

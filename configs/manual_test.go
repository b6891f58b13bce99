package configs

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// keysOf lists the key paths of a struct, lists as [].
func keysOf(t reflect.Type, path string) (keys []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		at, inner := path+name, f.Type
		if inner.Kind() == reflect.Slice && isSection(inner.Elem()) {
			at, inner = at+"[]", inner.Elem()
		}
		if isSection(inner) {
			keys = append(keys, keysOf(inner, at+".")...)
			continue
		}
		keys = append(keys, at)
	}
	return keys
}

// TestManual: docs/configuration.md has a row for every key, and no others.
func TestManual(t *testing.T) {
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if rest, row := strings.CutPrefix(line, "| `"); row {
			key, _, _ := strings.Cut(rest, "`")
			documented[key] = true
		}
	}
	for _, key := range keysOf(reflect.TypeFor[Config](), "") {
		if !documented[key] {
			t.Errorf("docs/configuration.md does not explain %s", key)
		}
		delete(documented, key)
	}
	for key := range documented {
		t.Errorf("docs/configuration.md explains %s, which is no key", key)
	}
}

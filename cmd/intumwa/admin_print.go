package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"intumwa/sms"
)

// printJSON prints one line.
func printJSON(w io.Writer, result any) error {
	encoder := json.NewEncoder(plainJSON{w})
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}

// printHuman prints a struct as lines of key and value, a slice of structs as a table. The words are the JSON keys.
// A value stays within its cell: see shown.
func printHuman(w io.Writer, result any) error {
	if h, ok := result.(interface{ human(io.Writer) error }); ok {
		return h.human(w)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) // keeps the text until Flush, which says what went wrong
	v := reflect.ValueOf(result)
	if v.Kind() != reflect.Slice {
		for i, key := range keysOf(v.Type()) {
			_, _ = fmt.Fprintf(t, "%s\t%s\n", key, cell(v.Field(i)))
		}
		return t.Flush()
	}
	_, _ = fmt.Fprintln(t, strings.Join(keysOf(v.Type().Elem()), "\t"))
	for i := range v.Len() {
		cells := make([]string, v.Index(i).NumField())
		for j := range cells {
			cells[j] = cell(v.Index(i).Field(j))
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return keys
}

func cell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "-"
		}
		v = v.Elem()
	}
	if at, ok := v.Interface().(time.Time); ok {
		return at.Format(time.RFC3339)
	}
	return sms.Printable(fmt.Sprint(v.Interface()))
}

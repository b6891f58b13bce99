package main

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"intumwa/configs"
)

// TestConfigurationWords: configs allows exactly the words that the packages implement.
func TestConfigurationWords(t *testing.T) {
	for _, c := range []struct {
		of   any
		key  string
		here map[string]bool
	}{
		{configs.Log{}, "level", known(logLevels)},
		{configs.Billing{}, "refund", known(refunds)},
		{configs.Carrier{}, "confirm", known(confirmations)},
		{configs.Carrier{}, "receipt_states", known(statuses)},
		{configs.Carrier{}, "message_id_format", known(idFormats)},
		{configs.Carrier{}, "concat", known(concats)},
		{configs.Carrier{}, "alphabet", known(alphabets)},
		{configs.Carrier{}, "validity_period", known(validities)},
		{configs.Carrier{}, "on_ambiguous", known(policies)},
		{configs.Carrier{}, "error_classes", known(classes)},
		{configs.Link{}, "bind", known(bindModes)},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(c.of)) {
			if f.Tag.Get("yaml") == c.key && !slices.Equal(slices.Sorted(maps.Keys(c.here)), slices.Sorted(slices.Values(strings.Fields(f.Tag.Get("oneof"))))) {
				t.Errorf("%s: configs allows %s, here are %v", c.key, f.Tag.Get("oneof"), c.here)
			}
		}
	}
}

func known[T any](words map[string]T) map[string]bool {
	out := map[string]bool{}
	for word := range words {
		out[word] = true
	}
	return out
}

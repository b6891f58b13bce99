package sms

import (
	"slices"
	"testing"
)

// TestCutPairs: a part in UTF-16 that begins and ends with half a surrogate pair goes out byte for byte as it came.
func TestCutPairs(t *testing.T) {
	for _, part := range [][]byte{{0xDF, 0x0D, 0x04, 0x16, 0xD8, 0x3C}, {0xDF, 0x0D}, {0xD8, 0x3C}, {0x04, 0x16}, {0xD8, 0x3C, 0xDF, 0x0D}} {
		before, whole, after := CutPairs(part)
		text, ok := Decode(8, DefaultGSM7, whole)
		text = before + text + after
		encoding, payload := Encode(text)
		if !ok || encoding != UCS2 || !slices.Equal(payload, part) {
			t.Errorf("%X goes out as %X (%q)", part, payload, text)
		}
		if counted, segments := Count(text); counted != UCS2 || segments != 1 {
			t.Errorf("%X: %v, %d segments", part, counted, segments)
		}
	}
}

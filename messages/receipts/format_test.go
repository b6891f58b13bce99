package receipts

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestKey(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "0": "0", "000": "0", "00A1": "a1", "a1": "a1", " 7F ": "7f", "A\x00B": "ab", "\xffAB": "ab", "   ": "",
		"0x00A1": "a1", "0XA1": "a1", "0x": "x", "0xyz": "xyz", `"7FCA1"`: "7fca1", "'7FCA1'": "7fca1",
		"{6F1C-42AA}": "6f1c-42aa", "<7FCA1>": "7fca1", "7FCA1.": "7fca1", "7FCA1,": "7fca1", "-1": "-1",
		"7FCA1-1":       "7fca1-1",
		"0f3c6c1e-8B4D": "f3c6c1e-8b4d",
		"12345678901234567890123456789012345678901234567890": "12345678901234567890123456789012345678901234567890",
	} {
		if got := Key(id); got != want {
			t.Errorf("Key(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestReceiptKeys(t *testing.T) {
	long := strings.Repeat("1", 65) // too long to be read as a number
	for _, c := range []struct {
		format Format
		id     string
		want   []string
	}{
		{Same, "00A1", []string{"a1"}}, {Same, "000", []string{"0"}},
		{HexToDecimal, "161", []string{"a1"}}, {HexToDecimal, "0000000161", []string{"a1"}},
		{HexToDecimal, "0", []string{"0"}},
		{HexToDecimal, "18446744073709551616", []string{"10000000000000000"}}, // beyond 64 bits
		{HexToDecimal, "a1", []string{"a1"}}, {HexToDecimal, "not-a-number", []string{"not-a-number"}},
		{HexToDecimal, long, []string{long}},
		{DecimalToHex, "A1", []string{"161"}}, {DecimalToHex, "00a1", []string{"161"}},
		{DecimalToHex, "10000000000000000", []string{"18446744073709551616"}},
		{DecimalToHex, "0x10", []string{"16"}}, {HexToDecimal, "0x10", []string{"10"}}, {Same, `"0x00A1"`, []string{"a1"}},
		{Auto, "0xA1", []string{"a1", "161"}}, {DecimalToHex, "xyz", []string{"xyz"}},
		{HexToDecimal, "-5", []string{"-5"}}, {HexToDecimal, "+5", []string{"+5"}}, {HexToDecimal, "1_0", []string{"1_0"}},
		{HexToDecimal, "", []string{""}},
		{Auto, "00A1", []string{"a1", "161"}}, {Auto, "161", []string{"161", "a1", "353"}}, {Auto, "7", []string{"7"}},
		{Auto, "xyz", []string{"xyz"}},
		{Auto, "", []string{""}}, {Auto, long, []string{long}},
	} {
		if got := c.format.keys(c.id); !slices.Equal(got, c.want) {
			t.Errorf("%v.keys(%q) = %q, want %q", c.format, c.id, got, c.want)
		}
	}
}

// FuzzKey: the key of every id can be stored, and its keys in the other formats lead back to it.
func FuzzKey(f *testing.F) {
	for _, id := range []string{"", "0", "00A1", "18446744073709551616", "0f3c6c1e-8B4D", "A\x00B", "\xff1", "-5", "1_0",
		strings.Repeat("f", 64)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		key := Key(id)
		if !utf8.ValidString(key) || strings.Contains(key, "\x00") || (len(key) > 1 && key[0] == '0') {
			t.Errorf("Key(%q) = %q", id, key)
		}
		for _, other := range forms(key) {
			if len(other) <= 64 && !slices.Contains(forms(other), key) {
				t.Errorf("%q is %q in a receipt, which means %q", id, other, forms(other))
			}
		}
	})
}

func TestHandset(t *testing.T) {
	for address, want := range map[string]int32{
		"+25761000001": 61000001, "25761000001": 61000001, "61000001": 61000001, "0025761000001": 61000001,
		"+79123456": 79123456, "00000000": 0, "25700000012": 12,
		"": -1, "hidden": -1, "6100000": -1, "+2576100000x": -1, "257\xff61000001": 61000001, "-25761000001": 61000001,
		"257 61 00-00 01": 61000001, "257061000001": 61000001, "٦١٠٠٠٠٠١": -1,
	} {
		got := int32(-1)
		if h := handset(address); h != nil {
			got = *h
		}
		if got != want {
			t.Errorf("%q: %d, want %d", address, got, want)
		}
	}
}

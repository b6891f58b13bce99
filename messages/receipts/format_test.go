package receipts

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestKey(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "0": "0", "000": "0", "00A1": "a1", "a1": "a1", " 7F ": "7f", "A\x00B": "ab", "\xffAB": "ab", "   ": "",
		"0f3c6c1e-8B4D": "f3c6c1e-8b4d", "12345678901234567890123456789012345678901234567890": "12345678901234567890123456789012345678901234567890",
	} {
		if got := Key(id); got != want {
			t.Errorf("Key(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestReceiptKey(t *testing.T) {
	for _, c := range []struct {
		format   Format
		id, want string
	}{
		{Auto, "00A1", "a1"}, {Same, "00A1", "a1"}, {Same, "000", "0"},
		{HexToDecimal, "161", "a1"}, {HexToDecimal, "0000000161", "a1"}, {HexToDecimal, "0", "0"},
		{HexToDecimal, "18446744073709551616", "10000000000000000"}, // past 64 bits
		{HexToDecimal, "a1", "a1"}, {HexToDecimal, "not-a-number", "not-a-number"},
		{DecimalToHex, "A1", "161"}, {DecimalToHex, "00a1", "161"}, {DecimalToHex, "10000000000000000", "18446744073709551616"},
		{DecimalToHex, "0x10", "x10"}, {DecimalToHex, "xyz", "xyz"},
		{HexToDecimal, "-5", "-5"}, {HexToDecimal, "+5", "+5"}, {HexToDecimal, "1_0", "1_0"},
		{HexToDecimal, "", ""},
	} {
		if got := receiptKey(c.format, c.id); got != c.want {
			t.Errorf("receiptKey(%v, %q) = %q, want %q", c.format, c.id, got, c.want)
		}
	}
	long := make([]byte, 65)
	for i := range long {
		long[i] = '1'
	}
	if got := receiptKey(HexToDecimal, string(long)); got != string(long) {
		t.Errorf("an id of 65 digits became %q", got)
	}
}

// TestReceiptKeysAgree: the key of a response and that of its receipt are one
// under the right format.
func TestReceiptKeysAgree(t *testing.T) {
	for _, n := range []string{"1", "9", "a", "10", "ff", "deadbeef", "123456789abcdef0123456789"} {
		decimal, ok := rebase(n, 16, 10)
		if !ok {
			t.Fatal(n)
		}
		if got := receiptKey(HexToDecimal, decimal); got != n {
			t.Errorf("hexadecimal %s, decimal %s in the receipt: key %s", n, decimal, got)
		}
		if got := receiptKey(DecimalToHex, n); got != decimal {
			t.Errorf("decimal %s, hexadecimal %s in the receipt: key %s", decimal, n, got)
		}
	}
}

// FuzzKey: whatever a carrier writes as an id, its key can be stored, and the keys in
// the other formats lead back to it.
func FuzzKey(f *testing.F) {
	for _, id := range []string{"", "0", "00A1", "18446744073709551616", "0f3c6c1e-8B4D", "A\x00B", "\xff1", "-5", "1_0", strings.Repeat("f", 64)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		key := Key(id)
		if !utf8.ValidString(key) || strings.Contains(key, "\x00") || (len(key) > 1 && key[0] == '0') {
			t.Errorf("Key(%q) = %q", id, key)
		}
		for _, format := range []Format{Auto, Same} {
			if got := receiptKey(format, id); got != key {
				t.Errorf("%q is %q in its receipt", id, got)
			}
		}
		for i, other := range otherKeys(id) {
			if other == "" || len(other) > 64 {
				continue
			}
			if got := receiptKey(known[i+1], other); got != key {
				t.Errorf("%q is %q in a receipt, which means %q", id, other, got)
			}
		}
	})
}

func TestHandset(t *testing.T) {
	for address, want := range map[string]int32{
		"+25761000001": 61000001, "25761000001": 61000001, "61000001": 61000001, "0025761000001": 61000001,
		"+79123456": 79123456, "00000000": 0, "25700000012": 12,
		"": -1, "hidden": -1, "6100000": -1, "+2576100000x": -1, "257\xff61000001": 61000001, "-25761000001": -1, "٦١٠٠٠٠٠١": -1,
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

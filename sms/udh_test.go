package sms_test

import (
	"testing"

	"intumwa/sms"
)

func TestParseConcat(t *testing.T) {
	type answer struct {
		ref        uint16
		total, seq byte
		ok         bool
	}
	narrow, wide := sms.UDH8(0xAB, 3, 2), sms.UDH16(0xABCD, 255, 255)
	for _, tc := range []struct {
		what string
		udh  []byte
		want answer
	}{
		{"8-bit reference", narrow[:], answer{0xAB, 3, 2, true}},
		{"16-bit reference", wide[:], answer{0xABCD, 255, 255, true}},
		{"with the text behind it", append(narrow[:], "hello"...), answer{0xAB, 3, 2, true}},
		{"behind another element", []byte{9, 0x05, 2, 1, 2, 0x00, 3, 7, 2, 1}, answer{7, 2, 1, true}},
		{"the last of two", []byte{10, 0x00, 3, 7, 2, 1, 0x00, 3, 8, 2, 2}, answer{8, 2, 2, true}},
		{"a valid one before an ignored one", []byte{10, 0x00, 3, 7, 2, 1, 0x00, 3, 8, 2, 3}, answer{7, 2, 1, true}},
		{"total 0", []byte{5, 0, 3, 1, 0, 1}, answer{}},
		{"seq 0", []byte{5, 0, 3, 1, 2, 0}, answer{}},
		{"seq over total", []byte{5, 0, 3, 1, 2, 3}, answer{}},
		{"wrong element length", []byte{4, 0, 2, 1, 2}, answer{}},
		{"cut header", []byte{5, 0, 3, 1, 2}, answer{}},
		{"element past the header", []byte{5, 0, 4, 1, 2, 1, 9}, answer{}},
		{"valid, then malformed", []byte{6, 0, 3, 1, 2, 1, 0}, answer{}},
		{"no element", []byte{0}, answer{}},
		{"nothing", nil, answer{}},
	} {
		ref, total, seq, ok := sms.ParseConcat(tc.udh)
		if got := (answer{ref, total, seq, ok}); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.what, got, tc.want)
		}
	}
}

func FuzzParseConcat(f *testing.F) {
	narrow, wide := sms.UDH8(1, 2, 1), sms.UDH16(1, 2, 2)
	f.Add(narrow[:])
	f.Add(wide[:])
	f.Add([]byte{255, 0, 0})
	f.Fuzz(func(t *testing.T, udh []byte) {
		ref, total, seq, ok := sms.ParseConcat(udh)
		if !ok {
			if ref != 0 || total != 0 || seq != 0 {
				t.Fatalf("ParseConcat(% X) is not ok but answers %d %d/%d", udh, ref, seq, total)
			}
			return
		}
		if total == 0 || seq == 0 || seq > total {
			t.Fatalf("ParseConcat(% X) = segment %d of %d", udh, seq, total)
		}
		again := sms.UDH16(ref, total, seq)
		if r, n, s, ok := sms.ParseConcat(again[:]); !ok || r != ref || n != total || s != seq {
			t.Fatalf("UDH16(%d, %d, %d) is read as %d, %d, %d", ref, total, seq, r, n, s)
		}
	})
}

package sms_test

import (
	"testing"
	"unicode/utf8"

	"intumwa/sms"
)

// TestDecodeCodings: each data_coding has its alphabet, or is not text.
func TestDecodeCodings(t *testing.T) {
	const (
		none  = ""
		gsm   = "Aé" // 0x41 0x05 in GSM-7
		latin = "A\x05"
		wide  = "\u4105"
	)
	check := func(first, last int, want string) {
		t.Helper()
		for coding := first; coding <= last; coding++ {
			text, ok := sms.Decode(uint8(coding), sms.DefaultGSM7, []byte{0x41, 0x05})
			if text != want || ok != (want != none) {
				t.Errorf("data_coding %#02x is read as %q, %v; want %q", coding, text, ok, want)
			}
			if got := sms.IsUCS2(uint8(coding)); got != (want == wide) {
				t.Errorf("data_coding %#02x is UCS-2: %v", coding, got)
			}
		}
	}
	check(0x00, 0x00, gsm) // SMPP 3.4, 5.2.19
	check(0x01, 0x01, latin)
	check(0x02, 0x02, none)
	check(0x03, 0x03, latin)
	check(0x04, 0x07, none)
	check(0x08, 0x08, wide)
	check(0x09, 0x0F, none)
	for _, group := range []int{0x10, 0x40, 0x50} { // 3GPP TS 23.038, 4: general, uncompressed
		check(group, group+3, gsm)
		check(group+4, group+7, none)
		check(group+8, group+11, wide)
		check(group+12, group+15, gsm) // reserved
	}
	check(0x20, 0x3F, none) // compressed
	check(0x60, 0x7F, none)
	check(0x80, 0xBF, gsm) // reserved
	check(0xC0, 0xDF, gsm) // waiting messages
	check(0xE0, 0xEF, wide)
	for _, class := range []int{0xF0, 0xF8} {
		check(class, class+3, gsm)
		check(class+4, class+7, none)
	}
	for _, coding := range []uint8{0x00, 0x10, 0xC0, 0xF1} {
		if text, _ := sms.Decode(coding, sms.DefaultLatin1, []byte{0x41, 0xE9}); text != "Aé" {
			t.Errorf("data_coding %#02x of a Latin-1 carrier is read as %q", coding, text)
		}
	}
}

// TestInvalidBytesDoNotAffectTheRest: invalid bytes do not affect the rest of the text.
func TestInvalidBytesDoNotAffectTheRest(t *testing.T) {
	for name, c := range map[string]struct {
		coding   uint8
		segments []string
		want     string
	}{
		"nothing":                 {0, nil, ""},
		"the extension table":     {0, []string{"\x1b\x28\x1b\x65\x1b\x29"}, "{€}"},
		"a cut escape pair":       {0, []string{"5 \x1b", "\x65"}, "5  e"},
		"a code of no extension":  {0, []string{"pay \x1bZ 500"}, "pay Z 500"},
		"two escapes":             {0, []string{"a\x1b\x1b\x65b"}, "a eb"},
		"an escape and no septet": {0, []string{"a\x1b\xe5b"}, "a \ufffdb"},
		"a byte over 0x7F":        {0, []string{"a\x80b"}, "a\ufffdb"},
		"half a code unit":        {8, []string{"\x00a\x00"}, "a\ufffd"},
		"a cut surrogate pair":    {8, []string{"\xd8\x3d", "\xde\x00"}, "\ufffd\ufffd"},
		"a lone low surrogate":    {8, []string{"\xde\x00\x00a"}, "\ufffda"},
		"a whole surrogate pair":  {8, []string{"\xd8\x3d\xde\x00"}, "😀"},
		"Latin-1's upper half":    {3, []string{"\xe9\xff"}, "éÿ"},
		"half a code unit alone":  {8, []string{"a"}, "\ufffd"},
	} {
		var segments [][]byte
		for _, s := range c.segments {
			segments = append(segments, []byte(s))
		}
		if text, ok := sms.Decode(c.coding, sms.DefaultGSM7, segments...); !ok || text != c.want {
			t.Errorf("%s: %q, %v; want %q", name, text, ok, c.want)
		}
	}
}

// TestUTF8 in the default alphabet is read as such when it cannot be by chance, and always where the carrier writes it.
func TestUTF8(t *testing.T) {
	for _, c := range []struct {
		coding uint8
		def    sms.Default
		octets string
		want   string
	}{
		{0, sms.DefaultGSM7, "Arrêt", "Arrêt"},
		{0, sms.DefaultGSM7, "@$", "¡¤"},
		{0, sms.DefaultLatin1, "Hélène €", "Hélène €"},
		{0, sms.DefaultLatin1, "H\xe9l\xe8ne", "Hélène"},
		{0, sms.DefaultUTF8, "@$_{}", "@$_{}"},
		{0, sms.DefaultUTF8, "H\xe9l\xe8ne", "Hélène"},
		{0xF1, sms.DefaultGSM7, "Arrêt", "Arrêt"},
		{3, sms.DefaultGSM7, "\xc3\xa9", "Ã©"},
		{8, sms.DefaultUTF8, "\x00A", "A"},
	} {
		if text, ok := sms.Decode(c.coding, c.def, []byte(c.octets)); !ok || text != c.want {
			t.Errorf("%q in data_coding %d, default %d: %q, want %q", c.octets, c.coding, c.def, text, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, coding := range []uint8{0, 1, 3, 4, 8, 0x18, 0x22, 0xE0, 0xF0, 0xF5} {
		f.Add(coding, false, []byte("pay \x1bZ 500\xff\x1b"))
		f.Add(coding, true, []byte("\xd8\x3d\xde\x00\xde\x00\x00"))
	}
	f.Fuzz(func(t *testing.T, coding uint8, latin bool, raw []byte) {
		def := sms.DefaultGSM7
		if latin {
			def = sms.DefaultLatin1
		}
		text, ok := sms.Decode(coding, def, raw)
		if !utf8.ValidString(text) || len(text) > 3*len(raw) || !ok && text != "" {
			t.Fatalf("data_coding %#02x, % x is read as %q, %v", coding, raw, text, ok)
		}
	})
}

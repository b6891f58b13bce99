package sms

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestPartOctets: a part goes out octet for octet as it came, wherever its program has cut the text.
func TestPartOctets(t *testing.T) {
	for _, p := range []struct {
		coding Coding
		octets string
		text   string
	}{
		{CodingGSM7, "\x00A\x1b\x65", "@A€"},
		{CodingGSM7, "A\x1b", "A\U0010001B"},
		{CodingGSM7, "\x1b\x1b\x65", "\U0010001B€"},
		{CodingGSM7, "\x1ba", "\U0010001Ba"}, // not in the extension table
		{CodingUCS2, "\xdf\x0d\x04\x16\xd8\x3c", "\U0010DF0DЖ\U0010D83C"},
		{CodingUCS2, "\xd8\x3c\xdf\x0d", "🌍"},
		{CodingUCS2, "\x00A\x00", "A\U00100000"},
		{CodingUCS2, "\xdb\xc0\xdc\x1b", "\U0010DBC0\U0010DC1B"}, // U+10001B itself
		{CodingLatin1, "fa\xe7\xff$@", "façÿ$@"},
	} {
		if text := p.coding.Text([]byte(p.octets)); text != p.text || string(p.coding.Octets(text)) != p.octets {
			t.Errorf("%x: %+q, and again %x", p.octets, text, p.coding.Octets(text))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		octets := rapid.SliceOfN(rapid.Byte(), 0, 160).Draw(t, "octets")
		for _, c := range []Coding{CodingGSM7, CodingUCS2, CodingLatin1} {
			if text := c.Text(octets); !utf8.ValidString(text) || !bytes.Equal(c.Octets(text), octets) {
				t.Fatalf("coding %d: %x goes out as %x", c, octets, c.Octets(text))
			}
		}
	})
}

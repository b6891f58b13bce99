package carriersim

import (
	"encoding/binary"
	"unicode/utf16"
)

// escape precedes a character of the extension table (3GPP TS 23.038, 6.2.1.1).
const escape = 0x1B

// gsmDefault is the default alphabet in code order, with a blank for ESC.
var gsmDefault = []rune("@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
	"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà")

// gsmExtension maps the code after an escape to its character; 0 = none.
var gsmExtension = [128]rune{
	0x0A: '\f', 0x14: '^', 0x28: '{', 0x29: '}', 0x2F: '\\',
	0x3C: '[', 0x3D: '~', 0x3E: ']', 0x40: '|', 0x65: '€',
}

// decodeText decodes bytes like a handset of this carrier.
func decodeText(raw []byte, coding byte, alphabet Alphabet) (text, encoding string) {
	switch {
	case coding == 8:
		units := make([]uint16, 0, len(raw)/2)
		for i := 0; i+1 < len(raw); i += 2 {
			units = append(units, binary.BigEndian.Uint16(raw[i:]))
		}
		return string(utf16.Decode(units)), "ucs2"
	case coding == 0 && alphabet == GSM7:
		return decodeGSM7(raw), "gsm7"
	case coding == 3 || coding == 0 && alphabet == Latin1:
		runes := make([]rune, 0, len(raw))
		for _, c := range raw {
			runes = append(runes, rune(c))
		}
		return string(runes), "latin1"
	case coding == 1 || coding == 0 && alphabet == ASCII:
		return string(raw), "ascii"
	}
	return string(raw), "binary"
}

func decodeGSM7(raw []byte) string {
	runes := make([]rune, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i] & 0x7F
		if c != escape {
			runes = append(runes, gsmDefault[c])
			continue
		}
		// A handset shows the default character if the table has none.
		if i++; i < len(raw) {
			if r := gsmExtension[raw[i]&0x7F]; r != 0 {
				runes = append(runes, r)
			} else {
				runes = append(runes, gsmDefault[raw[i]&0x7F])
			}
		}
	}
	return string(runes)
}

// encodeText encodes a handset's text: with data_coding 0 if it consists of ASCII
// characters with the same codes in GSM-7, otherwise in UCS-2.
func encodeText(text string) (raw []byte, coding byte) {
	plain := true
	for _, r := range text {
		if r > 0x7F || r != '\n' && (r < ' ' || gsmDefault[r] != r) {
			plain = false
			break
		}
	}
	if plain {
		return []byte(text), 0
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		raw = binary.BigEndian.AppendUint16(raw, unit)
	}
	return raw, 8
}

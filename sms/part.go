package sms

import (
	"encoding/binary"
	"unicode/utf16"
)

// Part is the place of one part in a long message that a customer has cut, and how its octets are written.
type Part struct {
	Reference uint16
	Total     uint8 // 2 or more
	Number    uint8 // from 1
	Wide      bool  // the reference came in a UDH, with 16 bits
	Coding    Coding
}

// Coding is how the octets of a part are written.
type Coding uint8

// Codings.
const (
	CodingGSM7 Coding = iota // a septet an octet
	CodingUCS2
	CodingLatin1
)

// CodingOf returns the coding of a data_coding; false: it is no text, or in a character set that is not supported.
func CodingOf(dataCoding uint8) (c Coding, ok bool) {
	switch alphabetOf(dataCoding) {
	case gsm7:
		return CodingGSM7, true
	case ucs2:
		return CodingUCS2, true
	case latin1:
		return CodingLatin1, true
	}
	return 0, false
}

// Encoding is the encoding that the coding counts as.
func (c Coding) Encoding() Encoding {
	if c == CodingUCS2 {
		return UCS2
	}
	return GSM7
}

// Most is how many octets a part has at most, beside a header with an 8-bit reference or a 16-bit one (wide). One in
// Latin-1 has as many as in GSM 7-bit, because carriers encode it anew.
func (c Coding) Most(wide bool) int {
	switch {
	case c == CodingUCS2 && wide:
		return 2 * widePartUnits
	case c == CodingUCS2:
		return 2 * concatUnits
	case wide:
		return widePartSeptets
	}
	return concatSeptets
}

// Programs cut a long text between any two octets, and the handset joins them. A part's text has a character of a plane
// for private use for what is no character in the part alone: half of a surrogate pair is U+10D800 to U+10DFFF, and an
// octet (an escape, half a code unit) U+100000 to U+1000FF.
const cut = 0x100000

// Text returns a part's text. Octets returns its octets again, for any octets.
func (c Coding) Text(octets []byte) string {
	text := make([]rune, 0, len(octets))
	for i := 0; i < len(octets); i++ {
		code, left := octets[i], octets[i+1:]
		switch {
		case c == CodingLatin1:
			text = append(text, rune(code))
		case c == CodingUCS2 && len(left) > 0:
			unit := rune(code)<<8 | rune(left[0])
			i++
			if len(left) >= 3 {
				if r := utf16.DecodeRune(unit, rune(binary.BigEndian.Uint16(left[1:]))); r != unknownRune && r < cut {
					text = append(text, r)
					i += 2
					continue
				}
			}
			if utf16.IsSurrogate(unit) {
				unit |= cut
			}
			text = append(text, unit)
		case c == CodingUCS2, code > 0x7F:
			text = append(text, cut|rune(code))
		case code != escape:
			text = append(text, defaultAlphabet[code])
		case len(left) > 0 && left[0] <= 0x7F && extensionCharacters[left[0]] != 0:
			text = append(text, extensionCharacters[left[0]])
			i++
		default:
			text = append(text, cut|escape)
		}
	}
	return string(text)
}

// unknownRune is the result of utf16.DecodeRune for what is no pair.
const unknownRune = 0xFFFD

// Octets returns the octets of a part's text. A character that the coding lacks is a question mark.
func (c Coding) Octets(text string) []byte {
	octets := make([]byte, 0, len(text))
	for _, r := range text {
		code := septetsOf(r)
		switch {
		case r >= cut && r <= cut|0xFF:
			octets = append(octets, byte(r))
		case c == CodingUCS2 && r >= cut:
			octets = binary.BigEndian.AppendUint16(octets, uint16(r))
		case c == CodingUCS2:
			octets = appendUCS2(octets, string(r))
		case c == CodingLatin1 && r <= 0xFF:
			octets = append(octets, byte(r))
		case c == CodingLatin1, code == notGSM7:
			octets = append(octets, '?')
		case code > 0xFF:
			octets = append(octets, escape, byte(code))
		default:
			octets = append(octets, byte(code))
		}
	}
	return octets
}

// Septets returns a text with characters of GSM 7-bit alone, similar ones for others; false if one has none.
func Septets(text string) (similar string, ok bool) {
	similar = LookAlikes(text)
	_, ok = measureGSM7(similar)
	return similar, ok
}

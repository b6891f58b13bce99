package sms

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// alphabet is the character set of a data_coding.
type alphabet uint8

const (
	data   alphabet = iota // no text, or in a character set that is not supported
	gsm7                   // the default alphabet
	latin1                 // a byte is a character; includes IA5
	ucs2
)

// alphabetOf returns the character set of a data_coding. SMPP 3.4, 5.2.19 lists 0x00 to 0x0F. The rest follows 3GPP TS
// 23.038, 4: a reserved coding is the default alphabet.
func alphabetOf(dataCoding uint8) alphabet {
	switch group := dataCoding >> 4; {
	case dataCoding == 0:
		return gsm7
	case dataCoding == 1, dataCoding == 3:
		return latin1
	case dataCoding == 8:
		return ucs2
	case group == 0:
		return data
	case group <= 7: // the general groups, 00xx and 01xx
		if compressed := dataCoding&0x20 != 0; compressed {
			return data
		}
		return [4]alphabet{gsm7, data, ucs2, gsm7}[dataCoding>>2&3]
	case group == 0xE: // waiting messages
		return ucs2
	case group == 0xF && dataCoding&4 != 0: // a message class and 8-bit data
		return data
	}
	return gsm7
}

// IsUCS2 reports whether texts in a data_coding are UCS-2.
func IsUCS2(dataCoding uint8) bool { return alphabetOf(dataCoding) == ucs2 }

// Default is what a carrier writes in data_coding 0, which the standard leaves open.
type Default uint8

// Defaults.
const (
	DefaultGSM7   Default = iota
	DefaultLatin1         // also ASCII
	DefaultUTF8
)

// Decode returns the text of segments, given without headers; each is decoded alone, as on a handset. ok is false for
// an unsupported data_coding. A byte or code unit that cannot be decoded is U+FFFD. In the default alphabet a segment
// that is UTF-8 beyond ASCII is read as such, whatever the carrier's default: by chance no text is.
func Decode(dataCoding uint8, def Default, segments ...[]byte) (text string, ok bool) {
	decode := appendGSM7Text
	a := alphabetOf(dataCoding)
	switch {
	case a == data:
		return "", false
	case a == ucs2:
		decode = appendUCS2Text
	case a == latin1, def != DefaultGSM7:
		decode = appendLatin1Text
	}
	size := 0
	for _, segment := range segments {
		size += len(segment)
	}
	characters := make([]byte, 0, 2*size)
	for _, segment := range segments {
		if a == gsm7 && utf8.Valid(segment) && (def == DefaultUTF8 || !ascii(segment)) {
			characters = append(characters, segment...)
			continue
		}
		characters = decode(characters, segment)
	}
	return string(characters), true
}

func ascii(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return b >= utf8.RuneSelf })
}

// appendGSM7Text appends the characters of septets, one in each byte. A code after an escape that is not in the
// extension table is its character of the default alphabet (3GPP TS 23.038, 6.2.1.1). An escape before another one
// (6.2.1.1, note 1), or at the end, is a space (6.2.1, note 1).
func appendGSM7Text(dst, septets []byte) []byte {
	for i := 0; i < len(septets); i++ {
		code, extended := septets[i], rune(0)
		if code == escape && i+1 < len(septets) && septets[i+1] <= 0x7F {
			i++
			code = septets[i]
			extended = extensionCharacters[code]
		}
		switch {
		case extended != 0:
			dst = utf8.AppendRune(dst, extended)
		case code == escape:
			dst = append(dst, ' ')
		case code > 0x7F:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		default:
			dst = utf8.AppendRune(dst, defaultAlphabet[code])
		}
	}
	return dst
}

func appendLatin1Text(dst, raw []byte) []byte {
	for _, b := range raw {
		dst = utf8.AppendRune(dst, rune(b))
	}
	return dst
}

// appendUCS2Text appends the characters of UTF-16BE. Half a surrogate pair, or half a code unit, is U+FFFD.
func appendUCS2Text(dst, raw []byte) []byte {
	units := make([]uint16, 0, len(raw)/2+1)
	for ; len(raw) >= 2; raw = raw[2:] {
		units = append(units, binary.BigEndian.Uint16(raw))
	}
	if len(raw) > 0 {
		units = append(units, utf8.RuneError)
	}
	return append(dst, string(utf16.Decode(units))...)
}

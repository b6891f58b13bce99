package sms

import (
	"encoding/binary"
	"unicode/utf16"
)

// unitsOf returns a character's number of UTF-16 code units.
func unitsOf(r rune) int {
	if r > 0xFFFF && !isHalf(r) {
		return 2
	}
	return 1
}

// half is the character, of a plane for private use, that stands for half a surrogate pair: one code unit.
const half = 0x100000

func isHalf(r rune) bool { return r&^0x7FF == half|0xD800 }

// CutPairs takes halves of surrogate pairs off both ends of a part in UTF-16BE: programs cut a long text between any two
// code units, and the handset joins the halves. Encode writes the characters that it returns for them as these halves.
func CutPairs(part []byte) (before string, whole []byte, after string) {
	whole = part
	if len(whole) >= 2 && whole[0]&0xFC == 0xDC {
		before, whole = string(rune(half)|rune(binary.BigEndian.Uint16(whole))), whole[2:]
	}
	if n := len(whole); n >= 2 && n%2 == 0 && isHighSurrogate(whole[n-2]) {
		after, whole = string(rune(half)|rune(binary.BigEndian.Uint16(whole[n-2:]))), whole[:n-2]
	}
	return before, whole, after
}

// appendUCS2 appends a text in UTF-16BE. A byte that is not UTF-8 becomes U+FFFD.
func appendUCS2(dst []byte, text string) []byte {
	for _, r := range text {
		if unitsOf(r) == 2 {
			high, low := utf16.EncodeRune(r)
			dst = binary.BigEndian.AppendUint16(dst, uint16(high))
			dst = binary.BigEndian.AppendUint16(dst, uint16(low))
			continue
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(r))
	}
	return dst
}

// isHighSurrogate reports whether a code unit with this first byte begins a surrogate pair.
func isHighSurrogate(firstByte byte) bool { return firstByte&0xFC == 0xD8 }

package sms

import (
	"encoding/binary"
	"unicode/utf16"
)

// unitsOf returns a character's number of UTF-16 code units.
func unitsOf(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
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

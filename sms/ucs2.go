package sms

import (
	"encoding/binary"
	"unicode/utf16"
)

// unitsOf returns how many UTF-16 code units a character takes.
func unitsOf(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// appendUCS2 appends a text in UTF-16BE. An octet that is not UTF-8 becomes
// U+FFFD.
func appendUCS2(dst []byte, text string) []byte {
	for _, r := range text {
		if r > 0xFFFF {
			high, low := utf16.EncodeRune(r)
			dst = binary.BigEndian.AppendUint16(dst, uint16(high))
			dst = binary.BigEndian.AppendUint16(dst, uint16(low))
			continue
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(r))
	}
	return dst
}

// isHighSurrogate reports whether a code unit with this first octet is the first of a
// surrogate pair.
func isHighSurrogate(firstOctet byte) bool { return firstOctet&0xFC == 0xD8 }

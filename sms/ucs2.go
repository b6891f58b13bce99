package sms

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
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

// decodeUCS2 appends the characters of a segment in UTF-16BE.
func decodeUCS2(dst []byte, octets []byte) ([]byte, error) {
	if len(octets)%2 != 0 {
		return dst, fmt.Errorf("%d octets are not a whole number of code units", len(octets))
	}
	for i := 0; i < len(octets); i += 2 {
		r := rune(binary.BigEndian.Uint16(octets[i:]))
		if utf16.IsSurrogate(r) {
			if i+4 > len(octets) {
				return dst, fmt.Errorf("the segment ends in the middle of a surrogate pair")
			}
			r = utf16.DecodeRune(r, rune(binary.BigEndian.Uint16(octets[i+2:])))
			if r == utf8.RuneError {
				return dst, fmt.Errorf("the code units at octet %d are not a surrogate pair", i)
			}
			i += 2
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, nil
}

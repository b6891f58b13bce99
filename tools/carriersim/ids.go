package carriersim

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// IDFormat is the format of a message's id in submit_sm_resp and in the receipt; with
// many carriers the two differ.
type IDFormat uint8

// The id formats, as (response, receipt).
const (
	IDDecimal        IDFormat = iota // decimal, decimal
	IDHex                            // hex, hex
	IDHexThenDecimal                 // hex, decimal
	IDDecimalThenHex                 // decimal, hex
	IDZeroPadded                     // 20 digits with leading zeros; without them
	IDTrimmed                        // without leading zeros; 20 digits with them
	IDCase                           // upper-case hex, lower-case hex
	IDUUID                           // one UUID
	IDLong                           // 64 hex digits, the maximum
)

// append appends the id of message n in the form of the response or the receipt.
func (f IDFormat) append(dst []byte, n uint64, receipt bool) []byte {
	switch f {
	case IDHex:
		return strconv.AppendUint(dst, n, 16)
	case IDHexThenDecimal:
		if !receipt {
			return strconv.AppendUint(dst, n, 16)
		}
	case IDDecimalThenHex:
		if receipt {
			return strconv.AppendUint(dst, n, 16)
		}
	case IDZeroPadded, IDTrimmed:
		if (f == IDZeroPadded) != receipt {
			return appendPadded(dst, n, 20)
		}
	case IDCase:
		start := len(dst)
		dst = strconv.AppendUint(dst, n|0xAB<<52, 16)
		if !receipt {
			for i := start; i < len(dst); i++ {
				if dst[i] >= 'a' {
					dst[i] -= 'a' - 'A'
				}
			}
		}
		return dst
	case IDUUID:
		var b [16]byte
		binary.BigEndian.PutUint64(b[:8], scramble(n))
		binary.BigEndian.PutUint64(b[8:], scramble(^n))
		b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
		for i, part := range [...][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
			if i > 0 {
				dst = append(dst, '-')
			}
			dst = hex.AppendEncode(dst, part)
		}
		return dst
	case IDLong:
		for i := range uint64(4) {
			var b [8]byte
			binary.BigEndian.PutUint64(b[:], scramble(n+i<<56))
			dst = hex.AppendEncode(dst, b[:])
		}
		return dst
	}
	return strconv.AppendUint(dst, n, 10)
}

func appendPadded(dst []byte, n uint64, width int) []byte {
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], n, 10)
	for range width - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}

// scramble is a bijection on 64 bits that looks random (the finalizer of splitmix64).
func scramble(n uint64) uint64 {
	n += 0x9E3779B97F4A7C15
	n = (n ^ n>>30) * 0xBF58476D1CE4E5B9
	n = (n ^ n>>27) * 0x94D049BB133111EB
	return n ^ n>>31
}

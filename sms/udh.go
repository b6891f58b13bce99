package sms

import "encoding/binary"

// Information elements of a user data header (3GPP TS 23.040, 9.2.3.24).
const (
	concat8  = 0x00 // reference of one octet
	concat16 = 0x08 // reference of two
)

// UDH8 is the user data header, with its length octet, of segment seq of total
// with an 8-bit reference. It leaves room for 153 septets or 67 code units.
func UDH8(ref, total, seq byte) [6]byte {
	return [6]byte{5, concat8, 3, ref, total, seq}
}

// UDH16 is the same with a 16-bit reference; it leaves room for 152 septets or
// 66 code units.
func UDH16(ref uint16, total, seq byte) [7]byte {
	return [7]byte{6, concat16, 4, byte(ref >> 8), byte(ref), total, seq}
}

// ParseConcat reads the concatenation element of a user data header. udh begins
// with the header's length octet; what follows the header is not looked at, so
// a whole short_message may be given. An element with a total or a seq of 0, or
// a seq beyond the total, is ignored; of several, the last counts
// (3GPP TS 23.040, 9.2.3.24). ok is false when there is none or the header is
// malformed.
func ParseConcat(udh []byte) (ref uint16, total, seq byte, ok bool) {
	if len(udh) == 0 || int(udh[0]) > len(udh)-1 {
		return 0, 0, 0, false
	}
	elements := udh[1 : 1+int(udh[0])]
	for len(elements) > 0 {
		if len(elements) < 2 || int(elements[1]) > len(elements)-2 {
			return 0, 0, 0, false
		}
		id, data := elements[0], elements[2:2+int(elements[1])]
		elements = elements[2+len(data):]
		var number uint16
		switch {
		case id == concat8 && len(data) == 3:
			number = uint16(data[0])
		case id == concat16 && len(data) == 4:
			number = binary.BigEndian.Uint16(data)
		default:
			continue
		}
		of, at := data[len(data)-2], data[len(data)-1]
		if of == 0 || at == 0 || at > of {
			continue
		}
		ref, total, seq, ok = number, of, at, true
	}
	return ref, total, seq, ok
}

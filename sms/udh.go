package sms

// Information elements of a user data header (3GPP TS 23.040, 9.2.3.24).
const (
	concat8  = 0x00 // reference of one byte
	concat16 = 0x08 // reference of two
)

// UDH8 returns the user data header of segment seq of total with an 8-bit reference, including its length byte. It
// leaves room for 153 septets or 67 code units.
func UDH8(ref, total, seq byte) [6]byte {
	return [6]byte{5, concat8, 3, ref, total, seq}
}

// UDH16 is UDH8 with a 16-bit reference; it leaves room for 152 septets or 66 code units.
func UDH16(ref uint16, total, seq byte) [7]byte {
	return [7]byte{6, concat16, 4, byte(ref >> 8), byte(ref), total, seq}
}

// Concatenation reads a payload's user data header: the long message's reference, the number of its parts, and which
// part this is, from 1. ok is false without such an element or with an invalid one: the payload is then a message of
// its own (3GPP TS 23.040, 9.2.3.24.1 and 9.2.3.24.8).
func Concatenation(payload []byte) (ref, total, seq int, ok bool) {
	if len(payload) == 0 || int(payload[0]) >= len(payload) {
		return 0, 0, 0, false
	}
	for header := payload[1 : 1+int(payload[0])]; len(header) >= 2 && len(header) >= 2+
		int(header[1]); header = header[2+int(header[1]):] {
		element := header[2 : 2+int(header[1])]
		switch {
		case header[0] == concat8 && len(element) == 3:
			ref, total, seq = int(element[0]), int(element[1]), int(element[2])
		case header[0] == concat16 && len(element) == 4:
			ref, total, seq = int(element[0])<<8|int(element[1]), int(element[2]), int(element[3])
		default:
			continue
		}
		return ref, total, seq, total > 1 && seq >= 1 && seq <= total
	}
	return 0, 0, 0, false
}

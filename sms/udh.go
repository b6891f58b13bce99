package sms

// Information elements of a user data header (3GPP TS 23.040, 9.2.3.24).
const (
	concat8  = 0x00 // reference of one octet
	concat16 = 0x08 // reference of two
)

// UDH8 returns the user data header of segment seq of total with an 8-bit reference,
// including its length octet. It leaves room for 153 septets or 67 code units.
func UDH8(ref, total, seq byte) [6]byte {
	return [6]byte{5, concat8, 3, ref, total, seq}
}

// UDH16 is UDH8 with a 16-bit reference; it leaves room for 152 septets or 66 code
// units.
func UDH16(ref uint16, total, seq byte) [7]byte {
	return [7]byte{6, concat16, 4, byte(ref >> 8), byte(ref), total, seq}
}

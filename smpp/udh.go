package smpp

// Information elements of a UDH (3GPP TS 23.040, 9.2.3.24) by which a UDH is recognised.
const (
	elementConcat8  = 0x00
	elementConcat16 = 0x08
	elementPorts8   = 0x04
	elementPorts16  = 0x05
)

// knownElement reports whether an information element has a known identifier, with its length.
func knownElement(identifier, length byte) bool {
	switch identifier {
	case elementConcat8:
		return length == 3
	case elementConcat16, elementPorts16:
		return length == 4
	case elementPorts8:
		return length == 2
	}
	return false
}

// udhLength returns the length of the UDH that text begins with, its length byte included; 0 when it begins with none.
// The elements must fill the header; after a known one, a byte may be left, because some handsets pad. A length from
// the space up is a character of the text, unless a known element follows it.
func udhLength(text []byte) int {
	if len(text) < 3 || text[0] == 0 || int(text[0]) >= len(text) {
		return 0
	}
	known := knownElement(text[1], text[2])
	if text[0] >= ' ' && !known {
		return 0
	}
	if left := udhLeft(text); left == 0 || known && left == 1 {
		return int(text[0]) + 1
	}
	return 0
}

// udhLeft returns how many bytes the elements of a UDH leave of the length that it states; below 0 if they are longer.
func udhLeft(text []byte) int {
	length, end := int(text[0])+1, 1
	for end+2 <= length {
		end += 2 + int(text[end+1])
	}
	return length - end
}

// wholeUDH reports whether a text that has a UDH, as its sender says, begins with a whole one.
func wholeUDH(text []byte) bool {
	return udhLength(text) > 0 || len(text) > 2 && text[0] > 0 && int(text[0]) < len(text) && udhLeft(text) == 0
}

// markUDH sets the UDH bit of esm_class if the text begins with a UDH, and clears it if not: carriers set it on texts
// without one, and with hidden some forget it. What reads the text later trusts the bit.
func (d *Delivery) markUDH(hidden bool) {
	switch length := udhLength(d.ShortMessage); {
	case length == 0:
		d.ESMClass &^= esmUDHI
	case hidden && knownElement(d.ShortMessage[1], d.ShortMessage[2]):
		d.ESMClass |= esmUDHI
	}
}

// udh returns the length of the text's UDH, 0 for none, once markUDH has run.
func (d *Delivery) udh() int {
	if d.ESMClass&esmUDHI == 0 {
		return 0
	}
	return udhLength(d.ShortMessage)
}

// unpack returns a text of packed septets as one septet a byte (3GPP TS 23.038, 6.1.2.1), behind its header of so many
// bytes. The first septet begins at a septet's boundary, counted from the header's first byte. A last septet of zeros,
// or a carriage return, that ends with a byte is padding.
func unpack(text []byte, header int) []byte {
	septets := append(make([]byte, 0, len(text)*8/7+1), text[:header]...)
	at := (header*8 + 6) / 7 * 7
	for ; at+7 <= len(text)*8; at += 7 {
		pair := uint16(text[at/8])
		if at/8+1 < len(text) {
			pair |= uint16(text[at/8+1]) << 8
		}
		septets = append(septets, byte(pair>>(at%8))&0x7F)
	}
	if last := len(septets) - 1; at == len(text)*8 && last >= header && (septets[last] == 0 || septets[last] == '\r') {
		septets = septets[:last]
	}
	return septets
}

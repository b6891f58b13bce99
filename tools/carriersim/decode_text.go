package carriersim

import "encoding/binary"

// checkUDH removes the user data header from the text and finds the concatenation.
func (m *submit) checkUDH() {
	if m.esmClass&0x40 == 0 {
		if len(m.text) >= 6 && string(m.text[:3]) == "\x05\x00\x03" {
			m.breach(InvalidESMClass, "the text begins like a UDH but esm_class has no UDH bit")
		}
		return
	}
	if len(m.text) == 0 || len(m.text) < 1+int(m.text[0]) {
		m.breach(InvalidLength, "the UDH is longer than the text")
		return
	}
	n := 1 + int(m.text[0])
	m.udh, m.text = m.text[:n:n], m.text[n:]
	if m.concat.Total > 0 {
		m.breach(InvalidTLVStream, "sar parameters beside a UDH")
	}
	for rest := m.udh[1:]; len(rest) > 0; {
		if len(rest) < 2 || len(rest) < 2+int(rest[1]) {
			m.breach(InvalidLength, "an element of the UDH is cut")
			return
		}
		id, value := rest[0], rest[2:2+int(rest[1])]
		rest = rest[2+len(value):]
		var found Concat
		switch {
		case id == 0x00 && len(value) == 3:
			found = Concat{Ref: uint16(value[0]), Total: value[1], Seq: value[2], By: "udh8"}
		case id == 0x08 && len(value) == 4:
			found = Concat{Ref: binary.BigEndian.Uint16(value), Total: value[2], Seq: value[3], By: "udh16"}
		case id == 0x00 || id == 0x08:
			m.breach(InvalidLength, "a concatenation element of %d bytes", len(value))
			continue
		default:
			continue
		}
		if found.Total == 0 || found.Seq == 0 || found.Seq > found.Total {
			m.breach(InvalidLength, "segment %d of %d", found.Seq, found.Total)
			continue
		}
		m.concat = found
	}
}

// checkText checks the length and the encoding of the text, and that no character is cut
// between segments.
func (m *submit) checkText(alphabet Alphabet) {
	segment := !m.hasPayload
	switch {
	case m.coding == 8:
		if len(m.text)%2 != 0 {
			m.cut("UCS-2 of %d bytes", len(m.text))
			return
		}
		if segment && len(m.udh)+len(m.text) > 140 {
			m.breach(InvalidLength, "%d bytes of UCS-2 and UDH do not fit one segment", len(m.udh)+len(m.text))
		}
		if text := surrogates(m.text); text != "" {
			m.cut("%s", text)
		}
	case m.coding == 0 && alphabet == GSM7:
		if limit := (140 - len(m.udh)) * 8 / 7; segment && len(m.text) > limit {
			m.breach(InvalidLength, "%d septets where %d fit beside the UDH", len(m.text), limit)
		}
		m.checkSeptets()
	case m.coding == 0 && alphabet == ASCII || m.coding == 1:
		for _, c := range m.text {
			if c > 0x7F {
				m.breach(InvalidLength, "byte 0x%02X is not ASCII", c)
				break
			}
		}
	case segment && m.coding == 3 && m.concat.Total > 1: // carriers encode it anew
		if limit := (140 - len(m.udh)) * 8 / 7; len(m.text) > limit {
			m.breach(InvalidLength, "%d bytes of Latin-1 where %d septets fit beside the UDH", len(m.text), limit)
		}
	case segment && m.coding >= 2 && m.coding <= 4 && len(m.udh)+len(m.text) > 140:
		m.breach(InvalidLength, "%d bytes of text and UDH do not fit one segment", len(m.udh)+len(m.text))
	}
}

// cut records a character that is not whole. In a part of a long message it is no reason to refuse: a carrier does not
// look, and the handset joins what a customer's program has cut anywhere.
func (m *submit) cut(format string, args ...any) {
	m.breach(InvalidLength, format, args...)
	m.breaches[len(m.breaches)-1].taken = m.concat.Total > 1
}

// checkSeptets checks the bytes of unpacked GSM-7 text.
func (m *submit) checkSeptets() {
	text := m.text
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c > 0x7F:
			m.breach(InvalidLength, "byte 0x%02X is no septet", c)
			return
		case c != escape:
		case i == len(text)-1:
			m.cut("the text ends within an escape pair")
		default:
			if i++; text[i] > 0x7F || gsmExtension[text[i]] == 0 {
				m.breach(InvalidLength, "0x1B 0x%02X is not in the extension table", text[i])
			}
		}
	}
}

// surrogates finds unpaired surrogates.
func surrogates(text []byte) string {
	open := false
	for i := 0; i < len(text); i += 2 {
		switch text[i] & 0xFC {
		case 0xD8:
			if open {
				return "a high surrogate without its low one"
			}
			open = true
		case 0xDC:
			if !open {
				return "a low surrogate without its high one"
			}
			open = false
		default:
			if open {
				return "a high surrogate without its low one"
			}
		}
	}
	if open {
		return "the text ends within a surrogate pair"
	}
	return ""
}

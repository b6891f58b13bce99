package smpp

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestDamagedTails: a whole text counts whatever follows is broken.
func TestDamagedTails(t *testing.T) {
	id, state := TLV{TagReceiptedMessageID, []byte("7FCA1\x00")}, TLV{TagMessageState, []byte{2}}
	reference := TLV{TagUserMessageReference, []byte{0x12, 0x34}}
	many := make([]TLV, 130)
	for i := range many {
		many[i] = TLV{0x1400 + uint16(i), []byte{1}}
	}
	longer := func(body []byte, text string, by byte) []byte {
		body[len(body)-len(text)-1] += by
		return body
	}
	plain := func() []byte { return deliverBody(0, 0, "STOP") }
	for _, c := range []struct {
		name    string
		command command
		body    []byte
		text    string
		tlvs    int
		broken  bool
	}{
		{"a TLV cut short", cmdDeliverSM, append(plain(), 0x14, 0x01, 0, 50, 1, 2, 3), "STOP", 0, true},
		{"a TLV cut in its header", cmdDeliverSM, append(plain(), 0x14, 0x01, 0), "STOP", 0, false},
		{"a NUL before TLVs", cmdDeliverSM, append(append(plain(), 0), deliverTail(reference)...), "STOP", 1, true},
		{"NULs before TLVs", cmdDeliverSM, append(append(plain(), 0, 0, 0), deliverTail(reference, id)...), "STOP", 2, true},
		{"130 TLVs", cmdDeliverSM, deliverBody(0, 0, "STOP", many...), "STOP", 128, true},
		{"sm_length too large", cmdDeliverSM, longer(plain(), "STOP", 40), "STOP", 0, true},
		{"sm_length too large, UCS-2", cmdDeliverSM, longer(deliverBody(0, 8, wide("STOP")), wide("STOP"), 40), wide("STOP"),
			0, true},
		{"lengths in little-endian", cmdDeliverSM, append(plain(), littleEndian(reference)...), "STOP", 1, true},
		{"a payload cut short", cmdDataSM, append(dataBody(0, 0), 4, 0x24, 0, 50, 'S', 'T', 'O', 'P'), "STOP", 0, true},
		{"marked as a receipt", cmdDeliverSM, append(deliverBody(4, 0, "STOP"), 0x14, 0x01, 0, 50, 1, 2, 3), "STOP", 0, true},
	} {
		d, err := Reading{}.decode(c.command, c.body, time.Now())
		if err != nil || string(d.ShortMessage) != c.text || len(d.TLVs) != c.tlvs || (d.broken != nil) != c.broken ||
			d.Receipt != nil {
			t.Errorf("%s: %+v, %v", c.name, d, err)
		}
	}
	for name, body := range map[string][]byte{
		"little-endian lengths": append(deliverBody(0, 0, ""), littleEndian(id, state, reference)...),
		"little-endian lengths, a long text": append(deliverBody(4, 0, receiptText[len("id:0123456789 "):]),
			littleEndian(id, state)...),
		"a NUL before the TLVs":           append(append(deliverBody(4, 0, "Delivered"), 0), deliverTail(state, id)...),
		"a NUL before little-endian TLVs": append(append(deliverBody(4, 0, ""), 0), littleEndian(state, id)...),
	} {
		if d, err := (Reading{}).decode(cmdDeliverSM, body, time.Now()); err != nil || d.Receipt == nil ||
			d.Receipt.ID != "7FCA1" || d.Receipt.State != "DELIVRD" || d.Receipt.Unmarked {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	for name, body := range map[string][]byte{
		"no text, a TLV cut short":  append(deliverBody(0, 0, ""), 0x14, 0x01, 0, 50, 1),
		"a payload that is missing": append(dataBody(0, 0), 4, 0x24, 0, 50),
		"a receipt cut in its id":   longer(deliverBody(4, 0, "id:7FC"), "id:7FC", 9),
	} {
		cmd := cmdDeliverSM
		if strings.Contains(name, "payload") {
			cmd = cmdDataSM
		}
		if d, err := (Reading{}).decode(cmd, body, time.Now()); err == nil {
			t.Errorf("%s is taken: %+v", name, d)
		}
	}
}

// deliverTail encodes TLVs.
func deliverTail(list ...TLV) []byte {
	return bytes.TrimPrefix(deliverBody(0, 0, "", list...), deliverBody(0, 0, ""))
}

// TestUDHIsFound: the UDH bit is what the text says, not what the carrier says; with HiddenUDH also where it says
// nothing.
func TestUDHIsFound(t *testing.T) {
	letters := strings.Repeat("Ne me parlez plus de cette facture! ", 3) + "Merci"
	for _, c := range []struct {
		name   string
		esm    byte
		text   string
		hidden bool
		want   int // length of the UDH
	}{
		{"concatenation", 0x40, "\x05\x00\x03\x07\x02\x01STOP", false, 6},
		{"16-bit concatenation", 0x40, "\x06\x08\x04\x00\x07\x02\x01STOP", false, 7},
		{"ports", 0x40, "\x06\x05\x04\x0b\x84\x23\xf0STOP", false, 7},
		{"ports and concatenation", 0x40, "\x0b\x05\x04\x0b\x84\x23\xf0\x00\x03\x2a\x03\x02text", false, 12},
		{"an unknown element", 0x40, "\x04\x70\x02\x01\x02STOP", false, 5},
		{"a padded one", 0x40, "\x06\x00\x03\x07\x02\x01\x00STOP", false, 7},
		{"a long one", 0x40, "\x25\x00\x03\x07\x02\x01\x0a\x1e" + strings.Repeat("\x01", 30) + "STOP", false, 38},
		{"113 letters", 0x40, letters, false, 0},
		{"UCS-2", 0x40, wide("STOP"), false, 0},
		{"UCS-2, a Latin capital", 0x40, wide("Ā STOP"), false, 0},
		{"UCS-2, Arabic", 0x40, wide("المقياس"), false, 0},
		{"a GSM-7 letter below the space", 0x40, "\x05vitez", false, 0},
		{"a line break", 0x40, "\nSTOP", false, 0},
		{"longer than the text", 0x40, "\x1fSTOP", false, 0},
		{"nothing behind it", 0x40, "\x05\x00\x03\x07\x02\x01", false, 6},
		{"one letter", 0x40, "1", false, 0},
		{"without the bit", 0, "\x05\x00\x03\x07\x02\x01STOP", false, 0},
		{"hidden", 0, "\x05\x00\x03\x07\x02\x01STOP", true, 6},
		{"hidden ports", 0, "\x06\x05\x04\x0b\x84\x23\xf0STOP", true, 7},
		{"hidden, an unknown element", 0, "\x04\x70\x02\x01\x02STOP", true, 0},
		{"hidden, a text", 0, letters, true, 0},
	} {
		d, err := Reading{HiddenUDH: c.hidden}.decode(cmdDeliverSM, deliverBody(c.esm, 0, c.text), time.Now())
		if err != nil || d.udh() != c.want || (d.ESMClass&esmUDHI != 0) != (c.want > 0) || string(d.ShortMessage) != c.text ||
			d.sentESM != c.esm {
			t.Errorf("%s: %+v, %v", c.name, d, err)
		}
	}
}

// TestPackedSeptets: eight septets in seven bytes, behind a header at a septet's boundary (3GPP TS 23.038, 6.1.2.1;
// 3GPP TS 23.040, 9.2.3.24).
func TestPackedSeptets(t *testing.T) {
	packed := Reading{Packed: true}
	for _, c := range []struct {
		name, octets, want string
		esm, coding        byte
	}{
		{"STOP", "\x53\xea\x13\x0a", "STOP", 0, 0},
		{"seven, padded", "\xe8\x32\x9b\xfd\x46\x97\x01", "hellohe", 0, 0},
		{"eight", "\xe8\x32\x9b\xfd\x46\x97\xd9", "hellohel", 0, 0},
		{"behind a header", "\x05\x00\x03\x07\x02\x01" + "\xa6\xd4\x27\x14", "\x05\x00\x03\x07\x02\x01STOP", 0x40, 0},
		{"UCS-2 stays", wide("STOP"), wide("STOP"), 0, 8},
	} {
		d, err := packed.decode(cmdDeliverSM, deliverBody(c.esm, c.coding, c.octets), time.Now())
		if err != nil || string(d.ShortMessage) != c.want || d.Receipt != nil {
			t.Errorf("%s: %q, %v", c.name, d.ShortMessage, err)
		}
	}
	for _, text := range []string{receiptText, string(pack(receiptText))} { // receipts are often not packed
		d, err := packed.decode(cmdDeliverSM, deliverBody(4, 0, text), time.Now())
		if err != nil || d.Receipt == nil || d.Receipt.ID != "0123456789" {
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	}
}

// pack packs septets.
func pack(text string) (packed []byte) {
	var bits, held uint
	for i := range len(text) {
		bits |= uint(text[i]) << held
		for held += 7; held >= 8; held -= 8 {
			packed, bits = append(packed, byte(bits)), bits>>8
		}
	}
	if held > 0 {
		packed = append(packed, byte(bits))
	}
	return packed
}

// littleEndian encodes TLVs with lengths in little-endian.
func littleEndian(list ...TLV) (raw []byte) {
	for _, t := range list {
		raw = append(raw, byte(t.Tag>>8), byte(t.Tag), byte(len(t.Value)), byte(len(t.Value)>>8))
		raw = append(raw, t.Value...)
	}
	return raw
}

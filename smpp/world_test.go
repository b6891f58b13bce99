package smpp

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

// littleEndian encodes TLVs with lengths in little-endian.
func littleEndian(list ...TLV) (raw []byte) {
	for _, t := range list {
		raw = append(raw, byte(t.Tag>>8), byte(t.Tag), byte(len(t.Value)), byte(len(t.Value)>>8))
		raw = append(raw, t.Value...)
	}
	return raw
}

// TestWhatIsAReceipt: the type bits with an id, a state or a reference, or both TLVs of a receipt. Everything else is a
// message from a handset.
func TestWhatIsAReceipt(t *testing.T) {
	id, state := TLV{TagReceiptedMessageID, []byte("7FCA1\x00")}, TLV{TagMessageState, []byte{2}}
	reference, port := TLV{TagUserMessageReference, []byte{0, 7}}, TLV{0x020A, []byte{0, 80}}
	payload := func(text string) TLV { return TLV{TagMessagePayload, []byte(text)} }
	part := "\x05\x00\x03\x07\x02\x01STOP"
	for _, c := range []struct {
		name, source string
		command      command
		body         []byte
		id, state    string // of the receipt; "-": a message from a handset
	}{
		{"both TLVs under 0", "SMPP 3.4, 5.3.2.12 and 5.3.2.35", cmdDeliverSM, deliverBody(0, 0, "", id, state), "7FCA1", "DELIVRD"},
		{"both TLVs under 0, with a text", "SMPP 3.4, 5.3.2.12", cmdDeliverSM, deliverBody(0, 0, "Delivered", id, state), "7FCA1", "DELIVRD"},
		{"both TLVs in data_sm", "SMPP 3.4, 4.7.1", cmdDataSM, dataBody(0, 0, id, state), "7FCA1", "DELIVRD"},
		{"a reference and a port under 0", "SMPP 3.4, 4.6.1", cmdDeliverSM, deliverBody(0, 0, "Yego", reference, port), "-", ""},
		{"an id alone under 0", "decided", cmdDeliverSM, deliverBody(0, 0, "Yego", id), "-", ""},
		{"a state alone under 0", "decided", cmdDeliverSM, deliverBody(0, 0, "Yego", state), "-", ""},
		{"0x04 without anything", "SMPP 3.4, 5.2.12", cmdDeliverSM, deliverBody(0x04, 0, "STOP"), "-", ""},
		{"0x20 without anything", "SMPP 3.4, 5.2.12", cmdDeliverSM, deliverBody(0x20, 0, "STOP"), "-", ""},
		{"0x44 without a UDH", "SMPP 3.4, 5.2.12", cmdDeliverSM, deliverBody(0x44, 0, "STOP"), "-", ""},
		{"0x44, a part", "SMPP 3.4, 5.2.12", cmdDeliverSM, deliverBody(0x44, 0, part), "-", ""},
		{"0x04 in UCS-2", "SMPP 3.4, 5.2.19", cmdDeliverSM, deliverBody(0x04, 8, wide("STOP")), "-", ""},
		{"0x04 in data_sm", "SMPP 3.4, 4.7.1", cmdDataSM, dataBody(0x04, 0, payload("STOP")), "-", ""},
		{"0x04 with a port", "SMPP 3.4, 4.6.1", cmdDeliverSM, deliverBody(0x04, 0, "STOP", port), "-", ""},
		{"0x04 with an id", "decided", cmdDeliverSM, deliverBody(0x04, 0, "", id), "7FCA1", ""},
		{"0x04 with a state", "decided", cmdDeliverSM, deliverBody(0x04, 0, "stat:DELIVRD"), "", "DELIVRD"},
		{"0x04 with a reference", "rule carriers 2.13", cmdDeliverSM, deliverBody(0x04, 0, "", reference), "", ""},
		{"0x08, an acknowledgement of a handset", "SMPP 3.4, 5.2.12", cmdDeliverSM, deliverBody(0x08, 0, "Yego"), "-", ""},
	} {
		d, err := Reading{}.decode(c.command, c.body, time.Now())
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.id == "-" && d.Receipt != nil:
			t.Errorf("%s (%s): a receipt %+v", c.name, c.source, d.Receipt)
		case c.id != "-" && (d.Receipt == nil || d.Receipt.ID != c.id || d.Receipt.State != c.state || d.Receipt.Unmarked):
			t.Errorf("%s (%s): %+v", c.name, c.source, d.Receipt)
		}
	}
}

// TestTextOfAReceipt: under esm_class 0 only a text that no person writes is taken for a receipt.
func TestTextOfAReceipt(t *testing.T) {
	for text, want := range map[string]bool{
		receiptText:                     true,
		"id:1 stat:DELIVRD":             true,
		"STAT=undeliverable;ID=1":       true,
		"id:1 state:DELIVERED":          true,
		"id:1 sub:001 stat:BUFFRED":     true,
		"id:1 done date:2603 stat:X":    true,
		"id:123 state:Gitega":           false,
		"id:123 state:Gitega sub:maths": false,
		"id:1 stat:ok":                  false,
		"ID: 12 date: 3/4 stat: Ngozi":  false,
		"stat:DELIVRD":                  false,
		"id:1":                          false,
		"STOP":                          false,
		"PAY:500":                       false,
	} {
		r := receiptOf(0, 0, text)
		if (r != nil) != want || r != nil && !r.Unmarked {
			t.Errorf("%q: %+v", text, r)
		}
	}
	if r := receiptOf(0x40, 0, "\x05\x00\x03\x07\x02\x01id:1 stat:DELIVRD"); r != nil {
		t.Errorf("a part of a long text: %+v", r)
	}
	if r := receiptOf(0, 8, wide(receiptText)); r == nil || !r.Unmarked || r.ID != "0123456789" {
		t.Errorf("in UCS-2: %+v", r)
	}
}

// TestWordsOfAReceipt: what carriers make of the words and signs of appendix B.
func TestWordsOfAReceipt(t *testing.T) {
	for _, c := range []struct{ source, text, id, state, code string }{
		{"SMPP 3.4, 5.2.28", "id:1 stat:DELIVERED err:000", "1", "DELIVRD", "000"},
		{"SMPP 3.4, 5.2.28", "id:1 stat:Undeliverable", "1", "UNDELIV", ""},
		{"SMPP 3.4, 5.2.28; jookies/jasmin#181", "id:1 stat:REJECTED", "1", "REJECTD", ""},
		{"SMPP 3.4, 5.2.28; jookies/jasmin#181", "id:1 stat:accepted", "1", "ACCEPTD", ""},
		{"a vendor", "id:1 stat:FAILED", "1", "FAILED", ""},
		{"a vendor", "id:1 stat:DELIVERED_TO_HANDSET", "1", "DELIVRD", ""},
		{"a vendor", "id:1 stat:NOT DELIVERED", "1", "NOT", ""},
		{"a vendor", `id:"1" stat:"DELIVRD" err:"000"`, "1", "DELIVRD", "000"},
		{"a vendor", "id:'1' stat:'DELIVRD'", "1", "DELIVRD", ""},
		{"a vendor", "id=1 sub=001 stat=DELIVRD err=000 text=id=2", "1", "DELIVRD", "000"},
		{"a vendor", "id = 1&stat = UNDELIV&err = 011", "1", "UNDELIV", "011"},
		{"a vendor", `{"id":"1","stat":"DELIVRD","err":"0"}`, "1", "DELIVRD", "0"},
		{"a vendor", "id:1 stat:DELIVRD.", "1", "DELIVRD", ""},
		{"a vendor", "id:1 stat:<DELIVRD> err:[000]", "1", "DELIVRD", "000"},
		{"funbox/smppex#46", "id:rdw sub:000 dlvrd:000 submit date:180711070003912+ done date:180711070000012+ stat:UNDELIV err:000", "rdw", "UNDELIV", "000"},
		{"a vendor", "id:1 submit date:2026-03-01 10:00:59 done date:01/03/2026 10:01 stat:DELIVRD err:000", "1", "DELIVRD", "000"},
		{"a vendor", "id:1 done date:Sun, 1 Mar 2026 10:00:59 +0200 stat:DELIVRD", "1", "DELIVRD", ""},
		{"a vendor", "id:1 done date:2026-03-01T10:00:59Z stat:DELIVRD", "1", "DELIVRD", ""},
		{"a base64 id", "id:YWJj== stat:DELIVRD", "YWJj==", "DELIVRD", ""},
	} {
		r := receiptOf(0x04, 0, c.text)
		if r == nil || r.ID != c.id || r.State != c.state || r.Error != c.code {
			t.Errorf("%s: %q is %+v", c.source, c.text, r)
		}
	}
	digits := Reading{StateDigits: true}
	for text, want := range map[string]string{"id:1 stat:2": "DELIVRD", "id:1 stat:5": "UNDELIV", "id:1 stat:08": "REJECTD", "id:1 stat:12": "12", "id:1 stat:EXPIRED": "EXPIRED"} {
		d := &Delivery{ESMClass: 4, ShortMessage: []byte(text)}
		if d.classify(digits, false); d.Receipt.State != want {
			t.Errorf("%q with digits is %s, want %s", text, d.Receipt.State, want)
		}
	}
	if r := receiptOf(4, 0, "id:1 stat:2"); r.State != "2" {
		t.Errorf("a digit without the setting is %s", r.State)
	}
}

// TestIDsAndStatesOfTLVs: all ids of a receipt are kept, the TLV's first; message_state in every form.
func TestIDsAndStatesOfTLVs(t *testing.T) {
	id := func(text string) TLV { return TLV{TagReceiptedMessageID, []byte(text)} }
	r := receiptOf(4, 0, "id:11 sub:001 stat:DELIVRD id:12 id:13 id:14", id("99\x00"))
	if r.ID != "99" || r.Also != [2]string{"11", "12"} {
		t.Errorf("%+v", r)
	}
	if r = receiptOf(4, 0, "id:99 stat:DELIVRD", id("99")); r.ID != "99" || r.Also != [2]string{} {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct{ name, text, value, want string }{
		{"0 beside a state", "id:1 stat:DELIVRD", "\x00", "DELIVRD"},
		{"0 alone", "id:1", "\x00", "SCHEDULED"},
		{"another state beside the text's", "id:1 stat:DELIVRD", "\x05", "UNDELIV"},
		{"two octets", "", "\x00\x02", "DELIVRD"},
		{"two octets, little-endian", "", "\x02\x00", "DELIVRD"},
		{"four octets", "", "\x00\x00\x00\x05", "UNDELIV"},
		{"four octets, little-endian", "", "\x05\x00\x00\x00", "UNDELIV"},
		{"a digit", "", "2", "DELIVRD"},
		{"a digit and a NUL", "", "2\x00", "DELIVRD"},
		{"a word", "", "DELIVERED\x00", "DELIVRD"},
		{"no octet", "id:1 stat:DELIVRD", "", "DELIVRD"},
		{"a vendor's number", "id:1", "\x2A", "42"},
		{"a vendor's number beside a text", "id:1 stat:DELIVRD", "\x2A", "DELIVRD"},
		{"no number of one octet", "id:1 stat:DELIVRD", "\x01\x02", "DELIVRD"},
	} {
		if r := receiptOf(4, 0, c.text, id("1"), TLV{TagMessageState, []byte(c.value)}); r == nil || r.State != c.want {
			t.Errorf("%s: %+v, want %s", c.name, r, c.want)
		}
	}
}

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
		{"sm_length too large, UCS-2", cmdDeliverSM, longer(deliverBody(0, 8, wide("STOP")), wide("STOP"), 40), wide("STOP"), 0, true},
		{"lengths in little-endian", cmdDeliverSM, append(plain(), littleEndian(reference)...), "STOP", 1, true},
		{"a payload cut short", cmdDataSM, append(dataBody(0, 0), 4, 0x24, 0, 50, 'S', 'T', 'O', 'P'), "STOP", 0, true},
		{"marked as a receipt", cmdDeliverSM, append(deliverBody(4, 0, "STOP"), 0x14, 0x01, 0, 50, 1, 2, 3), "STOP", 0, true},
	} {
		d, err := Reading{}.decode(c.command, c.body, time.Now())
		if err != nil || string(d.ShortMessage) != c.text || len(d.TLVs) != c.tlvs || (d.broken != nil) != c.broken || d.Receipt != nil {
			t.Errorf("%s: %+v, %v", c.name, d, err)
		}
	}
	for name, body := range map[string][]byte{
		"little-endian lengths":              append(deliverBody(0, 0, ""), littleEndian(id, state, reference)...),
		"little-endian lengths, a long text": append(deliverBody(4, 0, receiptText[len("id:0123456789 "):]), littleEndian(id, state)...),
		"a NUL before the TLVs":              append(append(deliverBody(4, 0, "Delivered"), 0), deliverTail(state, id)...),
		"a NUL before little-endian TLVs":    append(append(deliverBody(4, 0, ""), 0), littleEndian(state, id)...),
	} {
		if d, err := (Reading{}).decode(cmdDeliverSM, body, time.Now()); err != nil || d.Receipt == nil || d.Receipt.ID != "7FCA1" || d.Receipt.State != "DELIVRD" || d.Receipt.Unmarked {
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

// TestUDHIsFound: the UDH bit is what the text says, not what the carrier says; with HiddenUDH also where it says nothing.
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
		if err != nil || d.udh() != c.want || (d.ESMClass&esmUDHI != 0) != (c.want > 0) || string(d.ShortMessage) != c.text || d.sentESM != c.esm {
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

// TestLeft: whether a response was written is known after it was, and after the end of its session.
func TestLeft(t *testing.T) {
	t.Parallel()
	got := make(chan *Delivery, 2)
	_, p, _ := newBound(t, func(o *Options) { o.Deliver = func(d *Delivery) { got <- d } })
	p.send(rawDeliver, 0, 7, deliverBody(0, 0, "1")...)
	p.send(rawDeliver, 0, 8, deliverBody(0, 0, "1")...)
	first, second := <-got, <-got
	if left, known := first.Left(); left || !known {
		t.Errorf("before it is answered: %v, %v", left, known)
	}
	first.Respond(StatusOK)
	p.expect(rawDeliverResp)
	for end := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		left, known := first.Left()
		if left && known && !first.BoundAt.IsZero() && first.BoundAt.Before(first.Received) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after it is answered: %v, %v, bound %v", left, known, first.BoundAt)
		}
	}
	_ = p.conn.Close()
	for end := time.Now().Add(patience); !second.session.ended(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the session does not end")
		}
	}
	second.Respond(StatusOK)
	if left, known := second.Left(); left || !known {
		t.Errorf("after the end of the session: %v, %v", left, known)
	}
}

// TestPDUsOfTheWorld: whole PDUs as carriers sent them.
func TestPDUsOfTheWorld(t *testing.T) {
	for name, c := range map[string]struct {
		pdu     string
		receipt bool
		text    string
	}{
		"TLVs under esm_class 0": {"00000040000000050000000000000007000101323537373931323334303000050041434d450000000000000000000000001e0007374633413231000427000102", true, ""},
		"STOP under 0x04":        {"00000034000000050000000000000007000101323537373931323334303000030038303830000400000000000000000453544f50", false, "STOP"},
	} {
		raw, err := hex.DecodeString(c.pdu)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Reading{}.decode(cmdDeliverSM, raw[headerLength:], time.Now())
		if err != nil || (d.Receipt != nil) != c.receipt || string(d.ShortMessage) != c.text || d.Source != "25779123400" {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

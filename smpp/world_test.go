package smpp

import (
	"encoding/hex"
	"testing"
	"time"
)

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
		{"both TLVs under 0", "SMPP 3.4, 5.3.2.12 and 5.3.2.35", cmdDeliverSM, deliverBody(0, 0, "", id, state), "7FCA1",
			"DELIVRD"},
		{"both TLVs under 0, with a text", "SMPP 3.4, 5.3.2.12", cmdDeliverSM, deliverBody(0, 0, "Delivered", id, state),
			"7FCA1", "DELIVRD"},
		{"both TLVs in data_sm", "SMPP 3.4, 4.7.1", cmdDataSM, dataBody(0, 0, id, state), "7FCA1", "DELIVRD"},
		{"a reference and a port under 0", "SMPP 3.4, 4.6.1", cmdDeliverSM, deliverBody(0, 0, "Yego", reference, port), "-",
			""},
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
		{"a vendor", "id:1 stat:NOT DELIVERED", "1", "UNDELIV", ""},
		{"a vendor", "id:1 stat:Not Delivered, err:000", "1", "UNDELIV", "000"},
		{"a vendor", "id:1 stat:DELIVRD to the handset", "1", "DELIVRD", ""},
		{"a French carrier, in UTF-8", "id:1 stat:livré err:000", "1", "LIVRÉ", "000"},
		{"the same in Latin-1", "id:1 stat:LIVR\xe9 err:000", "1", "LIVRÉ", "000"},
		{"a vendor", `id:"1" stat:"DELIVRD" err:"000"`, "1", "DELIVRD", "000"},
		{"a vendor", "id:'1' stat:'DELIVRD'", "1", "DELIVRD", ""},
		{"a vendor", "id=1 sub=001 stat=DELIVRD err=000 text=id=2", "1", "DELIVRD", "000"},
		{"a vendor", "id = 1&stat = UNDELIV&err = 011", "1", "UNDELIV", "011"},
		{"a vendor", `{"id":"1","stat":"DELIVRD","err":"0"}`, "1", "DELIVRD", "0"},
		{"a vendor", "id:1 stat:DELIVRD.", "1", "DELIVRD", ""},
		{"a vendor", "id:1 stat:<DELIVRD> err:[000]", "1", "DELIVRD", "000"},
		{"funbox/smppex#46", "id:rdw sub:000 dlvrd:000 submit date:180711070003912+ done date:180711070000012+ " +
			"stat:UNDELIV err:000", "rdw", "UNDELIV", "000"},
		{"a vendor", "id:1 submit date:2026-03-01 10:00:59 done date:01/03/2026 10:01 stat:DELIVRD err:000", "1", "DELIVRD",
			"000"},
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
	for text, want := range map[string]string{"id:1 stat:2": "DELIVRD", "id:1 stat:5": "UNDELIV",
		"id:1 stat:08": "REJECTD", "id:1 stat:12": "12", "id:1 stat:EXPIRED": "EXPIRED"} {
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
		"TLVs under esm_class 0": {
			"00000040000000050000000000000007000101323537373931323334303000050041434d45" +
				"0000000000000000000000001e0007374633413231000427000102", true, ""},
		"STOP under 0x04": {
			"00000034000000050000000000000007000101323537373931323334303000030038303830000400000000000000000453544f50", false,
			"STOP"},
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

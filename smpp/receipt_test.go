package smpp

import (
	"strings"
	"testing"
	"unicode/utf16"
)

func receiptOf(esm, coding byte, text string, tlvs ...TLV) *Receipt {
	d := &Delivery{ESMClass: esm, DataCoding: coding, ShortMessage: []byte(text), TLVs: tlvs}
	d.markUDH(false)
	d.classify(Reading{}, false)
	return d.Receipt
}

func TestReceiptText(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct {
		name, text string
		want       Receipt
	}{
		{"appendix B", receiptText,
			Receipt{ID: "0123456789", State: "DELIVRD", Error: "000"}},
		{"seconds", "id:1 submit date:260301100159 done date:260301100159 stat:DELIVRD err:0",
			Receipt{ID: "1", State: "DELIVRD", Error: "0"}},
		{"four-digit year", "id:1 done date:20260301100159 stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"another order", "stat:UNDELIV err:0000 id:77 dlvrd:000 sub:001",
			Receipt{ID: "77", State: "UNDELIV", Error: "0000"}},
		{"only id and stat", "id:77 stat:EXPIRED", Receipt{ID: "77", State: "EXPIRED"}},
		{"64 characters", "id:" + long + " stat:REJECTD", Receipt{ID: long, State: "REJECTD"}},
		{"uuid", "id:6f1c1e0a-42aa-4d60-9a3b-0f9d3a1d7a10 sub:001 stat:ACCEPTD",
			Receipt{ID: "6f1c1e0a-42aa-4d60-9a3b-0f9d3a1d7a10", State: "ACCEPTD"}},
		{"lower case", "ID:1 STAT:delivrd ERR:0a1 text:", Receipt{ID: "1", State: "DELIVRD", Error: "0a1"}},
		{"spaces after colons", "id: 1 sub: 001 dlvrd: 001 submit date: 2603011000 stat: DELIVRD err: 000",
			Receipt{ID: "1", State: "DELIVRD", Error: "000"}},
		{"empty values", "id:1 sub: dlvrd: submit date: done date: stat:DELIVRD err: text:",
			Receipt{ID: "1", State: "DELIVRD"}},
		{"joined dates", "id:1 submit_date:2603011000 donedate:2603011001 stat:DELIVRD",
			Receipt{ID: "1", State: "DELIVRD"}},
		{"bad dates", "id:1 submit date:9999999999 done date:today stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"keys in the text", "id:1 stat:DELIVRD err:000 text:id:2 stat:UNDELIV err:999",
			Receipt{ID: "1", State: "DELIVRD", Error: "000"}},
		{"keys in the text, upper case", "id:1 stat:DELIVRD Text:stat:UNDELIV", Receipt{ID: "1", State: "DELIVRD"}},
		{"the first counts", "id:1 stat:DELIVRD id:2 stat:UNDELIV", Receipt{ID: "1", Also: [2]string{"2"}, State: "DELIVRD"}},
		{"commas", "id:1, stat:DELIVRD, err:000;", Receipt{ID: "1", State: "DELIVRD", Error: "000"}},
		{"commas alone",
			"id:CM1,sub:001,dlvrd:001,submit date:2603011000,done date:2603011001,stat:DELIVRD,err:000,text:id:2",
			Receipt{ID: "CM1", State: "DELIVRD", Error: "000"}},
		{"semicolons alone", "id:1;sub:001;stat:DELIVRD;err:000;", Receipt{ID: "1", State: "DELIVRD", Error: "000"}},
		{"bars alone", "id:1|done_date:2603011001|stat:DELIVRD|err:000|", Receipt{ID: "1", State: "DELIVRD", Error: "000"}},
		{"separators in a row", "id:1,;|stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"separators in the id", "id:a,b;c|id,stat:DELIVRD", Receipt{ID: "a,b;c|id", State: "DELIVRD"}},
		{"a separator for a value", "id:,stat:DELIVRD", Receipt{State: "DELIVRD"}},
		{"spaces before colons", "id : 1 sub : 001 dlvrd : 001 submit date : 2603011000 stat  : DELIVRD err : 000 Text : " +
			"stat:UNDELIV",
			Receipt{ID: "1", State: "DELIVRD", Error: "000"}},
		{"spaces before colons, no values", "id : sub : stat : DELIVRD", Receipt{State: "DELIVRD"}},
		{"state", "id:1,state:delivrd,err:000", Receipt{ID: "1", State: "DELIVRD", Error: "000"}},
		{"the first state counts", "id:1 state:DELIVRD state:UNDELIV", Receipt{ID: "1", State: "DELIVRD"}},
		{"stat after state", "id:1 message_state:2 stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"stat before state", "id:1 stat:DELIVRD state:UNDELIV", Receipt{ID: "1", State: "DELIVRD"}},
		{"state in the text", "id:1 text:the state:DELIVRD of id : 2", Receipt{ID: "1"}},
		{"line breaks", "id:1\r\nstat:DELIVRD\r\nerr:000\r\n", Receipt{ID: "1", State: "DELIVRD", Error: "000"}},
		{"closing NUL", "id:1 stat:DELIVRD\x00", Receipt{ID: "1", State: "DELIVRD"}},
		{"a UDH before it", "\x05\x00\x03\x01\x01\x01id:1 stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"no key within a word", "paid:9 id:1 restat:X stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"vendor state", "id:1 stat:BUFFRED", Receipt{ID: "1", State: "BUFFRED"}},
		{"id too long", "id:" + strings.Repeat("x", 256) + " stat:DELIVRD", Receipt{State: "DELIVRD"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := receiptOf(0x04, 0, c.text); got == nil || *got != c.want {
				t.Errorf("%q:\n got %+v\nwant %+v", c.text, got, c.want)
			}
		})
	}
}

func TestReceiptTLVsPrecedeText(t *testing.T) {
	r := receiptOf(0x04, 0, receiptText,
		TLV{TagReceiptedMessageID, []byte("feed-1\x00")},
		TLV{TagMessageState, []byte{5}},
		TLV{TagNetworkErrorCode, []byte{3, 0x01, 0x02}},
		TLV{TagUserMessageReference, []byte{0x12, 0x34}},
		TLV{0x1454, []byte("vendor")})
	if r.ID != "feed-1" || r.State != "UNDELIV" || r.Error != "000" {
		t.Errorf("got %+v", r)
	}
	if r.UserMessageReference == nil || *r.UserMessageReference != 0x1234 {
		t.Errorf("reference %v", r.UserMessageReference)
	}
	// Empty TLVs do not hide the text.
	r = receiptOf(0x04, 0, receiptText,
		TLV{TagReceiptedMessageID, []byte{0}}, TLV{TagMessageState, []byte{42}},
		TLV{TagNetworkErrorCode, []byte{3}}, TLV{TagUserMessageReference, nil})
	if r.ID != "0123456789" || r.State != "DELIVRD" || r.UserMessageReference != nil {
		t.Errorf("got %+v", r)
	}
	// TLVs alone are enough.
	r = receiptOf(0x04, 0, "", TLV{TagReceiptedMessageID, []byte("no-nul")}, TLV{TagMessageState, []byte{2}})
	if r.ID != "no-nul" || r.State != "DELIVRD" {
		t.Errorf("got %+v", r)
	}
	for value, want := range messageStates {
		if r := receiptOf(0x04, 0, "", TLV{TagMessageState, []byte{byte(value)}}); r.State != want {
			t.Errorf("message_state %d: %s, want %s", value, r.State, want)
		}
	}
}

// A text in the form of a receipt that esm_class does not mark may come from a handset.
func TestUnmarkedReceipt(t *testing.T) {
	for esm := range 256 {
		r := receiptOf(byte(esm), 0, receiptText, TLV{TagReceiptedMessageID, []byte("1\x00")})
		kind := esm >> 2 & 0xF
		if marked := kind == 1 || kind == 8; r == nil || r.Unmarked == marked {
			t.Errorf("esm_class %#02x: %+v", esm, r)
		}
		if r != nil && r.Intermediate != (kind == 8) {
			t.Errorf("esm_class %#02x: intermediate %v", esm, r.Intermediate)
		}
	}
}

// wide encodes a text in UCS-2.
func wide(text string) string {
	var raw []byte
	for _, u := range utf16.Encode([]rune(text)) {
		raw = append(raw, byte(u>>8), byte(u))
	}
	return string(raw)
}

// esm_class and data_coding describe a receipt's text, or were copied from its message.
func TestReceiptCoding(t *testing.T) {
	udh8, udh16 := "\x05\x00\x03\x01\x01\x01", "\x06\x08\x04\x01\x01\x01\x01"
	forged := "\x69\x64\x3a\x39\x20\x20\x73\x74\x61\x74\x3a\x58" // bytes of UCS-2 that spell "id:9  stat:X"
	for _, c := range []struct {
		name        string
		esm, coding byte
		text        string
		want        Receipt
	}{
		{"UCS-2", 0x04, 8, wide(receiptText), Receipt{ID: "0123456789", State: "DELIVRD"}},
		{"UCS-2 with the class of its message", 0x04, 0x19, wide(receiptText), Receipt{ID: "0123456789", State: "DELIVRD"}},
		{"UCS-2 as bytes", 0x04, 0, wide(receiptText), Receipt{ID: "0123456789", State: "DELIVRD"}},
		{"UCS-2 in little-endian", 0x04, 8, wide(receiptText)[1:] + "\x00", Receipt{ID: "0123456789", State: "DELIVRD"}},
		{"bytes as UCS-2", 0x04, 8, receiptText, Receipt{ID: "0123456789", State: "DELIVRD"}},
		{"bytes as UCS-2, an odd number", 0x04, 8, "id:1 stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"bytes as UCS-2 behind a UDH", 0x44, 8, udh16 + "id:1 stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"UCS-2 without an id", 0x04, 8, wide("stat:DELIVRD text:") + forged, Receipt{State: "DELIVRD"}},
		{"UCS-2 behind an even UDH", 0x44, 8, udh8 + wide("id:1 stat:DELIVRD"), Receipt{ID: "1", State: "DELIVRD"}},
		{"UCS-2 behind an odd UDH", 0x44, 8, udh16 + wide("id:1 stat:DELIVRD"), Receipt{ID: "1", State: "DELIVRD"}},
		{"UCS-2 behind two elements", 0x44, 8, "\x0a\x00\x03\x01\x01\x01\x08\x03\x01\x01\x01" + wide("id:1 stat:DELIVRD"),
			Receipt{ID: "1", State: "DELIVRD"}},
		{"UCS-2 without the UDH", 0x44, 8, wide("id:1 stat:DELIVRD"), Receipt{ID: "1", State: "DELIVRD"}},
		{"a UDH that ends in a letter", 0x44, 0, "\x06\x05\x04\x0b\x84\x23Aid:1 stat:DELIVRD",
			Receipt{ID: "1", State: "DELIVRD"}},
		{"without the UDH", 0x44, 0, "id:1 stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"a text that could be a UDH", 0x44, 0, "id:" + strings.Repeat("x", 59) + "+ stat:DELIVRD" + strings.Repeat(" ", 60) +
			"err:0",
			Receipt{ID: strings.Repeat("x", 59) + "+", State: "DELIVRD"}},
		{"a broken UDH", 0x44, 0, "\x05\x00\x09\x01\x01\x01id:1 stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
		{"a line break for a UDH", 0x44, 0, "\nid:1 stat:DELIVRD", Receipt{ID: "1", State: "DELIVRD"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := receiptOf(c.esm, c.coding, c.text); r == nil || r.ID != c.want.ID || r.State != c.want.State {
				t.Errorf("%q:\n got %+v\nwant %+v", c.text, r, c.want)
			}
		})
	}
}

func FuzzReceipt(f *testing.F) {
	f.Add(byte(4), byte(0), []byte(receiptText), []byte("id\x00"), byte(2))
	f.Add(byte(0x44), byte(8), []byte("\x00i\x00d\x00:\x001"), []byte{}, byte(99))
	f.Add(byte(0x20), byte(0), []byte("submit date:done date:id:text:id:"), []byte("x"), byte(0))
	f.Add(byte(4), byte(8), []byte("id:CM1,sub:001;state : DELIVRD|err:000,text:"), []byte{}, byte(99))
	f.Add(byte(0x44), byte(8), []byte("\x06\x08\x04\x01\x01\x01\x01"+wide("id : 1 stat:DELIVRD")), []byte{}, byte(99))
	f.Fuzz(func(t *testing.T, esm, coding byte, text, id []byte, state byte) {
		r := receiptOf(esm, coding, string(text), TLV{TagReceiptedMessageID, id}, TLV{TagMessageState, []byte{state}})
		if r == nil {
			return
		}
		if len(r.ID) > maxMessageID || len(r.State) > maxReceiptWord || len(r.Error) > maxReceiptWord {
			t.Errorf("unbounded: %+v", r)
		}
		if strings.ContainsAny(r.State, " \t\r\n") {
			t.Errorf("state %q is no word", r.State)
		}
	})
}

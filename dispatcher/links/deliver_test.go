package links

import (
	"testing"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/smpp"
)

// TestHandsetOfReceipt: a carrier may write the addresses either way around.
func TestHandsetOfReceipt(t *testing.T) {
	for _, c := range []struct{ source, dest, want string }{
		{"25761000001", "DEMO", "25761000001"},
		{"DEMO", "25761000001", "25761000001"},
		{"12345678901", "+25761000001", "+25761000001"}, // a sender of digits
		{"61000001", "DEMO", "61000001"},
		{"61000001", "8080", "61000001"},
		{"25761000001", "25779000001", "25761000001"},
		{"", "0025761000001", "0025761000001"},
		{"hidden", "DEMO", ""},
		{"25731123456", "25779000000", "25731123456"}, // a newly opened range
		{"+79123456", "DEMO", "+79123456"},
		{"079123456", "DEMO", "079123456"},
		{"99912345678", "DEMO", ""},
		{"61999999999", "DEMO", ""},
		{"2576100000", "DEMO", ""},
	} {
		if got := handset(c.source, c.dest); got != c.want {
			t.Errorf("from %q to %q: %q, want %q", c.source, c.dest, got, c.want)
		}
	}
}

// TestInboundAlphabet: an MO in data_coding 0 is decoded with its carrier's alphabet,
// as our texts are encoded; the other codings do not depend on the carrier.
func TestInboundAlphabet(t *testing.T) {
	for _, c := range []struct {
		name     string
		alphabet profile.Alphabet
		esm      uint8
		coding   uint8
		octets   string
		want     string
	}{
		{"GSM-7", profile.AlphabetGSM7, 0, 0, "\x00\x05$\x1b\x65_", "@é¤€§"},
		{"Latin-1", profile.AlphabetLatin1, 0, 0, "@\xe9$_", "@é$_"},
		{"ASCII", profile.AlphabetASCII, 0, 0, "@$_{}", "@$_{}"},
		{"Latin-1 behind a UDH", profile.AlphabetLatin1, 0x40, 0, "\x05\x00\x03\x01\x02\x01@\xe9", "@é"},
		{"data_coding 3 beside GSM-7", profile.AlphabetGSM7, 0, 3, "@\xe9$_", "@é$_"},
		{"UCS-2 beside Latin-1", profile.AlphabetLatin1, 0, 8, "\x00@\x20\xac", "@€"},
		{"an escape at the end", profile.AlphabetGSM7, 0, 0, "pay 500\x1b", "pay 500 "},
		{"an escape before a letter", profile.AlphabetGSM7, 0, 0, "pay \x1bZ 500", "pay Z 500"},
		{"no septet", profile.AlphabetGSM7, 0, 0, "pay\xff 500", "pay\ufffd 500"},
		{"half a code unit", profile.AlphabetGSM7, 0, 8, "\x00H\x00i\x00", "Hi\ufffd"},
		{"GSM-7 with a class", profile.AlphabetGSM7, 0, 0xF0, "STOP\x00", "STOP@"},
		{"the carrier's alphabet with a class", profile.AlphabetLatin1, 0, 0xF1, "STOP@", "STOP@"},
		{"UCS-2 with a class", profile.AlphabetGSM7, 0, 0x18, "\x00S\x00T", "ST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &Worker{Carrier: &core.Carrier{Name: "lumitel"}, link: "lumitel-1"}
			w.Carrier.Conf.Store(&setup.Carrier{Profile: profile.Profile{Alphabet: c.alphabet}})
			m := w.inbound(&smpp.Delivery{ESMClass: c.esm, DataCoding: c.coding, ShortMessage: []byte(c.octets)})
			if m.Body == nil {
				t.Fatalf("%q was not read", c.octets)
			}
			if *m.Body != c.want {
				t.Errorf("%q is read as %q, want %q", c.octets, *m.Body, c.want)
			}
		})
	}
}

// TestPartsOfInbound: the part of a long message that a delivery is, in each of the
// three ways of marking it; an invalid mark makes a whole message.
func TestPartsOfInbound(t *testing.T) {
	tlv := func(tag uint16, value ...byte) smpp.TLV { return smpp.TLV{Tag: tag, Value: value} }
	for name, c := range map[string]struct {
		pdu  *smpp.Delivery
		want *handsets.Part
	}{
		"whole": {&smpp.Delivery{ShortMessage: []byte("text")}, nil},
		"UDH of 8 bits": {&smpp.Delivery{ESMClass: 0x40, ShortMessage: []byte("\x05\x00\x03\x2a\x03\x02text")},
			&handsets.Part{Reference: 42, Total: 3, Number: 2}},
		"UDH of 16 bits": {&smpp.Delivery{ESMClass: 0x40, ShortMessage: []byte("\x06\x08\x04\x01\x2a\x03\x02text")},
			&handsets.Part{Reference: 298, Total: 3, Number: 2}},
		"behind ports": {&smpp.Delivery{ESMClass: 0x40,
			ShortMessage: []byte("\x0b\x05\x04\x0b\x84\x23\xf0\x00\x03\x2a\x03\x02text")},
			&handsets.Part{Reference: 42, Total: 3, Number: 2}},
		"ports alone": {&smpp.Delivery{ESMClass: 0x40, ShortMessage: []byte("\x06\x05\x04\x0b\x84\x23\xf0text")},
			nil},
		"without UDHI":        {&smpp.Delivery{ShortMessage: []byte("\x05\x00\x03\x2a\x03\x02text")}, nil},
		"part 4 of 3":         {&smpp.Delivery{ESMClass: 0x40, ShortMessage: []byte("\x05\x00\x03\x2a\x03\x04text")}, nil},
		"part 1 of 1":         {&smpp.Delivery{ESMClass: 0x40, ShortMessage: []byte("\x05\x00\x03\x2a\x01\x01text")}, nil},
		"a header too long":   {&smpp.Delivery{ESMClass: 0x40, ShortMessage: []byte("\x20\x00\x03")}, nil},
		"an element too long": {&smpp.Delivery{ESMClass: 0x40, ShortMessage: []byte("\x05\x00\x09\x2a\x03\x02text")}, nil},
		"SAR": {&smpp.Delivery{TLVs: []smpp.TLV{tlv(smpp.TagSARMessageReference, 0, 42), tlv(smpp.TagSARTotalSegments, 3),
			tlv(smpp.TagSARSegmentSeqnum, 2)}},
			&handsets.Part{Reference: 1<<16 | 42, Total: 3, Number: 2}},
		"SAR without a total": {&smpp.Delivery{TLVs: []smpp.TLV{tlv(smpp.TagSARMessageReference, 0, 42),
			tlv(smpp.TagSARSegmentSeqnum, 2)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := partOf(c.pdu); (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

package profile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
	"time"

	"intumwa/smpp"
	"intumwa/sms"
)

var noon = time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)

func claimed(body string) *Message {
	return &Message{ID: 0x12345, Sender: "DEMO", Number: "+25779123456", Body: body, ConcatRef: 0xAB,
		ExpiresAt: noon.Add(24 * time.Hour)}
}

// TestSegmentFields: the fields exactly as in rule choices 4.2.
func TestSegmentFields(t *testing.T) {
	c := Profile{Source: Sources{Alphanumeric: TONNPI{5, 0}}, Dest: TONNPI{1, 1}, ServiceType: "SMS", NoReference: true,
		TLVs: []smpp.TLV{{Tag: 0x1400, Value: []byte{7}}}}
	got := c.Segments(claimed("Amahoro @ €"), noon)
	want := []smpp.Submit{{
		ServiceType: "SMS", SourceTON: 5, SourceNPI: 0, Source: "DEMO", DestTON: 1, DestNPI: 1, Dest: "25779123456",
		RegisteredDelivery: 1, DataCoding: 0, Validity: "000001000000000R",
		ShortMessage: []byte("Amahoro \x00 \x1b\x65"), TLVs: []smpp.TLV{{Tag: 0x1400, Value: []byte{7}}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("GSM-7:\n%+v, want\n%+v", got, want)
	}
	got = c.Segments(claimed("Bonjour ô 🌍"), noon)
	text, _ := hex.DecodeString("0042006f006e006a006f0075007200200" + "0f40020d83cdf0d")
	if len(got) != 1 || got[0].DataCoding != 8 || got[0].ESMClass != 0 || !bytes.Equal(got[0].ShortMessage, text) {
		t.Errorf("UCS-2: %+v", got)
	}
	if len(c.TLVs) != 1 {
		t.Errorf("the carrier's own TLVs: %v", c.TLVs)
	}
}

// TestReference: every segment has its own user_message_reference after the
// carrier's TLVs, which stay unchanged.
func TestReference(t *testing.T) {
	own := make([]smpp.TLV, 1, 8) // with spare capacity that must not be shared
	own[0] = smpp.TLV{Tag: 0x1400, Value: []byte{7}}
	c := Profile{TLVs: own}
	for _, concat := range []Concat{ConcatUDH8, ConcatUDH16, ConcatSAR, ConcatPayload} {
		c.Concat = concat
		submits := c.Segments(claimed(strings.Repeat("a", 400)), noon)
		seen := map[uint16]bool{}
		for i, s := range submits {
			last := s.TLVs[len(s.TLVs)-1]
			if s.TLVs[0].Tag != 0x1400 || last.Tag != smpp.TagUserMessageReference || len(last.Value) != 2 {
				t.Fatalf("concat %d, segment %d: %v", concat, i+1, s.TLVs)
			}
			ref := binary.BigEndian.Uint16(last.Value)
			if seen[ref] || ref != Reference(0x12345, i+1) {
				t.Errorf("concat %d, segment %d: reference %d", concat, i+1, ref)
			}
			seen[ref] = true
		}
	}
	if len(c.TLVs) != 1 || own[:2][1].Tag != 0 {
		t.Errorf("the carrier's own TLVs: %v", own[:2])
	}
}

func total(c *Profile, body string) (submits []smpp.Submit, segments [][]byte) {
	submits = c.Segments(claimed(body), noon)
	for _, s := range submits {
		segments = append(segments, s.ShortMessage)
	}
	return submits, segments
}

// TestConcatenation: header, esm_class and sizes of each way of marking
// segments. The text is recovered, and with an 8-bit reference the segments are
// those that were billed.
func TestConcatenation(t *testing.T) {
	texts := []string{strings.Repeat("a", 161), strings.Repeat("€", 153), strings.Repeat("ê", 71), strings.Repeat("🌍", 67),
		strings.Repeat("a", 600)}
	for _, text := range texts {
		encoding, billed := sms.Count(text)
		c := &Profile{NoReference: true}
		submits, segments := total(c, text)
		if len(submits) != billed {
			t.Errorf("%d segments go out, %d were billed", len(submits), billed)
		}
		join := func(name string, header int, segments [][]byte) {
			t.Helper()
			var rest [][]byte
			for _, p := range segments {
				rest = append(rest, p[header:])
				if len(p) > 140 && encoding == sms.UCS2 || len(p)-header > 153 {
					t.Errorf("%s: a segment of %d octets", name, len(p))
				}
			}
			if back, ok := sms.Decode(encoding.DataCoding(), sms.DefaultGSM7, rest...); !ok || back != text {
				t.Errorf("%s: %d characters came back as %d", name, len(text), len(back))
			}
		}
		for i, s := range submits {
			if want := []byte{5, 0, 3, 0xAB, byte(billed), byte(i + 1)}; s.ESMClass != 0x40 ||
				!bytes.Equal(s.ShortMessage[:6], want) || s.DataCoding != encoding.DataCoding() {
				t.Errorf("UDH8: esm_class %#x, % x, want % x", s.ESMClass, s.ShortMessage[:6], want)
			}
		}
		join("UDH8", 6, segments)

		c.Concat = ConcatUDH16
		submits, segments = total(c, text)
		for i, s := range submits {
			if want := []byte{6, 8, 4, 0x23, 0x45, byte(len(submits)), byte(i + 1)}; s.ESMClass != 0x40 ||
				!bytes.Equal(s.ShortMessage[:7], want) {
				t.Errorf("UDH16: esm_class %#x, % x, want % x", s.ESMClass, s.ShortMessage[:7], want)
			}
			if body := len(s.ShortMessage) - 7; encoding == sms.GSM7 && body > 152 || encoding == sms.UCS2 && body > 132 {
				t.Errorf("UDH16: %d octets behind the header", body)
			}
		}
		join("UDH16", 7, segments)

		c.Concat = ConcatSAR
		submits, segments = total(c, text)
		for i, s := range submits {
			want := []smpp.TLV{{Tag: smpp.TagSARMessageReference, Value: []byte{0, 0xAB}},
				{Tag: smpp.TagSARTotalSegments, Value: []byte{byte(billed)}},
				{Tag: smpp.TagSARSegmentSeqnum, Value: []byte{byte(i + 1)}}}
			if s.ESMClass != 0 || !reflect.DeepEqual(s.TLVs, want) {
				t.Errorf("SAR: esm_class %#x, %v, want %v", s.ESMClass, s.TLVs, want)
			}
		}
		join("SAR", 0, segments)

		c.Concat = ConcatPayload
		submits, _ = total(c, text)
		if len(submits) != 1 || len(submits[0].ShortMessage) != 0 || submits[0].ESMClass != 0 || len(submits[0].TLVs) != 1 ||
			submits[0].TLVs[0].Tag != smpp.TagMessagePayload {
			t.Errorf("payload: %+v", submits)
		} else if back, ok := sms.Decode(encoding.DataCoding(), sms.DefaultGSM7, submits[0].TLVs[0].Value); !ok ||
			back != text {
			t.Errorf("payload: %d characters came back as %d", len(text), len(back))
		}
	}
	// A text in one segment is never marked.
	for _, concat := range []Concat{ConcatUDH8, ConcatUDH16, ConcatSAR, ConcatPayload} {
		for _, text := range []string{strings.Repeat("a", 160), strings.Repeat("ê", 70), "€"} {
			c := &Profile{Concat: concat, NoReference: true}
			if s, _ := total(c, text); len(s) != 1 || s[0].ESMClass != 0 || len(s[0].TLVs) != 0 || len(s[0].ShortMessage) == 0 {
				t.Errorf("concat %d, %d characters: %+v", concat, len(text), s)
			}
		}
	}
}

// TestAlphabets: data_coding 0 differs by carrier; UCS-2 does not.
func TestAlphabets(t *testing.T) {
	for _, a := range []struct {
		alphabet Alphabet
		text     string
		want     string
	}{
		{AlphabetGSM7, "@£$é{Δ", "\x00\x01\x02\x05\x1b\x28\x10"},
		{AlphabetLatin1, "@£$é{ñ", "@\xa3$\xe9{\xf1"},
		{AlphabetASCII, "@$a{~", "@$a{~"},
	} {
		c := &Profile{Alphabet: a.alphabet}
		if s, _ := total(c, a.text); s[0].DataCoding != 0 || string(s[0].ShortMessage) != a.want {
			t.Errorf("alphabet %d of %q: % x with data_coding %d, want % x", a.alphabet, a.text, s[0].ShortMessage,
				s[0].DataCoding, a.want)
		}
		if s, _ := total(c, "ô"); s[0].DataCoding != 8 || string(s[0].ShortMessage) != "\x00\xf4" {
			t.Errorf("alphabet %d of UCS-2: % x", a.alphabet, s[0].ShortMessage)
		}
	}
	// A text beyond the alphabet goes as UCS-2 and arrives unchanged.
	for _, a := range []struct {
		alphabet Alphabet
		text     string
		want     string
	}{{AlphabetASCII, "£é", "\x00\xa3\x00\xe9"}, {AlphabetLatin1, "€", "\x20\xac"}, {AlphabetLatin1, "Δ", "\x03\x94"}} {
		c := &Profile{Alphabet: a.alphabet}
		if s, _ := total(c, a.text); s[0].DataCoding != 8 || string(s[0].ShortMessage) != a.want {
			t.Errorf("alphabet %d of %q: % x with data_coding %d, want % x", a.alphabet, a.text, s[0].ShortMessage,
				s[0].DataCoding, a.want)
		}
	}
	c := &Profile{Alphabet: AlphabetLatin1}
	if s, segments := total(c, strings.Repeat("{", 100)); len(s) != 2 || string(segments[0][6:]) != strings.Repeat(
		"{", 76) || string(segments[1][6:]) != strings.Repeat("{", 24) {
		t.Errorf("Latin-1 in segments: % x", segments)
	}
}

// TestValidity: the formats of SMPP 3.4, 7.1.1. Relative time is years,
// months, days, hours, minutes, seconds, tenths and 00R.
func TestValidity(t *testing.T) {
	for _, v := range []struct {
		format Validity
		left   time.Duration
		want   string
	}{
		{ValidityNone, time.Hour, ""},
		{ValidityRelative, 24 * time.Hour, "000001000000000R"},
		{ValidityRelative, 23*time.Hour + 59*time.Minute + 59*time.Second + 900*time.Millisecond, "000000235959000R"},
		{ValidityRelative, 90 * time.Second, "000000000130000R"},
		{ValidityRelative, 60 * time.Second, "000000000100000R"},
		{ValidityRelative, time.Second, "000000000100000R"}, // at least a minute, for transport
		{ValidityRelative, -time.Hour, "000000000100000R"},
		{ValidityRelative, 29 * 24 * time.Hour, "000029000000000R"},
		{ValidityAbsolute, 24 * time.Hour, "260204120000000+"},
		{ValidityAbsolute, 90 * time.Minute, "260203133000000+"},
		{ValidityAbsolute, 26 * 24 * time.Hour, "260301120000000+"},
		{ValidityAbsolute, 333 * 24 * time.Hour, "270102120000000+"},
	} {
		c := &Profile{Validity: v.format}
		m := claimed("x")
		m.ExpiresAt = noon.Add(v.left)
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("CAT", 2*3600)} {
			if got := c.validity(m, noon.In(zone)); got != v.want {
				t.Errorf("format %d, %v left, clock in %v: %q, want %q", v.format, v.left, zone, got, v.want)
			}
		}
	}
}

// TestPart: a part that a customer has cut goes out with the octets and the data_coding that it came with, or changed
// as all parts of its message are; its reference is of one kind in all of them.
func TestPart(t *testing.T) {
	narrow := sms.Part{Reference: 0x0201, Total: 3, Number: 2} // in sar parameters
	wide := sms.Part{Reference: 0x0201, Total: 3, Number: 2, Wide: true}
	in := func(c sms.Coding, p sms.Part) sms.Part { p.Coding = c; return p }
	class := uint8(0)
	for _, c := range []struct {
		name    string
		profile Profile
		part    sms.Part
		octets  string // as it came
		coding  uint8  // as it goes out
		want    string // "": octets
		header  string // of the text, in hexadecimal
	}{
		{"UDH8", Profile{}, narrow, strings.Repeat("x", 153), 0, "", "050003030302"},
		{"UDH8 of 16 bits", Profile{}, wide, strings.Repeat("x", 152), 0, "", "050003030302"},
		{"UDH16 of 16 bits", Profile{Concat: ConcatUDH16}, wide, strings.Repeat("x", 152), 0, "", "06080402010302"},
		{"UDH16 of 8 bits", Profile{Concat: ConcatUDH16}, narrow, "x", 0, "", "050003030302"},
		{"UDH16 of 8 bits, too long for 16", Profile{Concat: ConcatUDH16}, narrow, strings.Repeat("x", 153), 0, "",
			"050003030302"},
		{"SAR", Profile{Concat: ConcatSAR}, wide, strings.Repeat("x", 153), 0, "", ""},
		{"a carrier of whole texts", Profile{Concat: ConcatPayload}, wide, "x", 0, "", "06080402010302"},
		{"an escape pair that is cut", Profile{}, narrow, "A\x1b", 0, "", "050003030302"},
		{"UCS-2 of GSM characters", Profile{}, in(sms.CodingUCS2, narrow), "\x00A", 8, "", "050003030302"},
		{"UCS-2 that is cut within a character", Profile{UCS2Coding: 0x18}, in(sms.CodingUCS2, narrow), "\x00A\x00", 0x18, "",
			"050003030302"},
		{"Latin-1", Profile{}, in(sms.CodingLatin1, narrow), "@fa\xe7\xff", 3, "", "050003030302"},
		{"Latin-1 of GSM characters", Profile{}, in(sms.CodingLatin1, narrow), "@", 3, "", "050003030302"},
		{"Latin-1 as data_coding 0", Profile{Alphabet: AlphabetLatin1}, in(sms.CodingLatin1, narrow), "@\xe7", 0, "",
			"050003030302"},
		{"no Latin-1", Profile{NoLatin1: true}, in(sms.CodingLatin1, narrow), "@fa\xe7\xe9", 0, "\x00fac\x05",
			"050003030302"},
		{"neither Latin-1 nor GSM", Profile{NoLatin1: true, Alphabet: AlphabetASCII}, in(sms.CodingLatin1, narrow),
			"@\xe9\xa7", 0, "@e?", "050003030302"},
		{"GSM at Latin-1", Profile{Alphabet: AlphabetLatin1, DefaultCoding: 3}, narrow, "\x00\x05\x10\x1b\x65", 3, "@\xe9?E",
			"050003030302"},
		{"GSM at ASCII", Profile{Alphabet: AlphabetASCII}, narrow, "\x00\x05\x1b\x28", 0, "@e{", "050003030302"},
	} {
		c.profile.NoReference = true
		m := claimed(c.part.Coding.Text([]byte(c.octets)))
		m.Part = &c.part
		got, err := c.profile.SegmentsAs(m, noon, 0)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %d segments, %v", c.name, len(got), err)
		}
		header, _ := hex.DecodeString(c.header)
		if want := string(header) + cmp.Or(c.want, c.octets); string(got[0].ShortMessage) != want ||
			got[0].DataCoding != c.coding || (len(header) > 0) != (got[0].ESMClass&esmUDHI != 0) {
			t.Errorf("%s: %x with data_coding %d", c.name, got[0].ShortMessage, got[0].DataCoding)
		}
		if c.profile.Concat == ConcatSAR && !reflect.DeepEqual(
			got[0].TLVs, []smpp.TLV{{Tag: smpp.TagSARMessageReference, Value: []byte{2, 1}},
				{Tag: smpp.TagSARTotalSegments, Value: []byte{3}}, {Tag: smpp.TagSARSegmentSeqnum, Value: []byte{2}}}) {
			t.Errorf("SAR: %v", got[0].TLVs)
		}
	}
	m := claimed(strings.Repeat("x", 153))
	m.Part = &wide
	if _, err := (&Profile{Concat: ConcatUDH16}).SegmentsAs(m, noon, 0); err == nil {
		t.Error("a part that is too long for its reference goes out")
	}
	m = claimed("Amahoro")
	if m.Class = &class; (&Profile{}).Segments(m, noon)[0].DataCoding != 0x10 {
		t.Error("the message's class is lost")
	}
}

// TestReferencesOfParts: references of 16 bits that differ in one octet, or by less than 255, differ at carriers with 8
// bits.
func TestReferencesOfParts(t *testing.T) {
	of := func(reference int) byte {
		m := claimed("x")
		m.Part = &sms.Part{Reference: uint16(reference), Total: 2, Number: 1, Wide: true}
		return (&Profile{}).Segments(m, noon)[0].ShortMessage[3]
	}
	for reference := range 1 << 16 {
		for _, other := range []int{reference + 1, reference + 2, reference + 100, reference + 254, reference ^ 0x0100,
			reference ^ 0xFF00, reference ^ 0x0080} {
			if other &= 0xFFFF; other > reference && of(other) == of(reference) {
				t.Fatalf("%#04x and %#04x are both %#02x", reference, other, of(reference))
			}
		}
	}
}

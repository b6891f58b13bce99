package smpp

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fiorix/go-smpp/smpp/pdu"
	"github.com/fiorix/go-smpp/smpp/pdu/pdufield"
	"github.com/fiorix/go-smpp/smpp/pdu/pdutlv"
)

// theirs is go-smpp's reading of a whole PDU: the text of every field, the TLVs by tag; nil if it fails.
func theirs(cmd command, body []byte) (fields map[pdufield.Name]string, tlvs map[uint16]string) {
	raw := binary.BigEndian.AppendUint32(nil, uint32(headerLength+len(body)))
	raw = append(binary.BigEndian.AppendUint32(raw, uint32(cmd)), 0, 0, 0, 0, 0, 0, 0, 1)
	read, err := pdu.Decode(bytes.NewReader(append(raw, body...)))
	if err != nil {
		return nil, nil
	}
	fields, tlvs = map[pdufield.Name]string{}, map[uint16]string{}
	for name, field := range read.Fields() {
		switch f := field.(type) {
		case *pdufield.Fixed:
			fields[name] = string([]byte{f.Data})
		case *pdufield.Variable:
			fields[name] = string(bytes.TrimSuffix(f.Data, []byte{0}))
		case *pdufield.SM:
			fields[name] = string(f.Data)
		}
	}
	for tag, field := range read.TLVFields() {
		if f, ok := field.(*pdutlv.Field); ok {
			tlvs[uint16(tag)] = string(f.Data)
		}
	}
	return fields, tlvs
}

// FuzzDeliveryLikeGoSMPP: a deliver_sm without fault has the same fields in go-smpp's own decoder. Excluded is what
// that cannot read: a UDH, more than 4096 bytes, and the trailing bytes that we ignore.
func FuzzDeliveryLikeGoSMPP(f *testing.F) {
	f.Add(deliverBody(4, 0, receiptText))
	f.Add(deliverBody(0, 8, "\x00h\x00i", TLV{TagUserMessageReference, []byte{1, 2}}, TLV{0x1400, nil},
		TLV{0x1400, []byte("v")}))
	f.Add(deliverBody(4, 0, "", TLV{TagMessagePayload, []byte(receiptText)}))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := Reading{}.decode(cmdDeliverSM, bytes.Clone(body), time.Now())
		if err != nil || d.broken != nil || d.sentESM&esmUDHI != 0 || headerLength+len(body) > 4096 {
			return
		}
		var fields map[pdufield.Name]string
		var tlvs map[uint16]string
		for spare := 0; fields == nil && spare < tlvHeader && spare < len(body); spare++ {
			fields, tlvs = theirs(cmdDeliverSM, body[:len(body)-spare])
		}
		if fields == nil {
			t.Fatalf("%q is read only here: %+v", body, d)
		}
		text := string(d.ShortMessage)
		if fields[pdufield.ShortMessage] == "" { // we take the payload as the text
			fields[pdufield.ShortMessage] = tlvs[TagMessagePayload]
			delete(tlvs, TagMessagePayload)
		}
		for name, want := range map[pdufield.Name]string{
			pdufield.ServiceType: d.ServiceType, pdufield.SourceAddr: d.Source, pdufield.DestinationAddr: d.Dest,
			pdufield.ShortMessage:  text,
			pdufield.SourceAddrTON: string([]byte{d.SourceTON}), pdufield.SourceAddrNPI: string([]byte{d.SourceNPI}),
			pdufield.DestAddrTON: string([]byte{d.DestTON}), pdufield.DestAddrNPI: string([]byte{d.DestNPI}),
			pdufield.ESMClass:           string([]byte{d.ESMClass}),
			pdufield.RegisteredDelivery: string([]byte{d.RegisteredDelivery}), pdufield.DataCoding: string([]byte{d.DataCoding}),
		} {
			if fields[name] != want {
				t.Errorf("%q: %s is %q, go-smpp has %q", body, name, want, fields[name])
			}
		}
		ours := map[uint16]string{}
		for _, tlv := range d.TLVs {
			ours[tlv.Tag] = string(tlv.Value)
		}
		if !maps.Equal(ours, tlvs) {
			t.Errorf("%q: TLVs %v, go-smpp has %v", body, ours, tlvs)
		}
	})
}

// FuzzSubmitLikeGoSMPP: every valid submit_sm is written byte by byte as in the specification, and go-smpp's decoder
// reads the same fields.
func FuzzSubmitLikeGoSMPP(f *testing.F) {
	f.Add("VMA", "INTUMWA", "25779000000", "000001000000000R", []byte("hello"), TagUserMessageReference, []byte{1, 2},
		byte(8))
	f.Add("", "\xff", "1", "", bytes.Repeat([]byte{0}, 254), uint16(0x1400), []byte(nil), byte(0))
	f.Add("", "", "1", "", []byte(nil), TagMessagePayload, bytes.Repeat([]byte("x"), 3000), byte(0))
	f.Add("", "", "1", "", []byte(nil), TagMessagePayload, bytes.Repeat([]byte("x"), 60_000), byte(0))
	f.Add("VMA", "ABCDEFGHIJKLMNOPQRST", "25779000000", "000001000000000R", []byte("\x05\x00\x03\x01\x02\x01\x00a\x00b"),
		TagUserMessageReference, []byte{0x12, 0x34}, byte(0x40))
	f.Fuzz(func(t *testing.T, service, source, dest, validity string, text []byte, tag uint16, value []byte, coding byte) {
		m := &Submit{ServiceType: service, Source: source, SourceTON: coding, SourceNPI: 1, Dest: dest, DestTON: 1,
			DestNPI: coding, Validity: validity,
			ESMClass: coding &^ esmUDHI, RegisteredDelivery: 1, DataCoding: coding, ShortMessage: text,
			TLVs: []TLV{{tag, value}}}
		if m.validate() != nil {
			return
		}
		var out frame
		if err := encodeMessage(&out, cmdSubmitSM, m, true); err != nil {
			t.Fatal(err)
		}
		if want := rawSubmitFrame(m); !bytes.Equal(out, want) {
			t.Fatalf("\n got %q\nwant %q", out, want)
		}
		if len(out) > 4096 {
			return
		}
		fields, tlvs := theirs(cmdSubmitSM, out[headerLength:])
		got := []string{fields[pdufield.ServiceType], fields[pdufield.SourceAddr], fields[pdufield.DestinationAddr],
			fields[pdufield.ValidityPeriod], fields[pdufield.ShortMessage], tlvs[tag]}
		if want := []string{service, source, dest, validity, string(text), string(value)}; !slices.Equal(got, want) ||
			len(tlvs) != 1 {
			t.Errorf("go-smpp reads %q, %v", got, tlvs)
		}
	})
}

// FuzzMessageIDLikeGoSMPP: the id of a submit_sm_resp is the same as in go-smpp, if its NUL is present.
func FuzzMessageIDLikeGoSMPP(f *testing.F) {
	f.Add([]byte("0123456789\x00"))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		end := bytes.IndexByte(body, 0)
		if end < 0 || end > maxMessageID || headerLength+len(body) > 4096 {
			return
		}
		fields, _ := theirs(cmdSubmitSMResp, body[:end+1])
		if got, want := messageID(body), fields[pdufield.MessageID]; got != want {
			t.Errorf("%q: %q, go-smpp has %q", body, got, want)
		}
	})
}

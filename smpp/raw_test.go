package smpp

import "encoding/binary"

// deliverBody writes the body of a deliver_sm byte by byte.
func deliverBody(esm, coding byte, text string, tlvs ...TLV) []byte {
	b := []byte("\x00\x01\x0125779000000\x00\x05\x00INTUMWA\x00")
	b = append(b, esm, 0, 0, 0, 0, 0, 0, coding, 0, byte(len(text)))
	b = append(b, text...)
	return appendTLVs(b, tlvs)
}

// dataBody is the body of a data_sm.
func dataBody(esm, coding byte, tlvs ...TLV) []byte {
	b := []byte("\x00\x01\x0125779000000\x00\x05\x00INTUMWA\x00")
	return appendTLVs(append(b, esm, 0, coding), tlvs)
}

func appendTLVs(b []byte, tlvs []TLV) []byte {
	for _, t := range tlvs {
		b = binary.BigEndian.AppendUint16(b, t.Tag)
		b = binary.BigEndian.AppendUint16(b, uint16(len(t.Value)))
		b = append(b, t.Value...)
	}
	return b
}

const receiptText = "id:0123456789 sub:001 dlvrd:001 submit date:2603011000 done date:2603011001 stat:DELIVRD " +
	"err:000 Text:hello"

// Command ids of the tests' raw carrier.
const (
	rawGenericNack = 0x80000000
	rawSubmit      = 0x00000004
	rawSubmitResp  = 0x80000004
	rawDeliver     = 0x00000005
	rawDeliverResp = 0x80000005
	rawUnbind      = 0x00000006
	rawUnbindResp  = 0x80000006
	rawEnquire     = 0x00000015
	rawEnquireResp = 0x80000015
	rawData        = 0x00000103
	rawDataResp    = 0x80000103
)

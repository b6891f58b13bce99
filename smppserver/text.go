package smppserver

import (
	"slices"
	"strings"

	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/smppserver/statuses"
	"intumwa/sms"
)

// Bits of esm_class (SMPP 3.4, 5.2.12).
const (
	esmTypeMask = 0x3C
	esmUDHI     = 0x40
)

// refusal is a status with its explanation for the client's operator.
type refusal struct {
	status smpp.Status
	text   string
}

// textOf reads the text of a submit_sm or data_sm, without its header, and its form. Nil: it is readable.
func textOf(r *smpp.Request) (text string, form messages.Form, no *refusal) {
	if r.ESMClass&esmTypeMask != 0 {
		return "", form, &refusal{smpp.StatusInvESMClass, "The esm_class marks no message of a customer."}
	}
	octets := r.ShortMessage
	var part *sms.Part
	if n := r.UDHLength(); n > 0 {
		if part, no = partOfUDH(octets[:n]); no != nil {
			return "", form, no
		}
		octets = octets[n:]
	} else if part, no = partOfTLVs(r); no != nil {
		return "", form, no
	}
	if part != nil && part.Total > 1 { // a long message of one part is a message of its own
		form.Part = part
	}
	form.Class = classOf(r.DataCoding)
	before, after := "", ""
	if part != nil && sms.IsUCS2(r.DataCoding) {
		before, octets, after = sms.CutPairs(octets)
	}
	text, ok := decode(r.DataCoding, octets)
	text = before + text + after
	switch {
	case !ok:
		return "", form, &refusal{smpp.StatusInvDataCoding, "The data_coding is none of GSM 7-bit (0), ASCII (1), Latin-1 (3) and UCS-2 (8)."}
	case text == "":
		return "", form, &refusal{smpp.StatusInvMsgLen, "The message is empty."}
	case strings.ContainsRune(text, 0):
		return "", form, &refusal{smpp.StatusSubmitFailed, "The message contains the character U+0000."}
	}
	return text, form, nil
}

// decode returns a text in a data_coding. Programs mark alphabets by mistake: in the default alphabet, a text with bytes that
// GSM 7-bit does not have is UTF-8 or Latin-1. In ASCII, one with control characters is GSM 7-bit (the npm package smpp).
func decode(dataCoding uint8, octets []byte) (text string, ok bool) {
	def := sms.DefaultGSM7
	high := slices.ContainsFunc(octets, func(b byte) bool { return b > 0x7F })
	switch {
	case high:
		def = sms.DefaultLatin1
	case dataCoding == codingASCII && slices.ContainsFunc(octets, func(b byte) bool { return b < ' ' && b != '\n' && b != '\r' || b == 0x7F }):
		dataCoding = 0
	}
	return sms.Decode(dataCoding, def, octets)
}

const codingASCII = 1

// classOf returns the message class in a data_coding (3GPP TS 23.038, 4); nil for none.
func classOf(dataCoding uint8) *uint8 {
	if group := dataCoding >> 4; group == 0xF || group <= 7 && dataCoding&0x10 != 0 {
		return new(dataCoding & 3)
	}
	return nil
}

// partOfUDH reads a header that only numbers the parts of a long message.
func partOfUDH(header []byte) (*sms.Part, *refusal) {
	reference, total, number := 0, 0, 0
	switch {
	case len(header) == 6 && header[1] == 0x00 && header[2] == 3:
		reference, total, number = int(header[3]), int(header[4]), int(header[5])
	case len(header) == 7 && header[1] == 0x08 && header[2] == 4:
		reference, total, number = int(header[3])<<8|int(header[4]), int(header[5]), int(header[6])
	default:
		return nil, &refusal{smpp.StatusInvESMClass, "The UDH has other elements than the number of a part."}
	}
	return checkPart(reference, total, number, smpp.StatusInvESMClass)
}

// partOfTLVs reads sar_msg_ref_num, sar_total_segments and sar_segment_seqnum; nil without them.
func partOfTLVs(r *smpp.Request) (*sms.Part, *refusal) {
	reference, one := r.TLV(smpp.TagSARMessageReference)
	total, two := r.TLV(smpp.TagSARTotalSegments)
	number, three := r.TLV(smpp.TagSARSegmentSeqnum)
	switch {
	case !one && !two && !three:
		return nil, nil
	case len(reference) != 2 || len(total) != 1 || len(number) != 1:
		return nil, &refusal{statuses.InvTLV, "The sar parameters are not complete."}
	}
	return checkPart(int(reference[0])<<8|int(reference[1]), int(total[0]), int(number[0]), statuses.InvTLV)
}

func checkPart(reference, total, number int, status smpp.Status) (*sms.Part, *refusal) {
	if number < 1 || number > total {
		return nil, &refusal{status, "The number of the part is not among the parts."}
	}
	return &sms.Part{Reference: uint16(reference), Total: uint8(total), Number: uint8(number)}, nil
}

package smppserver

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

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

// textOf reads the text of a submit_sm or data_sm, without its header, and its form. latin1: the key's programs write
// Latin-1 or ASCII in the default alphabet. swapped remembers parts (orders.swapped). Nil: it is readable.
func textOf(r *smpp.Request, latin1 bool, swapped func(p sms.Part, marked bool) bool) (text string, form messages.Form,
	no *refusal) {
	switch r.ESMClass & esmTypeMask {
	case 0, esmDelivered, esmRead:
	default:
		return "", form, &refusal{smpp.StatusInvESMClass, "The esm_class is not that of a customer's message."}
	}
	octets := r.ShortMessage
	part, no := (*sms.Part)(nil), (*refusal)(nil)
	if n := r.UDHLength(); n > 0 {
		part, no = partOfUDH(octets[:n])
		octets = octets[n:]
	} else {
		part, no = partOfTLVs(r)
	}
	if no != nil {
		return "", form, no
	}
	form.Class = classOf(r.DataCoding)
	coding, ok := sms.CodingOf(r.DataCoding)
	if !ok {
		return "", form, &refusal{smpp.StatusInvDataCoding,
			"The data_coding is none of GSM 7-bit (0), ASCII (1), Latin-1 (3) and UCS-2 (8)."}
	}
	if latin1 && coding == sms.CodingGSM7 {
		coding = sms.CodingLatin1
	}
	if coding == sms.CodingUCS2 {
		little := false
		if octets, little = withoutMark(octets); part != nil {
			little = swapped(*part, little)
		}
		if little {
			octets = bigEndian(octets)
		}
	}
	octets = withoutNUL(coding, r.DataCoding, octets, part)
	if part == nil {
		text = whole(coding, r.DataCoding, octets)
	} else if text, part.Coding, no = ofPart(coding, r.DataCoding, octets, form.Class); no != nil {
		return "", form, no
	}
	form.Part = part
	switch {
	case text == "":
		return "", form, &refusal{smpp.StatusInvMsgLen, "The message is empty."}
	case strings.ContainsRune(text, 0):
		return "", form, &refusal{smpp.StatusSubmitFailed, "The message contains the character U+0000."}
	}
	return text, form, nil
}

// Types in esm_class by which a program means nothing else than a message: an acknowledgement of its own, or of its
// user.
const (
	esmDelivered = 0x08
	esmRead      = 0x10
)

// withoutMark takes a byte order mark off UCS-2. little: the text is little-endian.
func withoutMark(octets []byte) (rest []byte, little bool) {
	switch {
	case len(octets) < 2:
	case octets[0] == 0xFE && octets[1] == 0xFF:
		return octets[2:], false
	case octets[0] == 0xFF && octets[1] == 0xFE:
		return octets[2:], true
	}
	return octets, false
}

// bigEndian swaps the octets of each code unit.
func bigEndian(octets []byte) []byte {
	swapped := slices.Clone(octets)
	for i := 0; i+1 < len(swapped); i += 2 {
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
	}
	return swapped
}

// withoutNUL takes the NULs off the end of a text: programs in C count them. In GSM 7-bit a zero is an @, and in a part
// that others follow it may be half a code unit.
func withoutNUL(coding sms.Coding, dataCoding uint8, octets []byte, part *sms.Part) []byte {
	switch {
	case coding == sms.CodingUCS2:
		if n := len(octets); n%2 == 1 && octets[n-1] == 0 && (part == nil || part.Number == part.Total) {
			octets = octets[:n-1]
		}
		for n := len(octets); n >= 2 && n%2 == 0 && octets[n-1] == 0 && octets[n-2] == 0; n -= 2 {
			octets = octets[:n-2]
		}
	case coding == sms.CodingLatin1 && dataCoding != codingASCII, high(octets):
		octets = bytes.TrimRight(octets, "\x00")
	}
	return octets
}

// high reports whether octets have one that GSM 7-bit and ASCII do not have.
func high(octets []byte) bool {
	return slices.ContainsFunc(octets, func(b byte) bool { return b > 0x7F })
}

// whole returns the text of a message. Programs mark alphabets by mistake: in the default alphabet, a text with octets
// that GSM 7-bit does not have is UTF-8 or Latin-1. In ASCII, one with control characters is GSM 7-bit (the npm package
// smpp).
func whole(coding sms.Coding, dataCoding uint8, octets []byte) (text string) {
	def := sms.DefaultGSM7
	switch {
	case coding == sms.CodingLatin1 && dataCoding == codingASCII && !high(octets) && controls(octets):
		dataCoding = 0
	case coding == sms.CodingLatin1 || high(octets):
		def = sms.DefaultLatin1
	}
	text, _ = sms.Decode(dataCoding, def, octets)
	return strings.TrimPrefix(text, "\uFEFF") // of UTF-8
}

// controls reports whether octets have control characters other than ends of lines.
func controls(octets []byte) bool {
	return slices.ContainsFunc(octets, func(b byte) bool { return b < ' ' && b != '\n' && b != '\r' || b == 0x7F })
}

// ofPart returns the text of a part, and the coding in which it goes out: the same for all parts of a message. What is
// marked as ASCII or the default alphabet goes out in GSM 7-bit, in similar characters if there must be.
func ofPart(coding sms.Coding, dataCoding uint8, octets []byte, class *uint8) (text string, out sms.Coding,
	no *refusal) {
	switch {
	case coding == sms.CodingLatin1 && dataCoding == codingASCII:
		if !high(octets) && controls(octets) {
			return sms.CodingGSM7.Text(octets), sms.CodingGSM7, nil
		}
	case coding == sms.CodingLatin1 && class != nil: // there is no such data_coding
	case coding == sms.CodingGSM7 && high(octets):
		if inner := uncut(octets); utf8.Valid(inner) && high(inner) {
			octets = inner
		}
	default:
		return coding.Text(octets), coding, nil
	}
	text, ok := sms.Septets(whole(coding, dataCoding, octets))
	if !ok {
		return "", 0, &refusal{smpp.StatusInvDataCoding,
			"A part in the default alphabet or ASCII has characters that GSM 7-bit lacks."}
	}
	return text, sms.CodingGSM7, nil
}

// uncut takes characters of UTF-8 off both ends of a part that its program has cut in their middle.
func uncut(octets []byte) []byte {
	for n := 0; n < utf8.UTFMax-1 && len(octets) > 0 && !utf8.RuneStart(octets[0]); n++ {
		octets = octets[1:]
	}
	for n := 1; n < utf8.UTFMax && n <= len(octets); n++ {
		if end := octets[len(octets)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				octets = octets[:len(octets)-n]
			}
			break
		}
	}
	return octets
}

const codingASCII = 1

// classOf returns the message class in a data_coding (3GPP TS 23.038, 4); nil for none.
func classOf(dataCoding uint8) *uint8 {
	if group := dataCoding >> 4; group == 0xF || group <= 7 && dataCoding&0x10 != 0 {
		return new(dataCoding & 3)
	}
	return nil
}

// partOfUDH reads a header that only numbers the parts of a long message; nil for a message of its own.
func partOfUDH(header []byte) (*sms.Part, *refusal) {
	switch {
	case len(header) == 6 && header[1] == 0x00 && header[2] == 3:
		return partOf(int(header[3]), int(header[4]), int(header[5]), false, smpp.StatusInvESMClass)
	case len(header) == 7 && header[1] == 0x08 && header[2] == 4:
		return partOf(int(header[3])<<8|int(header[4]), int(header[5]), int(header[6]), true, smpp.StatusInvESMClass)
	}
	return nil, &refusal{smpp.StatusInvESMClass, "The UDH has elements other than the number of a part."}
}

// partOfTLVs reads sar_msg_ref_num, sar_total_segments and sar_segment_seqnum; nil for a message of its own. Programs
// set all three to zero there, or the reference alone.
func partOfTLVs(r *smpp.Request) (*sms.Part, *refusal) {
	reference, referred := number(r, smpp.TagSARMessageReference)
	total, _ := number(r, smpp.TagSARTotalSegments)
	seqnum, _ := number(r, smpp.TagSARSegmentSeqnum)
	if total > 1 && !referred || max(total, seqnum) > 0xFF || reference > 0xFFFF {
		return nil, &refusal{statuses.InvTLV, "The sar parameters are not complete."}
	}
	return partOf(reference, total, seqnum, false, statuses.InvTLV)
}

// number reads an optional parameter that is a number; 0 if there is none, or it has no or more than four octets.
func number(r *smpp.Request, tag uint16) (n int, found bool) {
	value, found := r.TLV(tag)
	if len(value) == 0 || len(value) > 4 {
		return 0, false
	}
	for _, b := range value {
		n = n<<8 | int(b)
	}
	return n, found
}

// partOf returns the part with this number; nil if there is one part in all, or none.
func partOf(reference, total, number int, wide bool, status smpp.Status) (*sms.Part, *refusal) {
	switch {
	case total <= 1 && number <= total:
		return nil, nil
	case number < 1 || number > total:
		return nil, &refusal{status, "The number of the part is not among the parts."}
	}
	return &sms.Part{Reference: uint16(reference), Total: uint8(total), Number: uint8(number), Wide: wide}, nil
}

// orders has the byte order of parts in UCS-2: a mark stands in the first part only. It forgets what is old or too
// much.
type orders struct {
	mu     sync.Mutex
	little map[order]time.Time
}

// order is a long message whose first part has the mark of little-endian.
type order struct {
	key       int64
	number    string
	reference uint16
	total     uint8
}

const (
	ordersMost = 10_000
	orderLife  = 10 * time.Minute
)

// swapped reports whether a part is little-endian: it is marked so, or a part of the same message was before.
func (o *orders) swapped(m order, marked bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, known := o.little[m]
	if !marked {
		return known && time.Since(at) < orderLife
	}
	if o.little == nil || len(o.little) >= ordersMost {
		o.little = map[order]time.Time{}
	}
	o.little[m] = time.Now()
	return true
}

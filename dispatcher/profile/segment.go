package profile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"intumwa/smpp"
	"intumwa/sms"
)

// esmUDHI is the esm_class bit of a text that starts with a user data header.
const esmUDHI = 0x40

// longestRelative is the longest relative time below a year: 11 months of 30
// days, and 29 days.
const longestRelative = 360*24*time.Hour - time.Second

// registeredReceipt requests a receipt on success and on failure (SMPP 3.4, 5.2.17).
const registeredReceipt = 0x01

// Message is what the segments of one message are made of.
type Message struct {
	ID        int64
	Sender    string
	Number    sms.Number
	Body      string
	ConcatRef byte // of UDH-8 and SAR
	ExpiresAt time.Time
	Single    bool // a single send, not a batch's

	Class *uint8    // message class of its own; nil: as the Profile says
	Part  *sms.Part // set: the text is one part of a long message, cut by the customer
}

// Segments builds the submit_sm of each segment of a message, in order. With
// UDH-8 they are as many as were billed: sms.Count and sms.SplitEncoded share
// one splitter.
func (p *Profile) Segments(m *Message, now time.Time) []smpp.Submit {
	kind, sender := KindOf(m.Sender)
	source := p.Source.For(kind)
	template := smpp.Submit{
		ServiceType: p.ServiceType,
		SourceTON:   source.TON, SourceNPI: source.NPI, Source: sender,
		DestTON: p.Dest.TON, DestNPI: p.Dest.NPI, Dest: p.DestForm.write(m.Number),
		RegisteredDelivery: registeredReceipt,
		Validity:           p.validity(m, now),
		TLVs:               p.TLVs,
	}
	if p.RegisteredDelivery != nil {
		template.RegisteredDelivery = *p.RegisteredDelivery
	}
	if m.Single {
		template.Priority = p.SinglePriority
	}
	if m.Part != nil {
		coding, _, text := p.written(m)
		template.DataCoding = coding
		submits := []smpp.Submit{p.part(template, m.Part, text)}
		p.referTo(m.ID, submits)
		return submits
	}
	encoding, payload := p.encode(m.Body)
	template.DataCoding = p.coding(encoding, m.Class)
	if p.Concat == ConcatPayload {
		if text := p.alphabet(encoding, payload); len(payload) <= 140 || (encoding == sms.GSM7 && len(payload) <= 160) {
			template.ShortMessage = text
		} else {
			template.TLVs = append(slices.Clip(p.TLVs), smpp.TLV{Tag: smpp.TagMessagePayload, Value: text})
		}
		submits := []smpp.Submit{template}
		p.referTo(m.ID, submits)
		return submits
	}
	split := sms.SplitEncoded(encoding, payload, p.Concat == ConcatUDH16)
	submits := make([]smpp.Submit, len(split.Segments))
	defer p.referTo(m.ID, submits)
	for i, segment := range split.Segments {
		submits[i] = template
		text := p.alphabet(split.Encoding, segment)
		if len(split.Segments) == 1 {
			submits[i].ShortMessage = text
			continue
		}
		part := sms.Part{Reference: uint16(m.ConcatRef), Total: uint8(len(split.Segments)), Number: uint8(i + 1)}
		if p.Concat == ConcatUDH16 {
			part.Reference, part.Wide = uint16(m.ID), true
		}
		submits[i] = p.part(template, &part, text)
	}
	return submits
}

// written returns how a customer's part goes out: octets and data_coding as they came, or changed in the same way for
// all parts that came so, because a handset joins them. Characters that the carrier's alphabet lacks become similar
// ones.
func (p *Profile) written(m *Message) (dataCoding uint8, coding sms.Coding, octets []byte) {
	coding = m.Part.Coding
	switch {
	case coding == sms.CodingLatin1 && p.Alphabet == AlphabetLatin1:
		return p.coding(sms.GSM7, m.Class), coding, coding.Octets(m.Body)
	case coding == sms.CodingLatin1 && !p.NoLatin1:
		return cmp.Or(p.Latin1Coding, 3), coding, coding.Octets(m.Body)
	case coding == sms.CodingLatin1 && p.Alphabet == AlphabetGSM7:
		similar, _ := sms.Septets(m.Body)
		return p.coding(sms.GSM7, m.Class), sms.CodingGSM7, sms.CodingGSM7.Octets(similar)
	case coding != sms.CodingUCS2 && p.Alphabet != AlphabetGSM7:
		return p.coding(sms.GSM7, m.Class), sms.CodingLatin1, p.spell(m.Body)
	}
	return p.coding(coding.Encoding(), m.Class), coding, coding.Octets(m.Body)
}

// spell writes a text in the carrier's default alphabet, which is not GSM 7-bit.
func (p *Profile) spell(text string) []byte {
	octets := make([]byte, 0, len(text))
	for _, r := range text {
		if r > p.lastRune() {
			r = sms.Plain(r)
		}
		octets = append(octets, byte(r))
	}
	return octets
}

// part completes a submit_sm for one part of a long message, as the carrier wants parts marked. A customer's reference
// of 16 bits stays one where the carrier takes it, and one of 8 bits is never made wider: a part that was cut for it
// may be too long.
func (p *Profile) part(submit smpp.Submit, part *sms.Part, text []byte) smpp.Submit {
	switch {
	case p.Concat == ConcatSAR:
		submit.ShortMessage = text
		submit.TLVs = append(slices.Clip(p.TLVs),
			smpp.TLV{Tag: smpp.TagSARMessageReference, Value: binary.BigEndian.AppendUint16(nil, part.Reference)},
			smpp.TLV{Tag: smpp.TagSARTotalSegments, Value: []byte{part.Total}},
			smpp.TLV{Tag: smpp.TagSARSegmentSeqnum, Value: []byte{part.Number}})
	case p.wide(part):
		header := sms.UDH16(part.Reference, part.Total, part.Number)
		submit.ESMClass |= esmUDHI
		submit.ShortMessage = append(header[:], text...)
	default:
		// The sum of both octets: two references are the same only if they are 255 apart or more, and never if only one
		// octet differs.
		header := sms.UDH8(byte(part.Reference>>8+part.Reference), part.Total, part.Number)
		submit.ESMClass |= esmUDHI
		submit.ShortMessage = append(header[:], text...)
	}
	return submit
}

// wide reports whether a part goes out with a 16-bit reference in a UDH.
func (p *Profile) wide(part *sms.Part) bool {
	return part.Wide && (p.Concat == ConcatUDH16 || p.Concat == ConcatPayload)
}

// SegmentsAs is Segments for a message with submit records that were cut into total segments (0: none): the
// other segments must be cut as those were. If concat has changed since, it uses the form that gives as many segments.
// The error is an *smpp.FieldError.
func (p *Profile) SegmentsAs(m *Message, now time.Time, total int) ([]smpp.Submit, error) {
	submits := p.Segments(m, now)
	switch {
	case m.Part != nil:
		if _, coding, text := p.written(m); len(text) > coding.Most(p.wide(m.Part)) {
			return nil, &smpp.FieldError{Field: "short_message", Problem: "is a part that is too long for this carrier"}
		}
		return submits, nil
	case len(submits) > sms.MaxSegments:
		return nil, &smpp.FieldError{Field: "short_message", Problem: fmt.Sprintf("takes %d segments here, more than %d",
			len(submits), sms.MaxSegments)}
	case total == 0 || len(submits) == total:
		return submits, nil
	}
	for _, concat := range []Concat{ConcatUDH8, ConcatUDH16, ConcatPayload} {
		as := *p
		as.Concat = concat
		if before := as.Segments(m, now); len(before) == total {
			return before, nil
		}
	}
	return nil, &smpp.FieldError{Field: "short_message",
		Problem: fmt.Sprintf("was cut into %d segments before the settings changed, and now into %d", total, len(submits))}
}

// referTo adds each segment's user_message_reference.
func (p *Profile) referTo(messageID int64, submits []smpp.Submit) {
	if p.NoReference {
		return
	}
	for i := range submits {
		value := binary.BigEndian.AppendUint16(nil, Reference(messageID, i+1))
		submits[i].TLVs = append(slices.Clip(submits[i].TLVs), smpp.TLV{Tag: smpp.TagUserMessageReference, Value: value})
	}
}

// Reference is the user_message_reference of a segment: 16 bits with which a receipt
// identifies it even if its response was lost.
func Reference(messageID int64, segment int) uint16 { return uint16(messageID*37 + int64(segment)) }

// coding returns the data_coding of an encoding. A message class is in the bits of 3GPP TS 23.038, section 4.
func (p *Profile) coding(encoding sms.Encoding, own *uint8) uint8 {
	coding, classed := p.DefaultCoding, uint8(0x10)
	if encoding == sms.UCS2 {
		coding, classed = cmp.Or(p.UCS2Coding, encoding.DataCoding()), 0x18
	}
	if class := cmp.Or(own, p.MessageClass); class != nil {
		return classed | *class
	}
	return coding
}

// encode encodes a text for the carrier. A GSM 7-bit text with characters
// outside the carrier's default alphabet goes as UCS-2, so that it arrives
// unchanged. That may take more segments than were charged.
func (p *Profile) encode(text string) (sms.Encoding, []byte) {
	encoding, payload := sms.Encode(text)
	if encoding == sms.GSM7 && !p.holds(text) {
		return sms.EncodeUCS2(text)
	}
	return encoding, payload
}

// holds reports whether the carrier's default alphabet has every character.
func (p *Profile) holds(text string) bool {
	limit := p.lastRune()
	for _, r := range text {
		if r > limit {
			return false
		}
	}
	return true
}

// lastRune is the last character of the carrier's default alphabet.
func (p *Profile) lastRune() rune {
	switch p.Alphabet {
	case AlphabetLatin1:
		return 0xFF
	case AlphabetASCII:
		return 0x7F
	}
	return utf8.MaxRune
}

// alphabet converts GSM-7 septets to the carrier's alphabet for data_coding 0.
func (p *Profile) alphabet(encoding sms.Encoding, payload []byte) []byte {
	if encoding != sms.GSM7 || p.Alphabet == AlphabetGSM7 {
		return payload
	}
	text, _ := sms.Decode(encoding.DataCoding(), sms.DefaultGSM7, payload)
	octets := make([]byte, 0, len(payload))
	for _, r := range text {
		octets = append(octets, byte(r)) // fits, because encode checked
	}
	return octets
}

// validity is the rest of the message's validity, as validity_period.
func (p *Profile) validity(m *Message, now time.Time) string {
	left := max(m.ExpiresAt.Sub(now), time.Minute)
	switch p.Validity {
	case ValidityAbsolute:
		return now.Add(left).UTC().Format("060102150405") + "000+"
	case ValidityRelative:
		seconds := int(min(left, longestRelative) / time.Second)
		days := seconds / 86400
		return fmt.Sprintf("%02d%02d%02d%02d%02d%02d000R", 0, days/30, days%30, seconds/3600%24, seconds/60%60, seconds%60)
	}
	return ""
}

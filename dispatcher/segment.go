package dispatcher

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/smpp"
	"intumwa/sms"
)

// esmUDHI is the esm_class bit of a text that starts with a user data header.
const esmUDHI = 0x40

// longestRelative is the longest relative time below a year: 11 months of 30
// days, and 29 days.
const longestRelative = 360*24*time.Hour - time.Second

// registeredReceipt requests a receipt on success and on failure.
const registeredReceipt = 0x01

// segments builds the submit_sm of each segment of a message, in order. With
// UDH-8 they are as many as were billed: sms.Count and sms.SplitEncoded share
// one splitter.
func (c *Carrier) segments(m *messages.Claimed, now time.Time) []smpp.Submit {
	template := smpp.Submit{
		ServiceType: c.ServiceType,
		SourceTON:   c.SourceTON, SourceNPI: c.SourceNPI, Source: m.Sender,
		DestTON: c.DestTON, DestNPI: c.DestNPI, Dest: m.Number.Digits(),
		RegisteredDelivery: registeredReceipt,
		Validity:           c.validity(m, now),
		TLVs:               c.TLVs,
	}
	encoding, payload := c.encode(m.Body)
	template.DataCoding = encoding.DataCoding()
	if c.Concat == ConcatPayload {
		if text := c.alphabet(encoding, payload); len(payload) <= 140 || (encoding == sms.GSM7 && len(payload) <= 160) {
			template.ShortMessage = text
		} else {
			template.TLVs = append(slices.Clip(c.TLVs), smpp.TLV{Tag: smpp.TagMessagePayload, Value: text})
		}
		submits := []smpp.Submit{template}
		c.referTo(m.ID, submits)
		return submits
	}
	split := sms.SplitEncoded(encoding, payload, c.Concat == ConcatUDH16)
	submits := make([]smpp.Submit, len(split.Segments))
	defer c.referTo(m.ID, submits)
	for i, segment := range split.Segments {
		submits[i] = template
		text := c.alphabet(split.Encoding, segment)
		if len(split.Segments) == 1 {
			submits[i].ShortMessage = text
			continue
		}
		total, seq := byte(len(split.Segments)), byte(i+1)
		switch c.Concat {
		case ConcatUDH16:
			header := sms.UDH16(uint16(m.ID), total, seq)
			submits[i].ESMClass |= esmUDHI
			submits[i].ShortMessage = append(header[:], text...)
		case ConcatSAR:
			submits[i].ShortMessage = text
			submits[i].TLVs = append(slices.Clip(c.TLVs),
				smpp.TLV{Tag: smpp.TagSARMessageReference, Value: binary.BigEndian.AppendUint16(nil, uint16(m.ConcatRef))},
				smpp.TLV{Tag: smpp.TagSARTotalSegments, Value: []byte{total}},
				smpp.TLV{Tag: smpp.TagSARSegmentSeqnum, Value: []byte{seq}})
		default:
			header := sms.UDH8(m.ConcatRef, total, seq)
			submits[i].ESMClass |= esmUDHI
			submits[i].ShortMessage = append(header[:], text...)
		}
	}
	return submits
}

// segmentsAs is segments for a message of which copies may be recorded: the other segments must be cut as those were. If
// concat has changed since, it uses the form that gives as many segments. The error is an *smpp.FieldError.
func (c *Carrier) segmentsAs(m *messages.Claimed, now time.Time) ([]smpp.Submit, error) {
	submits, total := c.segments(m, now), submission.TotalOf(m.Copies)
	switch {
	case len(submits) > sms.MaxSegments:
		return nil, &smpp.FieldError{Field: "short_message", Problem: fmt.Sprintf("takes %d segments here, more than %d", len(submits), sms.MaxSegments)}
	case total == 0 || len(submits) == total:
		return submits, nil
	}
	for _, concat := range []Concat{ConcatUDH8, ConcatUDH16, ConcatPayload} {
		as := *c
		as.Concat = concat
		if before := as.segments(m, now); len(before) == total {
			return before, nil
		}
	}
	return nil, &smpp.FieldError{Field: "short_message", Problem: fmt.Sprintf("was cut into %d segments before the settings changed, and now into %d", total, len(submits))}
}

// referTo adds each segment's user_message_reference.
func (c *Carrier) referTo(messageID int64, submits []smpp.Submit) {
	if c.NoReference {
		return
	}
	for i := range submits {
		value := binary.BigEndian.AppendUint16(nil, reference(messageID, i+1))
		submits[i].TLVs = append(slices.Clip(submits[i].TLVs), smpp.TLV{Tag: smpp.TagUserMessageReference, Value: value})
	}
}

// encode encodes a text for the carrier. A GSM 7-bit text with characters
// outside the carrier's default alphabet goes as UCS-2, so that it arrives
// unchanged. That may take more segments than were charged.
func (c *Carrier) encode(text string) (sms.Encoding, []byte) {
	encoding, payload := sms.Encode(text)
	if encoding == sms.GSM7 && !c.holds(text) {
		return sms.EncodeUCS2(text)
	}
	return encoding, payload
}

// holds reports whether the carrier's default alphabet has every character.
func (c *Carrier) holds(text string) bool {
	limit := c.lastRune()
	for _, r := range text {
		if r > limit {
			return false
		}
	}
	return true
}

// lastRune is the last character of the carrier's default alphabet.
func (c *Carrier) lastRune() rune {
	switch c.Alphabet {
	case AlphabetLatin1:
		return 0xFF
	case AlphabetASCII:
		return 0x7F
	}
	return utf8.MaxRune
}

// alphabet converts GSM-7 septets to the carrier's alphabet for data_coding 0.
func (c *Carrier) alphabet(encoding sms.Encoding, payload []byte) []byte {
	if encoding != sms.GSM7 || c.Alphabet == AlphabetGSM7 {
		return payload
	}
	text, _ := sms.Decode(encoding.DataCoding(), false, payload)
	octets := make([]byte, 0, len(payload))
	for _, r := range text {
		octets = append(octets, byte(r)) // fits, because encode checked
	}
	return octets
}

// validity is the rest of the message's validity, as validity_period.
func (c *Carrier) validity(m *messages.Claimed, now time.Time) string {
	left := max(m.ExpiresAt.Sub(now), time.Minute)
	switch c.Validity {
	case ValidityAbsolute:
		return now.Add(left).UTC().Format("060102150405") + "000+"
	case ValidityRelative:
		seconds := int(min(left, longestRelative) / time.Second)
		days := seconds / 86400
		return fmt.Sprintf("%02d%02d%02d%02d%02d%02d000R", 0, days/30, days%30, seconds/3600%24, seconds/60%60, seconds%60)
	}
	return ""
}

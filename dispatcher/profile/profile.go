// Package profile holds how one carrier wants its SMPP: addresses, alphabets, the form of long messages and of the
// validity, the receipts that it sends and what its statuses mean. Encoding, decoding and classification ask one
// Profile.
//
// It has no state and no I/O. What a link needs to bind is in [smpp.Options].
package profile

import (
	"fmt"

	"intumwa/messages/receipts"
	"intumwa/smpp"
	"intumwa/sms"
)

// IDFormat relates a receipt's message id to that of the submit_sm_resp.
type IDFormat = receipts.Format

// Formats of ids.
const (
	IDAuto         = receipts.Auto         // any of the others
	IDSame         = receipts.Same         // equal except for case and leading zeros
	IDHexToDecimal = receipts.HexToDecimal // hexadecimal in the response, decimal in the receipt
	IDDecimalToHex = receipts.DecimalToHex // decimal in the response, hexadecimal in the receipt
)

// Concat is how the segments of a long message are marked for a carrier.
type Concat uint8

// Ways of marking segments.
const (
	ConcatUDH8    Concat = iota // UDH with an 8-bit reference: 153/67
	ConcatUDH16                 // UDH with a 16-bit reference: 152/66
	ConcatSAR                   // sar_* TLVs
	ConcatPayload               // whole in message_payload
)

// Validity is the form of validity_period.
type Validity uint8

// Forms of validity_period.
const (
	ValidityRelative Validity = iota
	ValidityAbsolute
	ValidityNone
)

// Alphabet is a carrier's default alphabet, that of data_coding 0.
type Alphabet uint8

// Alphabets.
const (
	AlphabetGSM7   Alphabet = iota // 3GPP TS 23.038, one septet per byte
	AlphabetLatin1                 // ISO 8859-1
	AlphabetASCII
)

// Inbound is what a carrier writes in data_coding 0 of MOs.
type Inbound uint8

// Values of Inbound.
const (
	InboundAlphabet Inbound = iota // the carrier's Alphabet
	InboundPacked                  // packed septets (Reading.Packed)
	InboundUTF8
)

// Profile is how one carrier wants its SMPP. The zero Profile is a carrier that follows SMPP 3.4 and takes every
// optional parameter; its TONs and NPIs are 0.
type Profile struct {
	// Submitting.
	Source             Sources
	Dest               TONNPI
	DestForm           DestForm
	ServiceType        string
	TLVs               []smpp.TLV // of every submit_sm
	NoReference        bool       // do not send user_message_reference
	Alphabet           Alphabet
	DefaultCoding      uint8  // data_coding of the default alphabet
	UCS2Coding         uint8  // data_coding of UCS-2; 0: 8
	Latin1Coding       uint8  // data_coding of Latin-1, in which customers write parts; 0: 3
	NoLatin1           bool   // it refuses that
	MessageClass       *uint8 // 0 to 3 (3GPP TS 23.038, section 4); nil: none
	Concat             Concat
	Validity           Validity
	RegisteredDelivery *uint8 // nil: 1, a receipt for success and failure
	SinglePriority     uint8  // priority_flag of single sends; batches have 0

	// Deliveries.
	Reading          smpp.Reading
	Inbound          Inbound
	UnmarkedReceipts bool // its receipts are texts that esm_class does not mark
	IDFormat         IDFormat
	States           map[string]sms.Status // state -> Sent, Failed, or Pending (ignored); overrides the defaults

	// DeliveryRefusal is the status of a receipt or MO that cannot be stored now; 0: ESME_RMSGQFUL, or ESME_RTHROTTLED if
	// there are too many.
	DeliveryRefusal smpp.Status

	// Classes overrides the default classes of statuses.
	Classes map[smpp.Status]smpp.Class
}

// Check refuses what cannot be meant, and adapts NoReference to the static TLVs.
func (p *Profile) Check() error {
	for _, tlv := range p.TLVs {
		switch tlv.Tag { // the dispatcher sets these; a PDU with two would be refused
		case smpp.TagUserMessageReference:
			p.NoReference = true
		case smpp.TagMessagePayload, smpp.TagSARMessageReference, smpp.TagSARTotalSegments, smpp.TagSARSegmentSeqnum:
			return fmt.Errorf("TLV %#04x cannot be static: it describes how the text is cut", tlv.Tag)
		}
	}
	return nil
}

// defaultStates are the final states of SMPP 3.4 appendix B
// (rule choices 5.3). Other states leave the segment to the deadline.
var defaultStates = map[string]sms.Status{
	"DELIVRD": sms.Sent, "ACCEPTD": sms.Sent,
	"UNDELIV": sms.Failed, "EXPIRED": sms.Failed, "REJECTD": sms.Failed, "DELETED": sms.Failed,
	"SKIPPED":        sms.Failed, // SMPP 5.0
	smpp.StateFailed: sms.Failed,
}

// Meaning maps a receipt's state to the segment's status.
func (p *Profile) Meaning(state string) (status sms.Status, final bool) {
	status, ok := p.States[state]
	if !ok {
		status = defaultStates[state]
	}
	return status, status.Final()
}

// Knows reports whether a receipt's state has a meaning, if only that it is not final.
func (p *Profile) Knows(state string) bool {
	_, set := p.States[state]
	return set || smpp.KnownState(state)
}

// Text returns the text of an MO, given without its header; nil if it is none in a supported coding.
func (p *Profile) Text(dataCoding uint8, octets []byte) *string {
	def := sms.DefaultGSM7
	switch {
	case p.Inbound == InboundUTF8:
		def = sms.DefaultUTF8
	case p.Inbound != InboundPacked && p.Alphabet != AlphabetGSM7:
		def = sms.DefaultLatin1
	}
	text, ok := sms.Decode(dataCoding, def, octets)
	if !ok {
		return nil
	}
	return &text
}

// ClassOf returns the class of a refusal.
func (p *Profile) ClassOf(status smpp.Status) smpp.Class {
	if class, ok := p.Classes[status]; ok {
		return class
	}
	return status.Class()
}

package smpp

import (
	"fmt"
	"strings"
	"time"

	"github.com/fiorix/go-smpp/smpp/pdu/pdutlv"
)

// Limits of SMPP 3.4 that Submit enforces, in bytes without the closing NUL.
const (
	maxServiceType  = 5
	maxAddress      = 20
	maxShortMessage = 254
	validityLength  = 16
)

// Tags of the optional parameters that this package or its callers name.
const (
	TagReceiptedMessageID   = uint16(pdutlv.TagReceiptedMessageID)
	TagUserMessageReference = uint16(pdutlv.TagUserMessageReference)
	TagSARMessageReference  = uint16(pdutlv.TagSarMsgRefNum) // 2 bytes
	TagSARTotalSegments     = uint16(pdutlv.TagSarTotalSegments)
	TagSARSegmentSeqnum     = uint16(pdutlv.TagSarSegmentSeqnum)
	TagStatusText           = uint16(pdutlv.TagAdditionalStatusInfoText)
	TagNetworkErrorCode     = uint16(pdutlv.TagNetworkErrorCode)
	TagMessagePayload       = uint16(pdutlv.TagMessagePayload)
	TagMessageState         = uint16(pdutlv.TagMessageStateOption)
	TagSCInterfaceVersion   = uint16(0x0210)
	TagCongestionState      = uint16(0x0428) // of SMPP 5
)

// TLV is one optional parameter: its tag and its value as it is on the wire
// (integers big-endian, C-octet strings with their NUL).
type TLV struct {
	Tag   uint16
	Value []byte
}

// Submit is one submit_sm: one segment to one recipient.
//
// ShortMessage is the UDH, if any, and the payload as they are sent; with a UDH, set
// ESMClass 0x40. Validity is empty or the 16 characters of validity_period. No tag may
// occur twice in TLVs. The caller may reuse every slice as soon as Bind.Submit has
// returned.
//
// Key identifies the submit for the caller (Bind.Overdue, Bind.GiveUp); it is not sent.
type Submit struct {
	Key                uint64
	ServiceType        string
	SourceTON          uint8
	SourceNPI          uint8
	Source             string
	DestTON            uint8
	DestNPI            uint8
	Dest               string
	ESMClass           uint8
	Priority           uint8 // priority_flag, 0 to 3
	RegisteredDelivery uint8
	DataCoding         uint8
	Validity           string
	ShortMessage       []byte
	TLVs               []TLV
}

// Outcome is how a submit_sm ended.
type Outcome uint8

const (
	// NotWritten: the carrier cannot have it; safe to send again.
	NotWritten Outcome = iota
	// NoAnswer: written, never answered; the carrier may or may not have it.
	NoAnswer
	// Rejected: answered with an error status.
	Rejected
	// Accepted: answered ESME_ROK.
	Accepted
)

// String returns the outcome as metrics and logs spell it.
func (o Outcome) String() string {
	switch o {
	case NotWritten:
		return "not_written"
	case NoAnswer:
		return "no_answer"
	case Rejected:
		return "rejected"
	case Accepted:
		return "accepted"
	}
	return "invalid"
}

// Result is the fate of one submit_sm.
type Result struct {
	Outcome Outcome
	// Status is the carrier's command_status; StatusOK unless Rejected.
	Status Status
	// MessageID is the carrier's message_id exactly as sent, at most 255 bytes.
	// It may be empty even when Accepted: then no receipt can be matched by id.
	MessageID string
	// Latency is the time from the write to the response; 0 when NotWritten.
	Latency time.Duration
	// Err is the reason: a *StatusError when Rejected, the end of the session when
	// NotWritten or NoAnswer, nil when Accepted.
	Err error
}

// FieldError is an invalid field of a Submit (or of Options).
type FieldError struct {
	Field   string // the SMPP name, e.g. "source_addr"
	Problem string
}

func (e *FieldError) Error() string { return "smpp: " + e.Field + " " + e.Problem }

// validate refuses fields that the codec would silently encode wrong: C-octet strings
// that are too long or contain a NUL, a short_message longer than its length byte
// allows, a tag given twice.
func (m *Submit) validate() error {
	if err := checkCString("service_type", m.ServiceType, maxServiceType); err != nil {
		return err
	}
	if err := checkCString("source_addr", m.Source, maxAddress); err != nil {
		return err
	}
	if err := checkCString("destination_addr", m.Dest, maxAddress); err != nil {
		return err
	}
	if m.Dest == "" {
		return &FieldError{"destination_addr", "is empty"}
	}
	if err := checkCString("validity_period", m.Validity, validityLength); err != nil {
		return err
	}
	if n := len(m.Validity); n != 0 && n != validityLength {
		return &FieldError{"validity_period", fmt.Sprintf("has %d characters, not 0 or %d", n, validityLength)}
	}
	if n := len(m.ShortMessage); n > maxShortMessage {
		return &FieldError{"short_message", fmt.Sprintf("has %d bytes, more than %d", n, maxShortMessage)}
	}
	return checkTLVs(m.TLVs, len(m.ShortMessage) > 0)
}

func checkTLVs(tlvs []TLV, text bool) error {
	size := 0
	for i, t := range tlvs {
		if len(t.Value) > 0xFFFF {
			return &FieldError{fmt.Sprintf("TLV %#04x", t.Tag), "is longer than 65535 bytes"}
		}
		if t.Tag == TagMessagePayload && text {
			return &FieldError{"message_payload", "stands beside a short_message"}
		}
		for _, u := range tlvs[:i] {
			if u.Tag == t.Tag {
				return &FieldError{fmt.Sprintf("TLV %#04x", t.Tag), "comes twice"}
			}
		}
		size += 4 + len(t.Value)
	}
	if size > maxPDU-1024 {
		return &FieldError{"TLVs", fmt.Sprintf("take %d bytes, too many for one PDU", size)}
	}
	return nil
}

func checkCString(field, s string, max int) error {
	if len(s) > max {
		return &FieldError{field, fmt.Sprintf("has %d bytes, more than %d", len(s), max)}
	}
	if strings.IndexByte(s, 0) >= 0 {
		return &FieldError{field, "contains a NUL"}
	}
	return nil
}

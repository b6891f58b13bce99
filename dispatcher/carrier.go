package dispatcher

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/smpp"
	"intumwa/sms"
)

// Confirm is the event that makes a message sent (rule choices 5.2).
type Confirm uint8

const (
	ConfirmByReceipt Confirm = iota // the delivery receipt
	ConfirmBySubmit                 // the submit_sm_resp, for carriers without receipts
)

// IDFormat relates a receipt's message id to that of the submit_sm_resp.
type IDFormat = receipts.Format

const (
	IDAuto         = receipts.Auto         // any of the others
	IDSame         = receipts.Same         // equal except for case and leading zeros
	IDHexToDecimal = receipts.HexToDecimal // hexadecimal in the response, decimal in the receipt
	IDDecimalToHex = receipts.DecimalToHex // decimal in the response, hexadecimal in the receipt
)

// Concat is how the segments of a long message are marked for a carrier.
type Concat uint8

const (
	ConcatUDH8    Concat = iota // UDH with an 8-bit reference: 153/67
	ConcatUDH16                 // UDH with a 16-bit reference: 152/66
	ConcatSAR                   // sar_* TLVs
	ConcatPayload               // whole in message_payload
)

// Validity is the form of validity_period.
type Validity uint8

const (
	ValidityRelative Validity = iota
	ValidityAbsolute
	ValidityNone
)

// Ambiguous is the policy for a segment whose link died before it was answered.
type Ambiguous = submission.Policy

const (
	AmbiguousResend = submission.Resend // send again; it may arrive twice
	AmbiguousHold   = submission.Hold   // wait for a receipt until the message's deadline
	AmbiguousFail   = submission.Fail   // fail the message
)

// Carrier is the dispatcher's configuration of one mobile operator.
type Carrier struct {
	Name             string
	Confirm          Confirm
	OnReceiptTimeout sms.Status    // Failed or Sent
	ReceiptTimeout   time.Duration // past the validity; default 1 h
	IDFormat         IDFormat
	States           map[string]sms.Status // receipt state -> Sent, Failed, or Pending (ignored); overrides the defaults
	Concat           Concat
	Alphabet         Alphabet
	Validity         Validity
	SourceTON        uint8
	SourceNPI        uint8
	DestTON          uint8
	DestNPI          uint8
	ServiceType      string
	TLVs             []smpp.TLV
	NoReference      bool                       // do not send user_message_reference
	Classes          map[smpp.Status]smpp.Class // overrides the defaults
	OnAmbiguous      Ambiguous
	RetryMin         time.Duration // default 1 s
	RetryMax         time.Duration // default 60 s
	Failover         []string
	FailoverAfter    time.Duration // default 10 s
	SecondCarrier    string        // tried once for a message that this one fails; "": none
	SecondWithin     time.Duration // of acceptance, after a receipt with UNDELIV; 0: after refusals only
	MaxUnmatched     int           // unmatched receipts kept per hour; default 50,000
	MaxInbound       int           // MOs kept per hour; default 20,000
	Links            []Link
}

// Link is one configured connection to a carrier. The dispatcher sets the
// functions, Carrier, Log and Metrics of its options.
type Link struct {
	smpp.Options
}

// Alphabet is a carrier's alphabet for data_coding 0.
type Alphabet uint8

const (
	AlphabetGSM7   Alphabet = iota // 3GPP TS 23.038, one septet per byte
	AlphabetLatin1                 // ISO 8859-1
	AlphabetASCII
)

func (c *Carrier) defaults() error {
	if c.Name == "" {
		return fmt.Errorf("a carrier without a name")
	}
	if c.OnReceiptTimeout == sms.Pending {
		c.OnReceiptTimeout = sms.Failed
	}
	if c.ReceiptTimeout == 0 {
		c.ReceiptTimeout = time.Hour
	}
	if c.RetryMin == 0 {
		c.RetryMin = time.Second
	}
	if c.RetryMax == 0 {
		c.RetryMax = time.Minute
	}
	if c.FailoverAfter == 0 {
		c.FailoverAfter = 10 * time.Second
	}
	if c.MaxUnmatched == 0 {
		c.MaxUnmatched = 50_000
	}
	if c.MaxInbound == 0 {
		c.MaxInbound = 20_000
	}
	for _, l := range c.Links {
		hold := cmp.Or(l.UnknownHold, smpp.DefaultUnknownHold)
		dead := cmp.Or(l.EnquireLink, smpp.DefaultEnquireLink) + cmp.Or(l.EnquireTimeout, smpp.DefaultEnquireTimeout)
		if hold <= dead {
			return fmt.Errorf("carrier %s: unknown_hold (%s) must be longer than enquire_link and enquire_timeout of link %s together (%s): "+
				"until then nobody knows whether the session is alive", c.Name, hold, l.Name, dead)
		}
	}
	for _, tlv := range c.TLVs {
		switch tlv.Tag { // the dispatcher sets these; a PDU with two would be refused
		case smpp.TagUserMessageReference:
			c.NoReference = true
		case smpp.TagMessagePayload, smpp.TagSARMessageReference, smpp.TagSARTotalSegments, smpp.TagSARSegmentSeqnum:
			return fmt.Errorf("carrier %s: TLV %#04x cannot be static: it describes how the text is cut", c.Name, tlv.Tag)
		}
	}
	c.Links = slices.Clone(c.Links)
	for i := range c.Links {
		if c.Links[i].Window == 0 {
			c.Links[i].Window = smpp.DefaultWindow
		}
	}
	return nil
}

// defaultStates are the final states of SMPP 3.4 appendix B
// (rule choices 5.3). Other states leave the segment to the deadline.
var defaultStates = map[string]sms.Status{
	"DELIVRD": sms.Sent, "ACCEPTD": sms.Sent,
	"UNDELIV": sms.Failed, "EXPIRED": sms.Failed, "REJECTD": sms.Failed, "DELETED": sms.Failed,
	"SKIPPED": sms.Failed, // SMPP 5.0
}

// meaning maps a receipt's state to the segment's status.
func (c *Carrier) meaning(state string) (status sms.Status, final bool) {
	status, ok := c.States[state]
	if !ok {
		status = defaultStates[state]
	}
	return status, status.Final()
}

// class returns the class of a refusal.
func (c *Carrier) class(status smpp.Status) smpp.Class {
	if class, ok := c.Classes[status]; ok {
		return class
	}
	return status.Class()
}

// retryDelay is the delay after the nth attempt: RetryMin doubling to RetryMax,
// with a jitter of ±25 %, never under RetryMin.
func (c *Carrier) retryDelay(attempt int, random float64) time.Duration {
	delay := c.RetryMax
	if attempt < 20 {
		delay = min(c.RetryMin<<max(attempt-1, 0), c.RetryMax)
	}
	delay = time.Duration(float64(delay) * (0.75 + random/2))
	return min(max(delay, c.RetryMin), c.RetryMax)
}

// equal reports whether two configurations describe the same link.
func (l *Link) equal(other *Link) bool {
	a, b := *l, *other
	// Set by the dispatcher, or compared below.
	a.Deliver, b.Deliver, a.Log, b.Log, a.Metrics, b.Metrics = nil, nil, nil, nil, nil, nil
	a.OnLate, b.OnLate, a.Class, b.Class = nil, nil, nil, nil
	if (a.TLS == nil) != (b.TLS == nil) {
		return false
	}
	if a.TLS != nil {
		if a.TLS.ServerName != b.TLS.ServerName || !reflect.DeepEqual(a.TLS.Certificates, b.TLS.Certificates) || !a.TLS.RootCAs.Equal(b.TLS.RootCAs) {
			return false
		}
		a.TLS, b.TLS = nil, nil
	}
	return reflect.DeepEqual(a, b) //nolint:govet // what may hold an error (the log, the TLS files) is out of it by now
}

package smpp

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// traceBacklog is how many PDUs may wait for a trace's reader; more are dropped.
const traceBacklog = 256

// TracedPDU is one PDU as shown to operators: numbers are masked, texts and payloads are
// shown as lengths, passwords are omitted.
type TracedPDU struct {
	At        time.Time `json:"at"`
	Link      string    `json:"link"`
	Direction string    `json:"direction"` // in or out
	Command   string    `json:"command"`
	Status    string    `json:"status,omitempty"` // of a response
	Sequence  uint32    `json:"sequence"`
	Octets    int       `json:"octets"` // of the whole PDU
	// PDUs before this one that were not traced because the reader was too slow
	Dropped int `json:"dropped,omitempty"`

	SystemID    string         `json:"system_id,omitempty"`
	ServiceType string         `json:"service_type,omitempty"`
	Source      *TracedAddress `json:"source,omitempty"`
	Destination *TracedAddress `json:"destination,omitempty"`
	ESMClass    *uint8         `json:"esm_class,omitempty"`
	DataCoding  *uint8         `json:"data_coding,omitempty"`
	Registered  *uint8         `json:"registered_delivery,omitempty"`
	Validity    string         `json:"validity_period,omitempty"`
	TextOctets  *int           `json:"text_octets,omitempty"` // of short_message or message_payload, UDH included
	UDH         string         `json:"udh,omitempty"`         // hexadecimal
	MessageID   string         `json:"message_id,omitempty"`
	State       string         `json:"receipt_state,omitempty"`
	Error       string         `json:"receipt_error,omitempty"`
	TLVs        []TracedTLV    `json:"tlvs,omitempty"`
}

// TracedAddress is an address, its digits masked.
type TracedAddress struct {
	TON     uint8  `json:"ton"`
	NPI     uint8  `json:"npi"`
	Address string `json:"address"`
}

// TracedTLV is an optional parameter; its value is shown only if it cannot contain text.
type TracedTLV struct {
	Tag    uint16 `json:"tag"`
	Octets int    `json:"octets"`
	Value  string `json:"value,omitempty"` // hexadecimal
}

// plainTLVs are the optional parameters whose values are shown.
var plainTLVs = []uint16{TagUserMessageReference, TagSARMessageReference, TagSARTotalSegments, TagSARSegmentSeqnum,
	TagNetworkErrorCode, TagMessageState, TagCongestionState}

// tracer collects the PDUs of a bind for one caller of Trace.
type tracer struct {
	pdus    chan tracedBytes
	dropped atomic.Int64
}

type tracedBytes struct {
	at  time.Time
	out bool
	raw []byte
}

// tracers are the traces of a bind; usually none.
type tracers struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*tracer] // nil: none
}

// Trace calls show for every PDU that the bind sends or receives, in order, until ctx
// ends or show returns an error, which it returns. show may block: PDUs for which it is
// too slow are dropped and counted in Dropped. Without a trace, a PDU costs one atomic
// load.
func (b *Bind) Trace(ctx context.Context, show func(TracedPDU) error) error {
	return b.trace(ctx, b.opts.Name, show)
}

func (t *tracers) change(edit func([]*tracer) []*tracer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*tracer
	if now := t.list.Load(); now != nil {
		list = slices.Clone(*now)
	}
	if list = edit(list); len(list) == 0 {
		t.list.Store(nil)
		return
	}
	t.list.Store(&list)
}

// wrote traces written bytes: one or more whole PDUs.
func (t *tracers) wrote(raw []byte) {
	list := t.list.Load()
	if list == nil {
		return
	}
	now := time.Now()
	for len(raw) >= headerLength {
		n := int(binary.BigEndian.Uint32(raw))
		if n < headerLength || n > len(raw) {
			return
		}
		passOn(*list, tracedBytes{now, true, bytes.Clone(raw[:n])})
		raw = raw[n:]
	}
}

// read traces a received PDU.
func (t *tracers) read(h header, body []byte) {
	list := t.list.Load()
	if list == nil {
		return
	}
	passOn(*list, tracedBytes{time.Now(), false, appendPDU(nil, h, body...)})
}

// passOn queues a PDU for the traces that have room.
func passOn(list []*tracer, pdu tracedBytes) {
	for _, t := range list {
		select {
		case t.pdus <- pdu:
		default:
			t.dropped.Add(1)
		}
	}
}

// describe returns a PDU's fields without confidential content.
func describe(o tracedBytes) TracedPDU {
	cmd, body := command(binary.BigEndian.Uint32(o.raw[4:])), o.raw[headerLength:]
	pdu := TracedPDU{At: o.at, Direction: directionIn, Command: cmd.String(),
		Sequence: binary.BigEndian.Uint32(o.raw[12:]), Octets: len(o.raw)}
	if o.out {
		pdu.Direction = directionOut
	}
	if cmd.response() {
		pdu.Status = Status(binary.BigEndian.Uint32(o.raw[8:])).String()
	}
	switch cmd {
	case cmdBindTransceiver, cmdBindTransmitter, cmdBindReceiver,
		cmdBindTransceiver | responseBit, cmdBindTransmitter | responseBit, cmdBindReceiver | responseBit:
		pdu.SystemID = messageID(body)
	case cmdSubmitSMResp, cmdDataSMResp, cmdQuerySM, cmdReplaceSM, cmdQuerySM | responseBit:
		pdu.MessageID = messageID(body)
	case cmdSubmitSM:
		pdu.describeMessage(cmdDeliverSM, body) // their mandatory fields are the same
	case cmdDeliverSM, cmdDataSM:
		pdu.describeMessage(cmd, body)
	}
	return pdu
}

func (pdu *TracedPDU) describeMessage(layout command, body []byte) {
	d, err := Reading{}.decode(layout, bytes.Clone(body), pdu.At)
	if err != nil {
		return // only its header can be shown
	}
	text := len(d.ShortMessage)
	pdu.ServiceType = d.ServiceType
	pdu.Source = &TracedAddress{d.SourceTON, d.SourceNPI, maskAddress(d.Source)}
	pdu.Destination = &TracedAddress{d.DestTON, d.DestNPI, maskAddress(d.Dest)}
	pdu.ESMClass, pdu.DataCoding, pdu.Registered, pdu.TextOctets = &d.sentESM, &d.DataCoding, &d.RegisteredDelivery, &text
	if d.ESMClass&esmUDHI != 0 && isConcat(d.ShortMessage) {
		pdu.UDH = hex.EncodeToString(d.ShortMessage[:d.ShortMessage[0]+1])
	}
	if d.Receipt != nil && pdu.Command != cmdSubmitSM.String() {
		pdu.MessageID, pdu.State, pdu.Error = d.Receipt.ID, d.Receipt.State, d.Receipt.Error
	}
	for _, t := range d.TLVs {
		traced := TracedTLV{Tag: t.Tag, Octets: len(t.Value)}
		if slices.Contains(plainTLVs, t.Tag) {
			traced.Value = hex.EncodeToString(t.Value)
		}
		pdu.TLVs = append(pdu.TLVs, traced)
	}
}

// isConcat reports whether a text begins with a concatenation header. Anything else may
// be text with a wrong esm_class, and is not shown.
func isConcat(text []byte) bool {
	return len(text) >= 6 && text[0] == 5 && text[1] == 0 && text[2] == 3 ||
		len(text) >= 7 && text[0] == 6 && text[1] == 8 && text[2] == 4
}

// maskAddress hides the middle of a number of seven digits or more, whatever is between
// its digits: it leaves the first five (fewer of a short number) and the last two. Names
// and short codes are unchanged, except that unprintable characters become U+FFFD.
func maskAddress(address string) string {
	digits := 0
	for _, r := range address {
		if unicode.IsDigit(r) {
			digits++
		}
	}
	first, last := digits, 0 // to be left at either end
	if digits >= 7 {
		first, last = min(5, digits-4), 2
	}
	seen := 0
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsDigit(r):
			if seen++; seen > first && seen <= digits-last {
				return '*'
			}
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, address)
}

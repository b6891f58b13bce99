package smpp

import (
	"bytes"
	"errors"
	"time"
)

// Delivery is one deliver_sm (or data_sm) from the carrier. It shares no memory
// with the session.
type Delivery struct {
	DataSM             bool // came as data_sm
	ServiceType        string
	SourceTON          uint8
	SourceNPI          uint8
	Source             string
	DestTON            uint8
	DestNPI            uint8
	Dest               string
	ESMClass           uint8 // its UDH bit (0x40) is set if, and only if, the text begins with a UDH
	RegisteredDelivery uint8
	DataCoding         uint8
	// ShortMessage is short_message, or message_payload where that carries the
	// text; UDH included when ESMClass has 0x40. Packed septets are unpacked.
	ShortMessage []byte
	// TLVs holds the optional parameters, by ascending tag, without
	// message_payload where that became ShortMessage.
	TLVs []TLV
	// Receipt is set if this is a delivery receipt or an intermediate notification; otherwise it is
	// a message from a handset.
	Receipt *Receipt
	// Received is when the PDU was read.
	Received time.Time
	// BoundAt is when its session began.
	BoundAt time.Time

	broken  *decodeError // why only a part of the PDU could be decoded
	sentESM uint8        // esm_class as sent
	rest    []byte       // what is behind the optional parameters: fewer bytes than one has
	open
}

// Respond sends deliver_sm_resp (data_sm_resp). Call it once, from any goroutine, after
// the delivery is durable; it never blocks, and later calls do nothing. After
// StatusMsgQueueFull or StatusSysErr the carrier delivers again. If the session has
// ended meanwhile, nothing is sent, and the carrier delivers again.
func (d *Delivery) Respond(status Status) {
	d.answer(status, 0) // its message_id is one NUL
}

// Left reports, after Respond, whether the response was written to the connection. It is not known while the response
// waits for the writer.
func (d *Delivery) Left() (left, known bool) {
	place := d.place.Load()
	if place == 0 {
		return false, true
	}
	s := d.session
	s.mu.Lock()
	defer s.mu.Unlock()
	left = s.controlWritten >= place
	return left, left || s.closing != nil
}

// TLV returns the value of an optional parameter and whether it is present.
func (d *Delivery) TLV(tag uint16) ([]byte, bool) { return tlv(d.TLVs, tag) }

func tlv(tlvs []TLV, tag uint16) ([]byte, bool) {
	for _, t := range tlvs {
		if t.Tag == tag {
			return t.Value, true
		}
	}
	return nil, false
}

// delivered passes a deliver_sm or data_sm to Options.Deliver, or refuses it when too many are unanswered.
func (b *Bind) delivered(s *session, h header, body []byte) bool {
	if h.command != cmdDeliverSM && h.command != cmdDataSM {
		return false
	}
	cost, refusal := s.take(len(body))
	if refusal != StatusOK {
		b.metrics.refused.Inc()
		s.send(header{h.command | responseBit, b.busy(), h.sequence}, 0)
		return true
	}
	var rules Reading
	if b.opts.Reading != nil {
		rules = b.opts.Reading()
	}
	d, err := rules.decode(h.command, bytes.Clone(body), s.heard.get())
	if err != nil {
		b.refuseMalformed(s, h, cost, err)
		return true
	}
	if d.broken != nil {
		b.metrics.malformed.Inc()
		if n, due := b.brokenSeen.Due(time.Now()); due {
			b.opts.Log.Warn("malformed PDU; its text or receipt is used", "event", "malformed_receipt", "command",
				h.command.String(), "count", n, "error", d.broken)
		}
	}
	d.session, d.header, d.cost, d.BoundAt = s, h, cost, s.begun
	b.opts.Deliver(d)
	return true
}

func (b *Bind) refuseMalformed(s *session, h header, cost int64, err error) {
	b.metrics.malformed.Inc()
	if n, due := b.refusedSeen.Due(time.Now()); due {
		b.opts.Log.Warn("malformed PDU refused", "event", "malformed_pdu", "command", h.command.String(), "count", n, "error",
			err)
	}
	status := StatusSysErr
	var bad *decodeError
	if errors.As(err, &bad) {
		status = bad.status
	}
	s.respond(h, status, cost, 0)
}

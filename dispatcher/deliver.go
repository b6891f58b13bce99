package dispatcher

import (
	"encoding/binary"
	"strings"

	"intumwa/dispatcher/profile"
	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/smpp"
	"intumwa/sms"
)

// deliver handles one deliver_sm or data_sm. Only esm_class makes it a receipt
// (smpp.Delivery.Receipt); an MO that looks like one stays an MO. The settler
// answers both after its commit.
func (w *linkWorker) deliver(pdu *smpp.Delivery) {
	name := w.carrier.name
	receipt := pdu.Receipt
	defer func() { pdu.ShortMessage, pdu.TLVs = nil, nil }() // already copied; the PDU waits for its answer
	switch {
	case receipt == nil:
		w.settler.receive(arrival{inbound: w.inbound(pdu), pdu: pdu})
		return
	case receipt.ID == "" && receipt.UserMessageReference == nil:
		w.metrics.receipts.WithLabelValues(name, w.link, "without_id").Inc()
		if n, due := w.withoutID.Due(pdu.Received); due {
			w.log.Warn("a receipt without a message id", "event", "receipt_without_id", "carrier", name, "link", w.link, "state", receipt.State, "count", n)
		}
		pdu.Respond(smpp.StatusOK)
		return
	}
	status, final := w.carrier.config().Meaning(receipt.State)
	w.settler.receive(arrival{
		Receipt: receipts.Receipt{
			Link: w.link, CarrierID: receipt.ID, Reference: receipt.UserMessageReference, Number: handset(pdu.Source, pdu.Dest),
			State: receipt.State, Status: status, Final: final && !receipt.Intermediate,
			Error: receipt.Error, At: postgres.Moment(pdu.Received),
		},
		pdu: pdu,
	})
}

// handset returns the recipient's address in a receipt, or "" if neither can be it.
// It should be the source. Some carriers leave the addresses as in the submit_sm,
// and some write no handset of ours. A sender may be all digits, so the
// international form is tried first.
func handset(source, dest string) string {
	for _, address := range []string{source, dest} {
		if digits, ok := strings.CutPrefix(strings.TrimLeft(address, "+0"), "257"); ok && subscriber(digits) {
			return address
		}
	}
	if subscriber(strings.TrimLeft(source, "+0")) {
		return source
	}
	return ""
}

// subscriber reports whether national digits can be a handset's. It checks no ranges:
// the carriers decide which are open.
func subscriber(digits string) bool {
	return len(digits) == 8 && strings.Trim(digits, "0123456789") == ""
}

// inbound is an MO, or one part of it, as stored.
func (w *linkWorker) inbound(pdu *smpp.Delivery) *handsets.Inbound {
	m := &handsets.Inbound{At: postgres.Moment(pdu.Received), Carrier: w.carrier.name, Link: w.link, Source: pdu.Source, Destination: pdu.Dest,
		DataCoding: pdu.DataCoding, ESMClass: pdu.ESMClass, Octets: pdu.ShortMessage, Part: partOf(pdu)}
	if m.Octets == nil {
		m.Octets = []byte{}
	}
	if text, ok := sms.Decode(pdu.DataCoding, w.carrier.config().Alphabet != profile.AlphabetGSM7, m.Payload()); ok {
		m.Body = &text
	}
	return m
}

// esmUDHI is the esm_class bit of a text that starts with a user data header.
const esmUDHI = 0x40

// partOf returns which part of a long message a delivery is, from its user data header
// or its SAR parameters (SMPP 3.4, 5.3.2.22 to 24); nil if it is a whole message. The
// two use independent reference counters, so they are kept apart.
func partOf(pdu *smpp.Delivery) *handsets.Part {
	if pdu.ESMClass&esmUDHI != 0 {
		if ref, total, seq, ok := sms.Concatenation(pdu.ShortMessage); ok {
			return &handsets.Part{Reference: int32(ref), Total: total, Number: seq}
		}
	}
	ref, _ := pdu.TLV(smpp.TagSARMessageReference)
	total, _ := pdu.TLV(smpp.TagSARTotalSegments)
	seq, _ := pdu.TLV(smpp.TagSARSegmentSeqnum)
	if len(ref) != 2 || len(total) != 1 || len(seq) != 1 || total[0] < 2 || seq[0] < 1 || seq[0] > total[0] {
		return nil
	}
	return &handsets.Part{Reference: sarReferences | int32(binary.BigEndian.Uint16(ref)), Total: int(total[0]), Number: int(seq[0])}
}

// sarReferences marks the references of SAR parameters.
const sarReferences = 1 << 16

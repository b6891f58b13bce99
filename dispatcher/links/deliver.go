package links

import (
	"encoding/binary"
	"strings"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/smpp"
	"intumwa/sms"
)

// deliver handles one deliver_sm or data_sm: a receipt (smpp.Delivery.Receipt) or an MO. The settler
// answers both after its commit.
func (w *Worker) deliver(pdu *smpp.Delivery) {
	name, conf := w.Carrier.Name, w.Carrier.Config()
	receipt := pdu.Receipt
	defer func() { pdu.ShortMessage, pdu.TLVs = nil, nil }() // already copied; the PDU waits for its answer
	switch {
	case receipt == nil:
		w.Settler.Receive(settling.Arrival{Inbound: w.inbound(pdu), PDU: pdu})
		return
	case receipt.ID == "" && receipt.UserMessageReference == nil:
		w.Metrics.Receipts.WithLabelValues(name, w.link, "without_id").Inc()
		if n, due := w.withoutID.Due(pdu.Received); due {
			w.Log.Warn("a receipt without a message id", "event", "receipt_without_id", "carrier", name, "link", w.link, "state",
				core.Printable(receipt.State), "count", n)
		}
		pdu.Respond(smpp.StatusOK)
		return
	}
	if !conf.Knows(receipt.State) {
		w.Carrier.Words.Note(w.Core, w.Carrier.Name, w.link, receipt.State, pdu.Received)
	}
	status, final := conf.Meaning(receipt.State)
	r := receipts.Receipt{
		Link: w.link, CarrierID: receipt.ID, Reference: receipt.UserMessageReference, Number: handset(pdu.Source, pdu.Dest),
		State: receipt.State, Status: status, Final: final && !receipt.Intermediate,
		Error: receipt.Error, At: postgres.Moment(pdu.Received),
	}
	for _, id := range receipt.Also {
		if id != "" {
			r.Also = append(r.Also, id)
		}
	}
	if receipt.Unmarked {
		r.Trust = w.trust(conf, pdu)
	}
	w.Settler.Receive(settling.Arrival{Receipt: r, PDU: pdu})
}

// trust returns what a text may do that looks like a receipt and is not marked as one.
func (w *Worker) trust(conf *setup.Carrier, pdu *smpp.Delivery) receipts.Trust {
	if conf.UnmarkedReceipts {
		return receipts.Checked
	}
	if n, due := w.unmarked.Due(pdu.Received); due {
		w.Log.Warn("a text like a receipt without the bits of one is kept as unmatched; see receipts_without_esm_class",
			"event", "receipt_unmarked", "carrier", w.Carrier.Name, "link", w.link, "count", n)
	}
	return receipts.Aside
}

// handset returns the recipient's address in a receipt, or "" if neither can be it.
// It should be the source. Some carriers leave the addresses as in the submit_sm,
// and some write no handset of ours. A sender may be all digits, so the
// international form is tried first.
func handset(source, dest string) string {
	for _, address := range []string{source, dest} {
		if _, ok := sms.FromCarrier(address); ok && len(sms.CompactAddress(address)) > len("079123456") {
			return address
		}
	}
	if _, ok := sms.FromCarrier(strings.TrimPrefix(sms.CompactAddress(source), "+")); ok {
		return source
	}
	return ""
}

// inbound is an MO, or one part of it, as stored.
func (w *Worker) inbound(pdu *smpp.Delivery) *handsets.Inbound {
	m := &handsets.Inbound{At: postgres.Moment(pdu.Received), Carrier: w.Carrier.Name, Link: w.link, Source: pdu.Source,
		Destination: pdu.Dest,
		DataCoding:  pdu.DataCoding, ESMClass: pdu.ESMClass, Octets: pdu.ShortMessage, Part: partOf(pdu),
		BoundAt: moment(pdu.BoundAt)}
	if m.Octets == nil {
		m.Octets = []byte{}
	}
	if number, ok := sms.FromCarrier(pdu.Source); ok { // one form, so that opt-outs, repetitions and searches find it
		m.Source = number.Digits()
	}
	if ref, _ := pdu.TLV(smpp.TagUserMessageReference); len(ref) == 2 {
		reference := binary.BigEndian.Uint16(ref)
		m.Reference = &reference
	}
	m.Body = w.Carrier.Config().Text(pdu.DataCoding, m.Payload())
	return m
}

// esmUDHI is the esm_class bit of a text that starts with a user data header.
const esmUDHI = 0x40

// moment is postgres.Moment; the zero time stays.
func moment(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return postgres.Moment(t)
}

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
	return &handsets.Part{Reference: sarReferences | int32(binary.BigEndian.Uint16(ref)), Total: int(total[0]),
		Number: int(seq[0])}
}

// sarReferences marks the references of SAR parameters.
const sarReferences = 1 << 16

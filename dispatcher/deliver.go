package dispatcher

import (
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/smpp"
	"intumwa/sms"
)

// deliver takes one deliver_sm or data_sm off the link. Only esm_class makes
// it a receipt (smpp.Delivery.Receipt); a handset's text that looks like one
// is a text. Both are answered by the settler, after its commit.
func (w *linkWorker) deliver(pdu *smpp.Delivery) {
	name := w.carrier.name
	receipt := pdu.Receipt
	defer func() { pdu.ShortMessage, pdu.TLVs = nil, nil }() // the copies are taken; the PDU waits for its answer
	switch {
	case receipt == nil:
		w.carrier.settler.receive(arrival{inbound: w.inbound(pdu), pdu: pdu})
		return
	case receipt.ID == "" && receipt.UserMessageReference == nil:
		w.d.metrics.receipts.WithLabelValues(name, w.link, "without_id").Inc()
		if n, due := w.withoutID.Due(pdu.Received); due {
			w.d.log.Warn("a receipt without a message id", "event", "receipt_without_id", "carrier", name, "link", w.link, "state", receipt.State, "count", n)
		}
		pdu.Respond(smpp.StatusOK)
		return
	}
	status, final := w.carrier.config().meaning(receipt.State)
	w.carrier.settler.receive(arrival{
		Receipt: receipts.Receipt{
			Link: w.link, CarrierID: receipt.ID, Reference: receipt.UserMessageReference, Number: handset(pdu.Source, pdu.Dest),
			State: receipt.State, Status: status, Final: final && !receipt.Intermediate,
			Error: receipt.Error, At: postgres.Moment(pdu.Received),
		},
		pdu: pdu,
	})
}

// handset is which of a receipt's addresses is the recipient's; "" when none
// can be. It should come from the handset; there are carriers that leave the
// addresses as they were in the submit_sm, and some that write what is no
// number of ours. A sender may be all digits, so the international form goes
// first.
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

// subscriber reports whether national digits can be a handset's. The carriers decide
// which ranges are open.
func subscriber(digits string) bool {
	return len(digits) == 8 && strings.Trim(digits, "0123456789") == ""
}

// inbound is a message from a handset, or a part of one, as it is kept.
func (w *linkWorker) inbound(pdu *smpp.Delivery) *handsets.Inbound {
	m := &handsets.Inbound{At: postgres.Moment(pdu.Received), Carrier: w.carrier.name, Link: w.link, Source: pdu.Source, Destination: pdu.Dest,
		DataCoding: pdu.DataCoding, ESMClass: pdu.ESMClass, Octets: pdu.ShortMessage, Part: partOf(pdu)}
	if m.Octets == nil {
		m.Octets = []byte{}
	}
	if text, ok := sms.Decode(pdu.DataCoding, w.carrier.config().Alphabet != AlphabetGSM7, m.Payload()); ok {
		m.Body = &text
	}
	return m
}

// partOf returns which part of a long message a delivery is, by its user data header
// or by its SAR parameters (SMPP 3.4, 5.3.2.22 to 24); nil: it is a whole one. The
// references of the two are independent counters, and are kept apart.
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

// quota bounds how many rows a carrier can make us write in an hour for receipts that
// match nothing and for messages from handsets. It fills as rows are written and runs
// empty with time: any hour has room for the configured number, a moment for a tenth of
// it, so that a rush does not shut out the rest of the hour.
//
// It is of one process: a carrier whose links are held by several has as many.
type quota struct {
	mu    sync.Mutex
	level float64 // rows
	at    time.Time
}

// room is how many rows may be written now.
func (q *quota) room(now time.Time, perHour int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	atOnce := max(float64(perHour)/10, 1)
	leak := (float64(perHour) - atOnce) * now.Sub(q.at).Hours()
	q.level, q.at = max(q.level-max(leak, 0), 0), now
	return int(atOnce - q.level)
}

// take notes that rows were written. They may be more than there was room for.
func (q *quota) take(rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.level += float64(rows)
}

// give notes that rows are gone again.
func (q *quota) give(rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.level = max(q.level-float64(rows), 0)
}

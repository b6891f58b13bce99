package dispatcher

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/sms"
)

// deliver takes one deliver_sm or data_sm off the link. Only esm_class makes
// it a receipt (smpp.Delivery.Receipt); a handset's text that looks like one
// is a text. Both are answered by the settler, after its commit.
func (l *lane) deliver(pdu *smpp.Delivery) {
	name := l.carrier.name
	receipt := pdu.Receipt
	defer func() { pdu.ShortMessage, pdu.TLVs = nil, nil }() // what is kept of them is taken; the PDU waits for its answer
	switch {
	case receipt == nil:
		l.carrier.settler.receive(arrival{inbound: l.inbound(pdu), pdu: pdu})
		return
	case receipt.ID == "" && receipt.UserMessageReference == nil:
		l.d.metrics.receipts.WithLabelValues(name, l.link, "without_id").Inc()
		if n, due := l.withoutID.Due(pdu.Received); due {
			l.d.log.Warn("a receipt without a message id", "carrier", name, "link", l.link, "state", receipt.State, "count", n)
		}
		pdu.Respond(smpp.StatusOK)
		return
	}
	status, final := l.carrier.config().meaning(receipt.State)
	key, verify, guess := l.form.key(receipt.ID)
	l.carrier.settler.receive(arrival{
		Receipt: messages.Receipt{
			Carrier: name, Link: l.link,
			CarrierID: receipt.ID, Key: key, Reference: receipt.UserMessageReference, Number: handset(pdu.Source, pdu.Dest), Verify: verify,
			State: receipt.State, Status: status, Final: final && !receipt.Intermediate,
			Error: receipt.Error, At: pdu.Received,
		},
		pdu: pdu, guess: guess,
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

// subscriber tells whether national digits can be a handset's: which ranges are
// open is for the carriers to say.
func subscriber(digits string) bool {
	return len(digits) == 8 && strings.Trim(digits, "0123456789") == ""
}

// inbound is a message from a handset as operators will see it.
func (l *lane) inbound(pdu *smpp.Delivery) *messages.Inbound {
	m := &messages.Inbound{At: pdu.Received, Carrier: l.carrier.name, Link: l.link, Source: pdu.Source, Destination: pdu.Dest,
		DataCoding: pdu.DataCoding, ESMClass: pdu.ESMClass, Octets: pdu.ShortMessage}
	if m.Octets == nil {
		m.Octets = []byte{}
	}
	text := pdu.ShortMessage
	if pdu.ESMClass&esmUDHI != 0 && len(text) > 0 && int(text[0]) < len(text) {
		text = text[int(text[0])+1:]
	}
	switch {
	case pdu.DataCoding == 0 && l.carrier.config().Alphabet == AlphabetGSM7:
		if body, err := sms.Join(sms.GSM7, [][]byte{text}); err == nil {
			m.Body = &body
		}
	case pdu.DataCoding == 0 || pdu.DataCoding == 1 || pdu.DataCoding == 3: // the carrier's own, IA5, Latin-1: an octet a character
		runes := make([]rune, len(text))
		for i, b := range text {
			runes[i] = rune(b)
		}
		body := string(runes)
		m.Body = &body
	case pdu.DataCoding == 8 && len(text)%2 == 0:
		units := make([]uint16, len(text)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(text[2*i:])
		}
		body := string(utf16.Decode(units))
		m.Body = &body
	}
	return m
}

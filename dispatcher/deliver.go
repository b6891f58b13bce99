package dispatcher

import (
	"intumwa/messages"
	"intumwa/smpp"
)

// deliver takes one deliver_sm or data_sm off the link. Only esm_class makes
// it a receipt (smpp.Delivery.Receipt); a handset's text that looks like one
// is a text. A receipt is answered by the settler, after its commit.
func (l *lane) deliver(pdu *smpp.Delivery) {
	name := l.carrier.Name
	receipt := pdu.Receipt
	if receipt == nil {
		l.d.metrics.inbound.WithLabelValues(name).Inc()
		pdu.Respond(smpp.StatusOK)
		return
	}
	if receipt.ID == "" {
		l.d.metrics.receipts.WithLabelValues(name, l.conf.Name, "without_id").Inc()
		l.d.log.Warn("a receipt without a message id", "carrier", name, "link", l.conf.Name, "state", receipt.State)
		pdu.Respond(smpp.StatusOK)
		return
	}
	status, final := l.carrier.meaning(receipt.State)
	l.carrier.settler.receive(arrival{
		Receipt: messages.Receipt{
			Carrier: name, Link: l.conf.Name,
			CarrierID: receipt.ID, Key: receiptKey(l.carrier.IDFormat, receipt.ID), Number: pdu.Source,
			State: receipt.State, Status: status, Final: final && !receipt.Intermediate,
			Error: receipt.Error, At: pdu.Received,
		},
		pdu: pdu,
	})
}

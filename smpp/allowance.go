package smpp

const (
	// unansweredOctets is the most memory that the unanswered deliver_sm of a bind take: some 1,700 receipts.
	unansweredOctets = 1 << 20
	// deliveryCost is about the memory of a delivery beside its octets (its fields, its
	// receipt, its queue entries), in octets.
	deliveryCost = 512
)

// owe takes a place among the bind's unanswered deliveries for one with a body of octets
// length; false when there is none. cost is the amount that settled returns. The first one
// always has a place, however long it is.
//
// A delivery without a place is answered ESME_RMSGQFUL at once; the carrier delivers it
// again later. The reader does not wait for a place, because the responses to our
// submit_sm and enquire_link come behind the deliveries in the same stream: while it
// waited, the session would time out, and the outcome of a whole window would be
// unknown.
func (b *Bind) owe(octets int) (cost int64, ok bool) {
	cost = int64(octets) + deliveryCost
	if held := b.heldOctets.Add(cost); held > unansweredOctets && held > cost {
		b.heldOctets.Add(-cost)
		return 0, false
	}
	b.unanswered.Add(1)
	return cost, true
}

// settled releases the place of an answered delivery.
func (b *Bind) settled(cost int64) {
	b.heldOctets.Add(-cost)
	b.unanswered.Add(-1)
}

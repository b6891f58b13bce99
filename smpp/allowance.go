package smpp

const (
	// unansweredBytes is the most memory that the unanswered deliver_sm of a bind take: some 1,700 receipts.
	unansweredBytes = 1 << 20
	// deliveryCost is the approximate memory of a delivery beside its body: its fields,
	// its receipt, its queue entries.
	deliveryCost = 512
)

// owe reserves room among the bind's unanswered deliveries for one with a body of this
// length; ok is false when there is none. settled releases the returned cost. The first
// delivery always has room, however long it is.
//
// A delivery without room is answered ESME_RMSGQFUL at once; the carrier sends it again
// later. The reader must not wait for room: responses to our submit_sm and enquire_link
// come behind the deliveries in the same stream. The session would time out, with an
// unknown outcome for a whole window.
func (b *Bind) owe(length int) (cost int64, ok bool) {
	cost = int64(length) + deliveryCost
	if held := b.heldBytes.Add(cost); held > unansweredBytes && held > cost {
		b.heldBytes.Add(-cost)
		return 0, false
	}
	b.unanswered.Add(1)
	return cost, true
}

// settled releases the room of an answered delivery.
func (b *Bind) settled(cost int64) {
	b.heldBytes.Add(-cost)
	b.unanswered.Add(-1)
}

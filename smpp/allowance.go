package smpp

import "sync/atomic"

// Allowance limits the memory of unanswered deliver_sm, for all binds that share it. It
// is safe for concurrent use.
//
// A delivery counts with its octets plus deliveryCost. Each bind may always hold
// bindReserve, whatever the others hold, so that no carrier can block another's
// receipts.
type Allowance struct {
	limit int64
	held  atomic.Int64
}

const (
	// deliveryCost is about the memory of a delivery beside its octets (its fields, its
	// receipt, its queue entries), in octets.
	deliveryCost = 512
	// bindReserve is about a hundred receipts, in octets.
	bindReserve = 64 << 10
)

// NewAllowance returns an allowance of a number of octets.
func NewAllowance(octets int64) *Allowance { return &Allowance{limit: octets} }

// take takes octets for a bind that then holds held octets; false when not enough are
// left.
func (a *Allowance) take(octets, held int64) bool {
	if a.held.Add(octets) <= a.limit || held <= bindReserve {
		return true
	}
	a.held.Add(-octets)
	return false
}

func (a *Allowance) give(octets int64) { a.held.Add(-octets) }

// owe takes a place among the bind's unanswered deliveries for one with a body of octets
// length; false when there is none. cost is the amount that settled returns.
//
// A delivery without a place is answered ESME_RMSGQFUL at once; the carrier delivers it
// again later. The reader does not wait for a place, because the responses to our
// submit_sm and enquire_link come behind the deliveries in the same stream: while it
// waited, the session would time out, and the outcome of a whole window would be
// unknown.
func (b *Bind) owe(octets int) (cost int64, ok bool) {
	cost = int64(octets) + deliveryCost
	n, held := b.unanswered.Add(1), b.heldOctets.Add(cost)
	full := n > int64(b.opts.DeliverQueue) || n > 1 && held > int64(b.opts.DeliverOctets)
	if full || !b.opts.Allowance.take(cost, held) {
		b.unanswered.Add(-1)
		b.heldOctets.Add(-cost)
		return 0, false
	}
	return cost, true
}

// settled releases the place of an answered delivery.
func (b *Bind) settled(cost int64) {
	b.opts.Allowance.give(cost)
	b.heldOctets.Add(-cost)
	b.unanswered.Add(-1)
}

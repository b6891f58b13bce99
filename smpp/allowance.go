package smpp

import "sync/atomic"

// Allowance bounds the memory of the deliver_sm that binds hold unanswered, of
// all binds that share it. Safe for concurrent use.
//
// A delivery counts with its octets and what keeping it costs beside them
// (deliveryCost). Each link may hold a little (bindReserve) whatever the others
// hold, so that no carrier can keep another's receipts out.
type Allowance struct {
	limit int64
	held  atomic.Int64
}

const (
	// deliveryCost is about what a short delivery takes in memory beside its own
	// octets: its fields, its receipt, its place in queues, in octets.
	deliveryCost = 512
	// bindReserve is some hundred receipts, in octets.
	bindReserve = 64 << 10
)

// NewAllowance returns an allowance of so many octets.
func NewAllowance(octets int64) *Allowance { return &Allowance{limit: octets} }

// take takes octets for a bind that holds, with them, held; false when they are
// not to be had.
func (a *Allowance) take(octets, held int64) bool {
	if a.held.Add(octets) <= a.limit || held <= bindReserve {
		return true
	}
	a.held.Add(-octets)
	return false
}

func (a *Allowance) give(octets int64) { a.held.Add(-octets) }

// owe takes a place among the bind's unanswered deliveries for one whose body
// has so many octets; false when there is none. cost is what settled gives back.
//
// What finds no place is answered ESME_RMSGQFUL at once and read past. The
// reader does not wait until there is a place: behind the deliveries, in the
// same stream, come the answers to our submit_sm and enquire_link, and a carrier
// whose receipts come faster than the database takes them would lose its
// session, and we the answers to a whole window, for being busy. A carrier
// delivers again what was answered so.
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

// settled gives back the place of a delivery that is answered.
func (b *Bind) settled(cost int64) {
	b.opts.Allowance.give(cost)
	b.heldOctets.Add(-cost)
	b.unanswered.Add(-1)
}

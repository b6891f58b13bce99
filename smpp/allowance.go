package smpp

import "sync/atomic"

const (
	// unansweredBytes is the most memory that the unanswered requests of a peer take: some 1,700 receipts.
	unansweredBytes = 1 << 20
	// deliveryCost is the approximate memory of a request beside its body: its fields,
	// its receipt, its queue entries.
	deliveryCost = 512
)

// allowance bounds the unanswered requests of a peer.
type allowance struct {
	most       int64        // requests; 0: only their memory is bounded
	unanswered atomic.Int64 // accepted and not yet answered
	bytes      atomic.Int64 // what they take of unansweredBytes
}

// owe reserves room for a request with a body of this length; without room, it returns the status of a refusal. settled
// releases the returned cost. The first request always has room, however long it is.
//
// A request without room is refused at once; the peer sends it again later. The reader must not wait for room:
// responses to our requests and enquire_link come behind the requests in the same stream. The session would time out,
// with an unknown outcome for a whole window.
func (a *allowance) owe(length int) (cost int64, status Status) {
	if a.most > 0 && a.unanswered.Load() >= a.most { // only the reader adds
		return 0, StatusThrottled
	}
	cost = int64(length) + deliveryCost
	if held := a.bytes.Add(cost); held > unansweredBytes && held > cost {
		a.bytes.Add(-cost)
		return 0, StatusMsgQueueFull
	}
	a.unanswered.Add(1)
	return cost, StatusOK
}

// settled releases the room of an answered request.
func (a *allowance) settled(cost int64) {
	a.bytes.Add(-cost)
	a.unanswered.Add(-1)
}

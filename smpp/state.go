package smpp

import "time"

// State is the state of a Bind, as shown to operators.
type State uint8

const (
	// Down: not connected; waiting before the next attempt, or not running.
	Down State = iota
	// Connecting: dialling or waiting for a bind response.
	Connecting
	// Bound: every session of the bind is bound; Submit works.
	Bound
	// Paused: stopped by Pause, whatever the state of the sessions. Receipts still arrive.
	Paused
)

// States lists every state.
var States = [...]State{Down, Connecting, Bound, Paused}

// String returns down, connecting, bound or paused.
func (s State) String() string {
	switch s {
	case Down:
		return "down"
	case Connecting:
		return "connecting"
	case Bound:
		return "bound"
	case Paused:
		return "paused"
	}
	return "invalid"
}

// Snapshot is the state of a Bind at one moment.
type Snapshot struct {
	Carrier string
	Name    string

	State State
	Since time.Time // when State was entered
	// SessionsBound is how many of the Sessions (1, or 2 for a pair) are bound.
	SessionsBound int
	Sessions      int
	BoundSince    time.Time // zero when not bound

	Window      int
	InFlight    int   // submit_sm holding a window slot
	Waiting     int   // Submit calls waiting for a slot
	Overdue     int   // of InFlight: unanswered for longer than the response timeout
	PeerVersion uint8 // sc_interface_version of the carrier's bind response; 0: it had none
	Deliveries  int   // deliver_sm not yet answered by their owner
	TPS         float64

	LastError string    // the last reason for not being bound; of a bound bind, with the time when it ended
	LastPDU   time.Time // last PDU received; zero when never

	Totals Totals
}

// Totals counts submit_sm since New; the metrics count the rest.
type Totals struct {
	Accepted  uint64
	Throttled uint64 // rejected with ClassThrottled
}

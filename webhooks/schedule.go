package webhooks

import "time"

// state of a delivery, as stored.
type state int16

const (
	pending   state = 0
	delivered state = 1
	exhausted state = 2
)

// String is the state's name as people see it.
func (s state) String() string {
	switch s {
	case pending:
		return StatePending
	case delivered:
		return StateDelivered
	}
	return StateFailed
}

// schedule is the delays between a failure and the attempt after it. rule api 6
type schedule []time.Duration

// after says what becomes of a delivery when the attempt number tries (from 1)
// of its round has ended, and how long from now its next attempt is.
func (s schedule) after(tries int, success bool) (state, time.Duration) {
	switch {
	case success:
		return delivered, 0
	case tries > len(s):
		return exhausted, 0
	}
	return pending, s[tries-1]
}

package dashboard

import (
	"errors"
	"net/http"
	"strconv"

	"intumwa/internal/throttle"
)

// A page asks the database while it holds a turn: a user has few at a time, and without a session a network address has. So
// however many connections somebody opens, and whatever they claim to be, the database's connections are left for sends and
// for others. Not held is a turn while a form is read, a password is hashed, an endpoint is called, and while the response is
// written; a download takes one for each page of rows that it reads.
const (
	turnsOfAll = 8 // if Options.AtOnce is not set
	turnsOfOne = 4
)

// takeTurn waits for a turn of the user, or of the network address where nobody is signed in, and ends the one that the
// request has.
func (v *visit) takeTurn() error {
	v.leave()
	leave, err := v.d.turns.Enter(v.ctx(), v.turnKey())
	switch {
	case err == nil:
		v.leaveTurn = leave
		return nil
	case errors.Is(err, throttle.ErrOwnTurns):
		return v.busy(http.StatusTooManyRequests)
	}
	return v.busy(http.StatusServiceUnavailable)
}

// turnKey is whose turns the visitor has.
func (v *visit) turnKey() int64 {
	if v.session != nil {
		return tryKey("turn", "user "+strconv.FormatInt(v.session.User.ID, 10))
	}
	return tryKey("turn", "address "+networkOf(v.c.ClientIP()))
}

// inTurn calls read in a turn, for which it waits as long as the request lives.
func (v *visit) inTurn(read func() error) error {
	for {
		leave, err := v.d.turns.Enter(v.ctx(), v.turnKey())
		if err == nil {
			defer leave()
			return read()
		}
		if err := v.ctx().Err(); err != nil {
			return err
		}
	}
}

// busy returns the failure of a request while too much is under way.
func (v *visit) busy(status int) error {
	v.c.Header("Retry-After", "1")
	return failure{status, "error.busy.title", "error.busy.text"}
}

// leave ends the turn, if the request has one.
func (v *visit) leave() {
	if v.leaveTurn != nil {
		v.leaveTurn()
		v.leaveTurn = nil
	}
}

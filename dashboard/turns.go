package dashboard

import (
	"errors"
	"net/http"
	"strconv"

	"intumwa/internal/throttle"
)

// A page holds a turn while it uses the database. Each user, and each network address without a session, has few at a
// time. However many connections one client opens, other users and the sends keep theirs. A request holds no turn while
// it reads a form, hashes a password, calls an endpoint or writes the response. A download takes one turn per page of
// rows.
const (
	turnsOfAll = 8 // if Options.AtOnce is not set
	turnsOfOne = 4
)

// takeTurn waits for a turn of the user, or of the network address without a session. It first ends the request's
// current turn.
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

// turnKey identifies the owner of the visitor's turns.
func (v *visit) turnKey() int64 {
	if v.session != nil {
		return tryKey("turn", "user "+strconv.FormatInt(v.session.User.ID, 10))
	}
	return tryKey("turn", "address "+v.network())
}

// inTurn waits for a turn as long as the request lives, and calls read in it.
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

// busy returns the failure of a request without a turn.
func (v *visit) busy(status int) error {
	v.c.Header("Retry-After", "1")
	return failure{status, "error.busy.title", "error.busy.text"}
}

func (v *visit) leave() {
	if v.leaveTurn != nil {
		v.leaveTurn()
		v.leaveTurn = nil
	}
}

package web

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
	turnsOfAll = 8 // if the option AtOnce is not set
	turnsOfOne = 4
)

// TakeTurn waits for a turn of the user, or of the network address without a session. It first ends the request's
// current turn.
func (v *Visit) TakeTurn() error {
	v.Leave()
	leave, err := v.site.Turns.Enter(v.Ctx(), turnKey(v))
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
func turnKey(v *Visit) int64 {
	if v.Session != nil {
		return TryKey("turn", "user "+strconv.FormatInt(v.Session.User.ID, 10))
	}
	return TryKey("turn", "address "+v.Network())
}

// InTurn waits for a turn as long as the request lives, and calls read in it.
func (v *Visit) InTurn(read func() error) error {
	for {
		leave, err := v.site.Turns.Enter(v.Ctx(), turnKey(v))
		if err == nil {
			defer leave()
			return read()
		}
		if err := v.Ctx().Err(); err != nil {
			return err
		}
	}
}

// waitTurn is [Visit.TakeTurn] that waits as long as the request lives.
func (v *Visit) waitTurn() error {
	for v.TakeTurn() != nil {
		if err := v.Ctx().Err(); err != nil {
			return err
		}
	}
	return nil
}

// busy returns the failure of a request without a turn.
func (v *Visit) busy(status int) error {
	v.C.Header("Retry-After", "1")
	return failure{status, "error.busy.title", "error.busy.text"}
}

// Leave ends the turn, if there is one.
func (v *Visit) Leave() {
	if v.leaveTurn != nil {
		v.leaveTurn()
		v.leaveTurn = nil
	}
}

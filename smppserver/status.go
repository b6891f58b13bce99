package smppserver

import (
	"errors"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/smpp"
	"intumwa/smppserver/statuses"
	"intumwa/sms"
)

// refused returns the answer to a submit that intake has not accepted.
func refused(err error) refusal {
	if out, is := errors.AsType[*intake.OptedOut](err); is {
		err = out.Refusal
	}
	if no, is := errors.AsType[sms.Refusal](err); is {
		status, known := statuses.Of(no.Reason)
		if !known {
			status = smpp.StatusSubmitFailed
		}
		return refusal{status, no.Text}
	}
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated):
		return refusal{smpp.StatusInvBindState, "The key has been revoked."}
	case errors.Is(err, intake.ErrUnavailable):
		return refusal{smpp.StatusMsgQueueFull, "The service is unavailable; try again."}
	}
	return refusal{smpp.StatusSysErr, "Server error."}
}

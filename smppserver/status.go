package smppserver

import (
	"errors"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/smpp"
	"intumwa/sms"
)

// The statuses of our own (SMPP 3.4, 5.1.3: 0x400 to 0x4FF). Programs like Kannel do not repeat a message that was refused
// with one; they do after ESME_RMSGQFUL and ESME_RTHROTTLED.
const (
	StatusNoCompany   smpp.Status = 0x400
	StatusNotApproved smpp.Status = 0x401
	StatusNotVerified smpp.Status = 0x402
	StatusOptedOut    smpp.Status = 0x403
	StatusDailyCap    smpp.Status = 0x404
	StatusTooSoon     smpp.Status = 0x405 // the same text to the same number within the interval
	StatusTooOften    smpp.Status = 0x406 // the same text to the same number, on a day
	StatusNumberLimit smpp.Status = 0x407 // messages to a number, on a day
	StatusNoCredits   smpp.Status = 0x40B
)

// statusOf maps the reasons of intake's refusals.
var statusOf = map[string]smpp.Status{
	"no_company": StatusNoCompany, "company_not_approved": StatusNotApproved, "company_not_verified": StatusNotVerified,
	"opted_out": StatusOptedOut, "daily_cap": StatusDailyCap, "repeated_too_soon": StatusTooSoon, "repeated_too_often": StatusTooOften,
	"number_limit": StatusNumberLimit, "insufficient_credits": StatusNoCredits,
	"sender_not_found": smpp.StatusInvSrcAddr, "sender_not_approved": smpp.StatusInvSrcAddr, "test_sender": smpp.StatusInvSrcAddr,
	"country": smpp.StatusInvSrcAddr, "no_carrier": smpp.StatusInvDstAddr, "too_long": smpp.StatusInvMsgLen,
}

// refused returns the answer to a submit that intake has not accepted.
func refused(err error) refusal {
	if out, is := errors.AsType[*intake.OptedOut](err); is {
		err = out.Refusal
	}
	if no, is := errors.AsType[sms.Refusal](err); is {
		status, known := statusOf[no.Reason]
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

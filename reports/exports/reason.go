package exports

import (
	"strings"

	"intumwa/messages"
	"intumwa/messages/statistics"
	"intumwa/messages/submission"
	"intumwa/texts"
)

// reasons are the texts of what a message's failure is recorded with: our reasons, a status of submit_sm_resp, or a
// receipt's state.
var reasons = map[string]string{
	submission.ReasonExpired: "reason.expired", submission.ReasonNoReceipt: "reason.noreceipt",
	submission.ReasonNoAnswer: "reason.noanswer",
	submission.ReasonOptedOut: "reason.optedout", submission.ReasonClosed: "reason.closed",
	messages.ReasonCancelled: "reason.cancelled", statistics.Others: "reason.others",
	"ESME_RINVDSTADR": "reason.number", "ESME_RINVSRCADR": "reason.sender",
	submission.Undeliv: "reason.undeliv", "REJECTD": "reason.rejectd", "EXPIRED": "reason.late",
	"DELETED": "reason.deleted",
}

// Describe returns why a message failed and what to do, and the carrier's own words if the reason is not ours. Both are
// empty without a reason.
func Describe(l *texts.Language, reason string) (text, carriers string) {
	state, _, _ := strings.Cut(reason, " ")
	theirs := strings.ToUpper(state) == state
	switch {
	case reason == "":
		return "", ""
	case strings.HasPrefix(reason, "smpp: "):
		return l.T("reason.unsendable"), ""
	case !theirs && reasons[reason] != "":
		return l.T(reasons[reason]), ""
	case theirs && reasons[state] != "":
		return l.T(reasons[state]), reason
	case strings.HasPrefix(reason, "ESME_"):
		return l.T("reason.refused"), reason
	}
	return l.T("reason.reported"), reason
}

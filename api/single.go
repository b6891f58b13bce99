package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

// sendSingle is POST /v1/sms (rule api 4.1).
func (a *API) sendSingle(c *gin.Context) {
	handleSend(a, c, a.readSingle, problems.first, a.writeSingleAnswer,
		func(ctx context.Context, p *accounts.Principal, req intake.Single, key *intake.Key) (intake.Answer, error) {
			req.Key = key
			return a.Intake.Send(ctx, p, req)
		})
}

func (a *API) readSingle(f fields) (req intake.Single, p problems) {
	req.Number = a.recipient(f, &p)
	req.Sender = p.sender(f.sender, senderRequired, senderInvalid)
	req.Message = p.body(f.message, messageRequired, messageLong)
	req.Reference = p.label(f.reference, referenceWrong)
	req.CostCenter = p.label(f.costCenter, costCenterWrong)
	req.Schedule = p.schedule(f.sendAt, f.expireAt)
	return req, p
}

// recipient reads the number of a single message; with the test sender it may be one of the sandbox.
func (a *API) recipient(f fields, p *problems) sms.Number {
	if name, _ := f.sender.text(); name != "" && name == a.opts.TestSender {
		number, _ := f.phoneNumber.text()
		if fixed, ok := sms.ParseSandbox(number); ok {
			return fixed
		}
	}
	return p.number(a.opts.Plan, f.phoneNumber, numberRequired, numberInvalid)
}

// includeMessageID is the preference (RFC 7240) for message_id, the number used in webhooks, in the response to a
// single send. Without it the response has only the fields of rule api 2.1.
const includeMessageID = "include=message_id"

// acceptedView is the response to a single send with its message_id.
type acceptedView struct {
	intake.Accepted

	MessageID int64 `json:"message_id"`
}

// prefers reports whether a Prefer header names a preference. Names are case-insensitive; parameters after a semicolon
// are ignored.
func prefers(r *http.Request, preference string) bool {
	wantName, wantValue, _ := strings.Cut(preference, "=")
	for _, line := range r.Header["Prefer"] {
		for each := range strings.SplitSeq(line, ",") {
			each, _, _ = strings.Cut(each, ";")
			name, value, _ := strings.Cut(each, "=")
			if strings.EqualFold(strings.TrimSpace(name), wantName) && strings.Trim(strings.TrimSpace(value), `"`) == wantValue {
				return true
			}
		}
	}
	return false
}

// writeSingleAnswer responds to a single send, with message_id if the client prefers it and the message is found: a
// purged one has none.
func (a *API) writeSingleAnswer(c *gin.Context, answer intake.Answer, err error) {
	if err != nil || !prefers(c.Request, includeMessageID) {
		a.writeAnswer(c, answer, err)
		return
	}
	var view acceptedView
	if err := json.Unmarshal(answer.Body, &view.Accepted); err != nil {
		a.writeServerError(c, err)
		return
	}
	if view.MessageID = answer.MessageID; view.MessageID == 0 { // a repeated answer was stored without it
		var company int64
		if known := caller(c).Company; known != nil {
			company = known.ID
		}
		record, err := a.Lookup.ByULID(c.Request.Context(), sms.CompanyID(company), view.ID)
		if err != nil {
			a.log(c).Warn("message_id left out of a response: the message could not be looked up", "event",
				"message_id_left_out", "id", view.ID, "error", err)
			a.writeAnswer(c, answer, nil)
			return
		}
		view.MessageID = record.ID
	}
	setHeader(c, "Preference-Applied", includeMessageID)
	answer.Body = intake.Encode(view)
	a.writeAnswer(c, answer, nil)
}

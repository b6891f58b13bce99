package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/intake"
	"intumwa/sms"
)

// includeMessageID is the preference (RFC 7240) of who wants the number of the
// webhooks in the answer to a single send, which otherwise has only what rule api 2.1
// lists.
const includeMessageID = "include=message_id"

// acceptedView is the answer to a single send with the number of its webhooks.
type acceptedView struct {
	intake.Accepted

	MessageID int64 `json:"message_id"`
}

// prefers tells whether a Prefer header names a preference. Names are equal in any
// case; what stands behind a semicolon is a parameter and does not count.
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

// answerSingle answers a single send, with the message's number where that is
// preferred and known: a message that is long forgotten has none any more.
func (a *API) answerSingle(c *gin.Context, answer intake.Answer, err error) {
	if err != nil || !prefers(c.Request, includeMessageID) {
		a.answer(c, answer, err)
		return
	}
	var view acceptedView
	if err := json.Unmarshal(answer.Body, &view.Accepted); err != nil {
		a.fail(c, "reading an answer", err)
		return
	}
	if view.MessageID = answer.MessageID; view.MessageID == 0 { // a repetition
		var company int64
		if known := caller(c).Company; known != nil {
			company = known.ID
		}
		record, err := a.messages.ByULID(c.Request.Context(), sms.CompanyID(company), view.ID)
		if err != nil {
			a.log(c).Warn("message_id left out of a response: the message could not be looked up", "id", view.ID, "error", err)
			a.answer(c, answer, nil)
			return
		}
		view.MessageID = record.ID
	}
	header(c, "Preference-Applied", includeMessageID)
	answer.Body = encoded(view)
	a.answer(c, answer, nil)
}

package following

import (
	"encoding/json"

	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/intake"
)

// FirstSent is GET /first/:id, with the key of the sent form: the request, the response, and the message's timeline.
func (ps *Pages) FirstSent(v *web.Visit, t web.Tenant) error {
	key := v.C.Param("id")
	if !web.IsFormKey(key) {
		return web.ErrNotFound
	}
	body, known, err := ps.Answered(v.Ctx(), t.User.ID, web.KeyPrefix+key)
	if err != nil {
		return err
	}
	var answer intake.Accepted
	if !known || json.Unmarshal(body, &answer) != nil {
		return web.ErrNotFound
	}
	l, err := ps.timeline(v, t, answer.ID)
	if err != nil {
		return err
	}
	return v.Render("firstsent", firstSentPage{Curl: ps.Test.Curl("", testmode.Body(l.Number, l.Sender, l.Body)),
		Answer: web.Indented(string(body)), Life: l})
}

// firstSentPage is the page of the first message, once it is sent.
type firstSentPage struct {
	Curl   string
	Answer string // the API's response, indented
	Life   *timeline
}

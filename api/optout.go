package api

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/sms"
)

// optOutView is an entry of a company's opt-out list.
type optOutView struct {
	PhoneNumber string  `json:"phone_number"`
	Sender      *string `json:"sender"` // null: all senders of the company
	Source      string  `json:"source"`
	CreatedAt   string  `json:"created_at"`
}

// optOutPage is a page of entries.
type optOutPage struct {
	Data       []optOutView `json:"data"`
	NextCursor *string      `json:"next_cursor"`
}

// optOutsAdded is the response to new entries.
type optOutsAdded struct {
	Added     int64 `json:"added"`
	Unchanged int64 `json:"unchanged"`
}

// optOutsRemoved is the response to the removal of entries.
type optOutsRemoved struct {
	Removed int64 `json:"removed"`
}

// listOptOuts is GET /v1/opt-outs.
func (a *API) listOptOuts(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	q := readQuery(c, optOutFilters.names()...)
	filter := handsets.OptOutFilter{Number: a.numberAsked(q), Sender: q.sender()}
	limit, before := q.page(optOutFilters)
	if !q.none() {
		q.refuseFirst(c)
		return
	}
	page, next, err := a.handsets.OptOuts(c.Request.Context(), sms.CompanyID(company.ID), filter, before, limit)
	if err != nil {
		a.writeUnavailable(c, "listing opt-outs", err)
		return
	}
	view := optOutPage{Data: make([]optOutView, len(page)), NextCursor: optOutFilters.next(q, next)}
	for i, e := range page {
		view.Data[i] = optOutView{PhoneNumber: string(e.Number), Sender: textOrNull(e.Sender), Source: string(e.Source), CreatedAt: timestamp(e.CreatedAt)}
	}
	writeJSON(c, http.StatusOK, view)
}

// sender returns the parameter sender; nil when it is missing.
func (q *query) sender() *string {
	text := q.Get("sender")
	if text == "" {
		return nil
	}
	if !isSender(text) {
		q.add(senderInvalid)
	}
	return &text
}

// addOptOuts is POST /v1/opt-outs: one entry, or up to 500.
func (a *API) addOptOuts(c *gin.Context) {
	_, fields, done, ok := a.body(c)
	if !ok {
		return
	}
	defer done()
	entries, many, p := a.readOptOuts(fields)
	if !p.none() {
		done()
		if many {
			p.refuseBatch(c)
		} else {
			p.refuseFirst(c)
		}
		return
	}
	done()
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	if !ownsSenders(company, entries) {
		// A sender that was created a moment ago may be missing from the cached company.
		fresh, err := a.accounts.Fresh(c.Request.Context(), caller(c))
		switch {
		case errors.Is(err, accounts.ErrUnauthenticated):
			writeRefusal(c, unauthenticatedCaller)
			return
		case err != nil:
			a.writeUnavailable(c, "reading senders", err)
			return
		case fresh.Company == nil || !ownsSenders(fresh.Company, entries):
			a.writeError(c, "adding opt-outs", intake.RefuseSenderUnknown)
			return
		}
	}
	leave, ok := a.enterLookup(c)
	if !ok {
		return
	}
	defer leave()
	added, err := a.handsets.OptOutWithin(background(c), sms.CompanyID(company.ID), entries)
	switch {
	case errors.Is(err, handsets.ErrListFull):
		writeRefusal(c, optOutsFull)
	case err != nil:
		a.writeUnavailable(c, "adding opt-outs", err)
	default:
		writeJSON(c, http.StatusOK, optOutsAdded{Added: added, Unchanged: int64(len(entries)) - added})
	}
}

func ownsSenders(company *accounts.Company, entries []handsets.OptOut) bool {
	for _, e := range entries {
		if _, own := company.Senders[e.Sender]; e.Sender != "" && !own {
			return false
		}
	}
	return true
}

// readOptOuts reads phone_number and sender, or the list opt_outs of such objects
// (many).
func (a *API) readOptOuts(fields value) (entries []handsets.OptOut, many bool, p problems) {
	var number, name, list value
	for key, v := range fields.members() {
		switch key {
		case "phone_number":
			number = v
		case "sender":
			name = v
		case "opt_outs":
			list, many = v, !v.isNull()
		}
	}
	if !many {
		e := handsets.OptOut{Source: handsets.ByAPI}
		var wrong *refusal
		if e.Number, wrong = a.number(number, numberRequired, numberInvalid); wrong != nil {
			p.add(wrong)
		}
		if e.Sender, wrong = optionalSender(name, senderInvalid); wrong != nil {
			p.add(wrong)
		}
		return []handsets.OptOut{e}, false, p
	}
	switch n := length(list); {
	case n == 0:
		p.add(optOutsEmpty)
	case n > maxItems:
		p.add(optOutsMany)
	default:
		entries = make([]handsets.OptOut, 0, n)
		for item := range list.elements() {
			entries = append(entries, a.readOptOut(item, len(entries), &p))
		}
	}
	return entries, true, p
}

func (a *API) readOptOut(item value, index int, p *problems) handsets.OptOut {
	e := handsets.OptOut{Source: handsets.ByAPI}
	var number, name value
	for key, v := range item.members() {
		switch key {
		case "phone_number":
			number = v
		case "sender":
			name = v
		}
	}
	var wrong *refusal
	if e.Number, wrong = a.number(number, optOutNumberRequired, optOutNumberInvalid); wrong != nil {
		p.addItem(wrong, "opt_outs", index, "phone_number")
	}
	if e.Sender, wrong = optionalSender(name, optOutSenderInvalid); wrong != nil {
		p.addItem(wrong, "opt_outs", index, "sender")
	}
	return e
}

// optionalSender reads a sender's name; "" when it is missing.
func optionalSender(v value, invalid *refusal) (name string, wrong *refusal) {
	if isMissing(v) {
		return "", nil
	}
	s, ok := v.text()
	if !ok || !isSender(s) {
		return "", invalid
	}
	return s, nil
}

// removeOptOut is DELETE /v1/opt-outs/{phone_number}.
func (a *API) removeOptOut(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	q := readQuery(c, "sender")
	sender := q.sender()
	number, valid := a.opts.Plan.Parse(c.Param("id"))
	if !valid {
		q.add(numberInvalid)
	}
	if !q.none() {
		q.refuseFirst(c)
		return
	}
	removed, err := a.handsets.OptIn(background(c), sms.CompanyID(company.ID), number, sender)
	switch {
	case err != nil:
		a.writeUnavailable(c, "removing opt-outs", err)
	case removed == 0:
		writeRefusal(c, notFound)
	default:
		writeJSON(c, http.StatusOK, optOutsRemoved{removed})
	}
}

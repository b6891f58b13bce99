package api

import (
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
func (a *API) listOptOuts(c *gin.Context) (page[optOutView], error) {
	q := readQuery(c, optOutList)
	filter := handsets.OptOutFilter{Number: a.phoneNumber(q), Sender: q.sender()}
	if err := q.page(); err != nil {
		return page[optOutView]{}, err
	}
	rows, next, err := a.Handsets.OptOuts(c.Request.Context(), companyID(c), filter, q.before, q.limit)
	return pageOf(q, rows, next, err, func(e *handsets.OptOut) optOutView {
		return optOutView{PhoneNumber: string(e.Number), Sender: orNull(e.Sender), Source: string(e.Source),
			CreatedAt: timestamp(e.CreatedAt)}
	})
}

// sender returns the parameter sender; nil when it is missing.
func (q *query) sender() *string {
	text := q.Get("sender")
	if text == "" {
		return nil
	}
	if !sms.ValidSender(text) {
		q.add(senderInvalid)
	}
	return &text
}

// addOptOuts is POST /v1/opt-outs: one entry, or up to 500.
func (a *API) addOptOuts(c *gin.Context) {
	f, done, ok := a.fieldsOf(c)
	if !ok {
		return
	}
	entries, p := a.readOptOuts(f)
	done()
	invalid := p.ofBatch()
	if f.optOuts.isNull() {
		invalid = p.first()
	}
	if invalid != nil {
		a.writeError(c, invalid)
		return
	}
	if a.needCompany(c); c.IsAborted() {
		return
	}
	if !ownsSenders(caller(c).Company, entries) {
		// The cached company may lack a sender that was created a moment ago.
		fresh, err := a.Holders.Fresh(c.Request.Context(), caller(c))
		if err == nil && (fresh.Company == nil || !ownsSenders(fresh.Company, entries)) {
			err = intake.RefuseSenderUnknown
		}
		if err != nil {
			a.writeError(c, err)
			return
		}
	}
	leave, ok := a.enterLookup(c)
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := background(c)
	defer cancel()
	var added int64
	err := a.Companies.NoteOptOuts(ctx, int64(companyID(c)))
	if err == nil {
		added, err = a.Handsets.OptOutWithin(ctx, companyID(c), entries)
	}
	if err != nil {
		a.writeError(c, err)
		return
	}
	writeJSON(c, http.StatusOK, optOutsAdded{Added: added, Unchanged: int64(len(entries)) - added})
}

func ownsSenders(company *accounts.Company, entries []handsets.OptOut) bool {
	for _, e := range entries {
		if _, own := company.Senders[e.Sender]; e.Sender != "" && !own {
			return false
		}
	}
	return true
}

// readOptOuts reads phone_number and sender, or the list opt_outs of such objects.
func (a *API) readOptOuts(f fields) (entries []handsets.OptOut, p problems) {
	if f.optOuts.isNull() {
		return []handsets.OptOut{{Source: handsets.ByAPI, Number: p.number(a.opts.Plan, f.phoneNumber, numberRequired,
			numberInvalid),
			Sender: p.sender(f.sender, nil, senderInvalid)}}, p
	}
	return readList(&p, f.optOuts, optOutsEmpty, optOutsMany, func(item *fields) handsets.OptOut {
		return handsets.OptOut{Source: handsets.ByAPI,
			Number: p.number(a.opts.Plan, item.phoneNumber, ofOptOuts.numberRequired, ofOptOuts.numberInvalid),
			Sender: p.sender(item.sender, nil, optOutSenderInvalid)}
	}), p
}

// removeOptOut is DELETE /v1/opt-outs/{phone_number}.
func (a *API) removeOptOut(c *gin.Context) (optOutsRemoved, error) {
	q := readParameters(c, "sender")
	sender := q.sender()
	number, valid := a.opts.Plan.Parse(c.Param("id"))
	if !valid {
		q.add(numberInvalid)
	}
	if err := q.first(); err != nil {
		return optOutsRemoved{}, err
	}
	ctx, cancel := background(c)
	defer cancel()
	removed, err := a.Handsets.OptIn(ctx, companyID(c), number, sender)
	if err == nil && removed == 0 {
		err = notFound
	}
	return optOutsRemoved{removed}, err
}

package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// inboundView is a message from a handset.
type inboundView struct {
	InboundID  int64   `json:"inbound_id"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	Message    *string `json:"message"`
	ReceivedAt string  `json:"received_at"`
}

// inboundPage is a page of messages from handsets.
type inboundPage struct {
	Data       []inboundView `json:"data"`
	NextCursor *string       `json:"next_cursor"`
}

func viewOfInbound(m *handsets.Message) inboundView {
	return inboundView{InboundID: m.ID, From: m.From, To: m.To, Message: m.Body, ReceivedAt: timestamp(m.At)}
}

// listInbound is GET /v1/inbound.
func (a *API) listInbound(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	q := readQuery(c, inboundFilters.names()...)
	filter := handsets.Filter{Number: a.numberAsked(q), From: q.instant("from", fromInvalid), To: q.instant("to", toInvalid)}
	limit, before := q.page(inboundFilters)
	if !q.none() {
		q.refuseFirst(c)
		return
	}
	page, next, err := a.handsets.List(c.Request.Context(), sms.CompanyID(company.ID), filter, before, limit)
	switch {
	case errors.Is(err, handsets.ErrNotFound): // where the cursor stood: erased or forgotten meanwhile
		q.add(cursorInvalid)
		q.refuseFirst(c)
		return
	case err != nil:
		a.writeUnavailable(c, "listing messages from handsets", err)
		return
	}
	view := inboundPage{Data: make([]inboundView, len(page)), NextCursor: inboundFilters.next(q, next)}
	for i := range page {
		view.Data[i] = viewOfInbound(&page[i])
	}
	writeJSON(c, http.StatusOK, view)
}

// getInbound is GET /v1/inbound/{id}.
func (a *API) getInbound(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok || !noParameters(c) {
		return
	}
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 {
		writeRefusal(c, notFound)
		return
	}
	m, err := a.handsets.Message(c.Request.Context(), sms.CompanyID(company.ID), id)
	switch {
	case errors.Is(err, handsets.ErrNotFound):
		writeRefusal(c, notFound)
	case err != nil:
		a.writeUnavailable(c, "looking up a message from a handset", err)
	default:
		writeJSON(c, http.StatusOK, viewOfInbound(&m))
	}
}

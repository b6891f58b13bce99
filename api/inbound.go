package api

import (
	"errors"
	"strconv"

	"github.com/gin-gonic/gin"

	"intumwa/inbound/handsets"
)

// inboundView is a message from a handset.
type inboundView struct {
	InboundID  int64   `json:"inbound_id"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	Message    *string `json:"message"`
	ReceivedAt string  `json:"received_at"`
}

func viewOfInbound(m *handsets.Message) inboundView {
	return inboundView{InboundID: m.ID, From: m.From, To: m.To, Message: m.Body, ReceivedAt: timestamp(m.At)}
}

// listInbound is GET /v1/inbound.
func (a *API) listInbound(c *gin.Context) (page[inboundView], error) {
	q := readQuery(c, inboundList)
	filter := handsets.Filter{Senders: a.inboundNumbers(q), From: q.instant("from", fromInvalid),
		To: q.instant("to", toInvalid)}
	if err := q.page(); err != nil {
		return page[inboundView]{}, err
	}
	rows, next, err := a.Handsets.List(c.Request.Context(), companyID(c), filter, q.before, q.limit)
	if errors.Is(err, handsets.ErrNotFound) { // the cursor's message was deleted meanwhile
		q.add(cursorInvalid)
		err = q.first()
	}
	return pageOf(q, rows, next, err, viewOfInbound)
}

// inboundNumbers returns the parameter phone_number, which may be of any country, in the forms that MOs have.
func (a *API) inboundNumbers(q *query) []string {
	if forms := handsets.Foreign(q.Get("phone_number")); forms != nil {
		return forms
	}
	if number := a.phoneNumber(q); number != "" {
		return []string{string(number)}
	}
	return nil
}

// getInbound is GET /v1/inbound/{id}.
func (a *API) getInbound(c *gin.Context) (view inboundView, err error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 {
		return view, notFound
	}
	m, err := a.Handsets.Message(c.Request.Context(), companyID(c), id)
	return viewOfInbound(&m), err
}

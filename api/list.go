package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/messages"
	"intumwa/sms"
)

// listView is a page of messages.
type listView struct {
	Data       []messageView `json:"data"`
	NextCursor *string       `json:"next_cursor"`
}

// listMessages is GET /v1/sms.
func (a *API) listMessages(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	q := readQuery(c, messageFilters.names()...)
	filter := messages.Filter{Status: q.status()}
	if text := q.Get("batch_id"); text != "" {
		id, err := ulid.ParseStrict(text)
		if err != nil {
			q.add(batchInvalid)
		}
		filter.Batch = &id
	}
	filter.Number = a.numberAsked(q)
	filter.From, filter.To = q.instant("from", fromInvalid), q.instant("to", toInvalid)
	filter.Reference = q.Get(filterReference)
	if wrong := referenceWrong.of(filter.Reference); wrong != nil {
		q.add(wrong)
	}
	a.showPage(c, company, q, messageFilters, filter)
}

// listBatchMessages is GET /v1/batches/{id}/messages.
func (a *API) listBatchMessages(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	q := readQuery(c, "limit", "cursor", "status", "phone_number")
	filter := messages.Filter{Status: q.status(), Number: a.numberAsked(q)}
	batch, ok := a.batchNamed(c, company)
	if !ok {
		return
	}
	filter.Batch = &batch.ULID
	q.Set("batch", batch.ULID.String()) // so that a cursor is valid for its own batch only
	a.showPage(c, company, q, batchFilters, filter)
}

// numberAsked returns the parameter phone_number; empty when it is missing.
func (a *API) numberAsked(q *query) sms.Number {
	text := q.Get("phone_number")
	if text == "" {
		return ""
	}
	number, ok := a.opts.Plan.Parse(text)
	if !ok {
		if number, ok = sms.ParseSandbox(text); !ok {
			q.add(numberInvalid)
		}
	}
	return number
}

// showPage responds with a page of a company's messages.
func (a *API) showPage(c *gin.Context, company *accounts.Company, q *query, of filters, filter messages.Filter) {
	limit, before := q.page(of)
	if !q.none() {
		q.refuseFirst(c)
		return
	}
	ctx := c.Request.Context()
	page, next, err := a.messages.List(ctx, sms.CompanyID(company.ID), filter, before, limit)
	if err != nil {
		a.writeUnavailable(c, "listing messages", err)
		return
	}
	ids := make([]int64, len(page))
	for i := range page {
		ids[i] = page[i].ID
	}
	histories, err := a.messages.HistoriesOf(ctx, ids)
	if err != nil {
		a.writeUnavailable(c, "listing messages", err)
		return
	}
	view := listView{Data: make([]messageView, len(page)), NextCursor: of.next(q, next)}
	for i := range page {
		view.Data[i] = viewOf(page[i], histories[page[i].ID])
	}
	writeJSON(c, http.StatusOK, view)
}

// instant parses RFC 3339, or a date, which is midnight UTC; "" is the zero time. An
// unescaped plus sign arrives as a space and is accepted.
func instant(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	t, ok := parseMoment(strings.Replace(text, " ", "+", 1))
	if !ok {
		var err error
		t, err = time.Parse(time.DateOnly, text)
		ok = err == nil
	}
	return t, ok && t.Year() >= 1 && t.Year() <= 9999
}

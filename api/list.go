package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
)

// Messages on a page.
const (
	defaultLimit = 25
	maxLimit     = 100
)

// Texts of a list's 422.
const (
	textStatusInvalid = "The status must be pending, sent or failed."
	textBatchInvalid  = "The batch_id must be a ULID."
	textFromInvalid   = "The from must be a date and time such as 2026-03-01T10:00:00+02:00."
	textToInvalid     = "The to must be a date and time such as 2026-03-01T10:00:00+02:00."
	textLimitInvalid  = "The limit must be between 1 and 100."
	textCursorInvalid = "The cursor is not valid."
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
	query := c.Request.URL.Query()
	filter, limit, before, problems := a.readList(query)
	if !problems.none() {
		problems.refuseFirst(c)
		return
	}
	ctx := c.Request.Context()
	page, next, err := a.messages.List(ctx, sms.CompanyID(company.ID), filter, before, limit)
	if err != nil {
		a.unavailable(c, "listing messages", err)
		return
	}
	ids := make([]int64, len(page))
	for i := range page {
		ids[i] = page[i].ID
	}
	journeys, err := a.messages.JourneysOf(ctx, ids)
	if err != nil {
		a.unavailable(c, "listing messages", err)
		return
	}
	view := listView{Data: make([]messageView, len(page))}
	for i := range page {
		view.Data[i] = viewOf(page[i], journeys[page[i].ID])
	}
	if next > 0 {
		cursor := messageFilters.cursor(query, next)
		view.NextCursor = &cursor
	}
	write(c, http.StatusOK, view)
}

var statuses = map[string]sms.Status{"pending": sms.Pending, "sent": sms.Sent, "failed": sms.Failed}

// readList reads the filters of a list. One that is given but empty is as none.
func (a *API) readList(query url.Values) (f messages.Filter, limit int, before int64, p problems) {
	limit = defaultLimit
	if text := query.Get("status"); text != "" {
		status, known := statuses[text]
		if !known {
			p.add("status", textStatusInvalid)
		}
		f.Status = &status
	}
	if text := query.Get("batch_id"); text != "" {
		id, err := ulid.ParseStrict(text)
		if err != nil {
			p.add("batch_id", textBatchInvalid)
		}
		f.Batch = &id
	}
	if text := query.Get("phone_number"); text != "" {
		number, ok := a.opts.Plan.Parse(text)
		if !ok {
			p.add("phone_number", textNumberInvalid)
		}
		f.Number = number
	}
	var ok bool
	if f.From, ok = instant(query.Get("from")); !ok {
		p.add("from", textFromInvalid)
	}
	if f.To, ok = instant(query.Get("to")); !ok {
		p.add("to", textToInvalid)
	}
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			p.add("limit", textLimitInvalid)
		}
		limit = n
	}
	if text := query.Get("cursor"); text != "" {
		if before, ok = messageFilters.read(query, text); !ok {
			p.add("cursor", textCursorInvalid)
		}
	}
	return f, limit, before, p
}

// instant reads RFC 3339, or a date for its first moment in UTC; the zero time
// when nothing is given. A plus that was not escaped arrives as a space.
func instant(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	text = strings.Replace(text, " ", "+", 1)
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, t.Year() >= 1 && t.Year() <= 9999
		}
	}
	return time.Time{}, false
}

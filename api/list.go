package api

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

// page is a page of a list.
type page[V any] struct {
	Data       []V     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// pageOf returns a page of rows; next is the row that begins the next page, 0 for none.
func pageOf[R, V any](q *query, rows []R, next int64, err error, view func(*R) V) (page[V], error) {
	p := page[V]{Data: make([]V, len(rows)), NextCursor: q.next(next)}
	for i := range rows {
		p.Data[i] = view(&rows[i])
	}
	return p, err
}

// listMessages is GET /v1/sms.
func (a *API) listMessages(c *gin.Context) (page[messageView], error) {
	q := readQuery(c, messageList)
	filter := lookup.Filter{Status: q.status()}
	if text := q.Get("batch_id"); text != "" {
		id, err := ulid.ParseStrict(text)
		if err != nil {
			q.add(batchInvalid)
		}
		filter.Batch = &id
	}
	filter.Number = a.phoneNumber(q)
	filter.From, filter.To = q.instant("from", fromInvalid), q.instant("to", toInvalid)
	filter.Reference, filter.CostCenter = q.Get(filterReference), q.Get(filterCostCenter)
	q.checkLabel(filter.Reference, referenceWrong)
	q.checkLabel(filter.CostCenter, costCenterWrong)
	return a.messages(c, q, filter)
}

// listBatchMessages is GET /v1/batches/{id}/messages.
func (a *API) listBatchMessages(c *gin.Context) (page[messageView], error) {
	q := readQuery(c, batchList)
	filter := lookup.Filter{Status: q.status(), Number: a.phoneNumber(q)}
	batch, err := a.batchNamed(c)
	if err != nil {
		return page[messageView]{}, err
	}
	filter.Batch = &batch.ULID
	q.of.name += batch.ULID.String() // binds the cursor to this batch
	return a.messages(c, q, filter)
}

// messages returns a page of the company's messages.
func (a *API) messages(c *gin.Context, q *query, filter lookup.Filter) (page[messageView], error) {
	if err := q.page(); err != nil {
		return page[messageView]{}, err
	}
	ctx := c.Request.Context()
	rows, next, err := a.Lookup.List(ctx, companyID(c), filter, q.before, q.limit)
	if err == nil {
		rows, err = a.accepted(ctx, rows)
	}
	var histories map[int64]lookup.History
	if err == nil {
		ids := make([]int64, len(rows))
		for i := range rows {
			ids[i] = rows[i].ID
		}
		histories, err = a.Lookup.HistoriesOf(ctx, ids)
	}
	return pageOf(q, rows, next, err, func(r *lookup.Record) messageView { return viewOf(*r, histories[r.ID]) })
}

const (
	doubtFor      = 10 * time.Minute // in which a client looks up what became of a send
	acceptedAfter = 5 * time.Second  // a look-up waits for the standby
)

// accepted returns the messages that may be listed. After the refusal outcome_unknown a client learns from the list
// whether its send was accepted, so a message of the last minutes that has not got further is listed only when the
// standby has it.
func (a *API) accepted(ctx context.Context, rows []lookup.Record) ([]lookup.Record, error) {
	young := postgres.Now().Add(-doubtFor)
	inDoubt := func(r *lookup.Record) bool { return r.Status == sms.Pending && r.CreatedAt.After(young) }
	var doubtful []ulid.ULID
	for i := range rows {
		if inDoubt(&rows[i]) {
			doubtful = append(doubtful, rows[i].ULID)
		}
	}
	if doubtful == nil {
		return rows, nil
	}
	ctx, cancel := context.WithTimeout(ctx, acceptedAfter)
	defer cancel()
	known, err := a.Messages.Known(ctx, doubtful)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(r lookup.Record) bool { return inDoubt(&r) && known[r.ULID] == 0 }), nil
}

// phoneNumber returns the parameter phone_number; empty when it is missing.
func (a *API) phoneNumber(q *query) sms.Number {
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

// instant parses RFC 3339, or a date, which is midnight in zone; "" is the zero time. An unescaped plus sign arrives as
// a space and is accepted.
func instant(text string, zone *time.Location) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	t, ok := parseMoment(strings.Replace(text, " ", "+", 1))
	if !ok {
		var err error
		t, err = time.ParseInLocation(time.DateOnly, text, zone)
		ok = err == nil
	}
	return t, ok && t.Year() >= 1 && t.Year() <= 9999
}

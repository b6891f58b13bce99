package api

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/sms"
)

// Rows on a page.
const (
	defaultLimit = 25
	maxLimit     = 100
)

// query are the parameters of a look-up, and what is wrong with them. One that is
// given but empty is as none; of one that is given twice the first counts.
type query struct {
	url.Values
	problems
}

// asked reads the parameters of a look-up that has these and no others.
func asked(c *gin.Context, known ...string) *query {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	q := &query{Values: values}
	if err != nil {
		q.add(queryInvalid)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			q.addNamed(parameterUnknown, "", name)
		}
	}
	return q
}

// unasked tells that a look-up without parameters has none, and answers the client
// itself when it has.
func unasked(c *gin.Context) bool {
	q := asked(c)
	if !q.none() {
		q.refuseFirst(c)
	}
	return q.none()
}

// status reads the status of messages.
func (q *query) status() *sms.Status {
	text := q.Get("status")
	if text == "" {
		return nil
	}
	status, known := statuses[text]
	if !known {
		q.add(statusInvalid)
	}
	return &status
}

var statuses = map[string]sms.Status{"pending": sms.Pending, "sent": sms.Sent, "failed": sms.Failed}

// instant reads a time; the zero one when none is given.
func (q *query) instant(name string, wrong *refusal) time.Time {
	t, ok := instant(q.Get(name))
	if !ok {
		q.add(wrong)
	}
	return t
}

// page reads how many rows a page has, and the row before which it begins: 0 for
// the newest.
func (q *query) page(of filters) (limit int, before int64) {
	limit = defaultLimit
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			q.add(limitInvalid)
		}
		limit = n
	}
	if text := q.Get("cursor"); text != "" {
		var ok bool
		if before, ok = of.read(q.Values, text); !ok {
			q.add(cursorInvalid)
		}
	}
	return limit, before
}

// names are the parameters of a list.
func (f filters) names() []string { return append([]string{"limit", "cursor"}, f[1:]...) }

// next is the cursor of the page after this one, nil when there is none.
func (f filters) next(q *query, last int64) *string {
	if last == 0 {
		return nil
	}
	cursor := f.cursor(q.Values, last)
	return &cursor
}

// messageName is one of the two names of a message: the ULID of the send result, or
// the number of the webhooks.
type messageName struct {
	ulid   ulid.ULID
	number int64 // 0: the ULID counts
}

// nameOf reads either.
func nameOf(text string) (name messageName, ok bool) {
	if id, err := ulid.ParseStrict(text); err == nil {
		return messageName{ulid: id}, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return messageName{number: n}, err == nil && n > 0 && text[0] != '+'
}

package api

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"io"
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

// query holds a look-up's parameters and their problems. An empty limit or cursor counts as missing; of a repeated
// parameter the first counts.
type query struct {
	url.Values
	problems

	of     list
	limit  int   // rows on the page
	before int64 // the page begins below this row; 0: it is the first
}

// readQuery reads the parameters of a list.
func readQuery(c *gin.Context, of list) *query {
	q := readParameters(c, append([]string{"limit", "cursor"}, of.filters...)...)
	q.of = of
	return q
}

// readParameters reads a look-up's parameters and refuses unknown ones. An empty filter is refused: it would filter
// nothing.
func readParameters(c *gin.Context, known ...string) *query {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	q := &query{Values: values}
	if err != nil {
		q.add(queryInvalid)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(known, name):
			q.addNamed(parameterUnknown, name)
		case !slices.Contains([]string{"limit", "cursor", "after", "wait"}, name) && blank(values.Get(name)):
			q.addNamed(parameterEmpty, name)
			values.Del(name)
		}
	}
	return q
}

// noParameters refuses requests with parameters.
func (a *API) noParameters(c *gin.Context) {
	if err := readParameters(c).first(); err != nil {
		a.writeError(c, err)
	}
}

// page reads limit and cursor. It returns the first problem of all parameters.
func (q *query) page() error {
	q.limit = defaultLimit
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			q.add(limitInvalid)
		}
		q.limit = n
	}
	if text := q.Get("cursor"); text != "" {
		var ok bool
		if q.before, ok = q.readCursor(text); !ok {
			q.add(cursorInvalid)
		}
	}
	return q.first()
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

// instant reads a time, or a date in UTC; the zero time when none is given.
func (q *query) instant(name string, wrong *refusal) time.Time {
	t, ok := instant(q.Get(name), time.UTC)
	if !ok {
		q.add(wrong)
	}
	return t
}

// next returns the cursor of the next page, nil when there is none.
func (q *query) next(last int64) *string {
	if last == 0 {
		return nil
	}
	cursor := q.cursor(last)
	return &cursor
}

// messageName is one of a message's two ids: the ULID of the send response, or the number used in webhooks.
type messageName struct {
	ulid   ulid.ULID
	number int64 // 0: the ULID counts
}

// nameOf parses either id.
func nameOf(text string) (name messageName, ok bool) {
	if id, err := ulid.ParseStrict(text); err == nil {
		return messageName{ulid: id}, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return messageName{number: n}, err == nil && n > 0 && text[0] != '+'
}

// list identifies the list of a cursor: its name and its filters.
type list struct {
	name    string
	filters []string
}

var (
	messageList = list{"messages", []string{"status", "batch_id", "phone_number", "from", "to", filterReference,
		filterCostCenter}}
	batchList    = list{"batch", []string{"status", "phone_number"}}
	deliveryList = list{"deliveries", []string{"state", "event", "message_id", "since"}}
	inboundList  = list{"inbound", []string{"phone_number", "from", "to"}}
	optOutList   = list{"opt-outs", []string{"phone_number", "sender"}}
	contactList  = list{"contacts", []string{"phone_number", "name", "group"}}
	groupList    = list{"groups", nil}
)

// filterReference filters by the customer's own name of a message.
const filterReference = "client_reference"

// filterCostCenter filters by the customer's own label.
const filterCostCenter = "cost_center"

const cursorSize = 8 + 4 // the last row's id and a hash of the filters

// cursor returns the opaque position where the next page begins.
func (q *query) cursor(last int64) string {
	var raw [cursorSize]byte
	binary.BigEndian.PutUint64(raw[:], uint64(last))
	binary.BigEndian.PutUint32(raw[8:], q.check(raw[:8]))
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// readCursor reads a cursor of the same list. The hash guards against mistakes only: a forged cursor still lists only
// the caller's own rows.
func (q *query) readCursor(cursor string) (last int64, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) != cursorSize {
		return 0, false
	}
	last = int64(binary.BigEndian.Uint64(raw))
	return last, last > 0 && binary.BigEndian.Uint32(raw[8:]) == q.check(raw[:8])
}

func (q *query) check(place []byte) uint32 {
	h := fnv.New32a()
	h.Write(place)
	_, _ = io.WriteString(h, q.of.name)
	for _, name := range q.of.filters {
		_, _ = io.WriteString(h, name+"\x00"+q.Get(name)+"\x00") // a hash never fails
	}
	return h.Sum32()
}

// cursorTo is cursor for a list that names its places itself.
func (q *query) cursorTo(place string) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32([]byte(place), q.check([]byte(place))))
}

// place reads a cursor of cursorTo; "" without one. Call it before page.
func (q *query) place() string {
	text := q.Get("cursor")
	if text == "" {
		return ""
	}
	q.Del("cursor")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if at := len(raw) - 4; err == nil && at > 0 && binary.BigEndian.Uint32(raw[at:]) == q.check(raw[:at]) {
		return string(raw[:at])
	}
	q.add(cursorInvalid)
	return ""
}

package api

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/sms"
	"intumwa/webhooks"
)

const (
	defaultEvents = 100 // on a page
	maxEvents     = 500
	maxWait       = 30 * time.Second

	waitsOfToken   = 4   // requests with one token that wait for events in this process
	waitsOfCompany = 20  // of one company
	waitsOfProcess = 500 // of all
	waitReserve    = 30 * time.Second
)

// expiredView is the response to a cursor behind which events were deleted.
type expiredView struct {
	message

	NextCursor string `json:"next_cursor"` // continues with the events that are left
}

// listEvents is GET /v1/events: the company's events after a cursor, oldest first. If there are none, it waits for one.
func (a *API) listEvents(c *gin.Context) {
	q := readParameters(c, "after", "limit", "wait")
	company := companyID(c)
	place, ok := readPlace(company, q.Get("after"))
	if !ok {
		q.add(afterInvalid)
	}
	limit, waits := q.whole("limit", defaultEvents, 1, maxEvents, eventLimitInvalid),
		q.whole("wait", 0, 0, int(maxWait/time.Second), waitInvalid)
	if err := q.first(); err != nil {
		a.writeError(c, err)
		return
	}
	until := time.Now().Add(time.Duration(waits) * time.Second)
	entered := false
	for {
		events, next, ok := a.pull(c, company, place, limit)
		switch {
		case !ok:
			return
		case len(events) > 0 || next != place || !time.Now().Before(until):
			writeBody(c, http.StatusOK, eventPage(events, company, next))
			return
		}
		if !entered {
			leave, refused := a.waits.enter(caller(c).TokenID, company)
			if refused != nil {
				setRetryAfter(c, 5*time.Second)
				writeRefusal(c, refused)
				return
			}
			defer leave()
			entered = true
			extend(c, time.Until(until)+waitReserve)
		}
		if !a.awaitEvents(c, company, place, until) {
			return
		}
	}
}

// whole reads a parameter that is a whole number; other is the value if it is absent.
func (q *query) whole(name string, other, least, most int, wrong *refusal) int {
	text := q.Get(name)
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		q.add(wrong)
	}
	return n
}

// pull reads a page while it holds a look-up slot. When it cannot, it writes the response and returns false.
func (a *API) pull(c *gin.Context, company sms.CompanyID, after webhooks.Place, limit int) (events []webhooks.Pulled,
	next webhooks.Place, ok bool) {
	leave, ok := a.enterLookup(c)
	if !ok {
		return nil, after, false
	}
	defer leave()
	events, next, err := a.Webhooks.Pull(c.Request.Context(), company, after, limit)
	if err == nil {
		return events, next, true
	}
	expired, gone := errors.AsType[*webhooks.PlaceExpired](err)
	switch {
	case gone:
		abortWithCode(c, cursorExpired.code)
		writeJSON(c, cursorExpired.status, expiredView{message{cursorExpired.text}, cursorAt(company, expired.Continue)})
	default:
		a.writeError(c, err)
	}
	return nil, after, false
}

// awaitEvents waits without a slot or a connection. Then the token must still be valid; otherwise it writes the
// response and returns false, also when the client has gone.
func (a *API) awaitEvents(c *gin.Context, company sms.CompanyID, after webhooks.Place, until time.Time) bool {
	start, ctx := time.Now(), c.Request.Context()
	a.metrics.waiting.Inc()
	ended := a.Webhooks.Await(ctx, company, after, until)
	a.metrics.waiting.Dec()
	c.Set(waitedKey, c.GetDuration(waitedKey)+time.Since(start))
	if ctx.Err() != nil {
		c.Abort()
		return false
	}
	if ended {
		writeBody(c, http.StatusOK, eventPage(nil, company, after))
		return false
	}
	token, _ := bearer(c.GetHeader("Authorization"))
	p, err := a.Holders.Authenticate(ctx, token)
	switch {
	case errors.Is(err, accounts.ErrUnauthenticated), err == nil &&
		(p.Company == nil || p.Company.ID != int64(company) || !p.Token.May(accounts.ScopeRead) ||
			!p.Token.From(c.ClientIP())):
		writeRefusal(c, unauthenticatedCaller)
		return false
	case err != nil:
		a.writeUnavailable(c, err)
		return false
	}
	return true
}

// extend lengthens the server's timeouts for a request. It does nothing where there is no connection.
func extend(c *gin.Context, by time.Duration) {
	control, at := http.NewResponseController(c.Writer), time.Now().Add(by)
	_ = control.SetReadDeadline(at) // at the old one, the server would take the client for gone
	_ = control.SetWriteDeadline(at)
}

// eventPage is the JSON of a page: each event is the body of its webhook, after its webhook-id.
func eventPage(events []webhooks.Pulled, company sms.CompanyID, next webhooks.Place) []byte {
	b := []byte(`{"data":[`)
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"id":"`...), events[i].WebhookID...)
		b = append(append(b, `",`...), events[i].Body[1:]...)
	}
	b = append(append(b, `],"next_cursor":"`...), cursorAt(company, next)...)
	return append(b, `"}`...)
}

const placeSize = 8 + 8 + 4 // both positions and a hash of them and the company

// cursorAt is the opaque cursor of a place among a company's events.
func cursorAt(company sms.CompanyID, at webhooks.Place) string {
	raw := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at.Position)), uint64(at.Lost))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(raw, placeCheck(company, raw)))
}

// readPlace reads a cursor; an empty one is before the first event. The hash guards against mistakes only: a forged
// cursor still reads only the caller's own events.
func readPlace(company sms.CompanyID, cursor string) (at webhooks.Place, ok bool) {
	if cursor == "" {
		return at, true
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) != placeSize || binary.BigEndian.Uint32(raw[16:]) != placeCheck(company, raw[:16]) {
		return at, false
	}
	at = webhooks.Place{Position: int64(binary.BigEndian.Uint64(raw)), Lost: int64(binary.BigEndian.Uint64(raw[8:]))}
	return at, at.Position >= 0 && at.Lost >= 0
}

func placeCheck(company sms.CompanyID, place []byte) uint32 {
	h := fnv.New32a()
	h.Write(binary.BigEndian.AppendUint64([]byte("events"), uint64(company)))
	h.Write(place)
	return h.Sum32()
}

// waits limits the requests that wait for events.
type waits struct {
	mu        sync.Mutex
	all       int
	tokens    map[int64]int
	companies map[sms.CompanyID]int
}

func newWaits() waits { return waits{tokens: map[int64]int{}, companies: map[sms.CompanyID]int{}} }

// enter counts a request until leave, or returns why it must not wait.
func (w *waits) enter(token int64, company sms.CompanyID) (leave func(), refused *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.tokens[token] >= waitsOfToken, w.companies[company] >= waitsOfCompany:
		return nil, tooManyWaiting
	case w.all >= waitsOfProcess:
		return nil, unavailable
	}
	w.all++
	w.tokens[token]++
	w.companies[company]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all--
		if w.tokens[token]--; w.tokens[token] == 0 {
			delete(w.tokens, token)
		}
		if w.companies[company]--; w.companies[company] == 0 {
			delete(w.companies, company)
		}
	}, nil
}

// documentedCursor is the cursor of the examples.
const documentedCursor = "AAABAAAAAAEAAAAAAAAAAAvZ7Ww"

package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/webhooks"
)

// eventList is a response of GET /v1/events.
type eventList struct {
	Data []struct {
		ID, Event, Timestamp string
		Data                 json.RawMessage
	}
	NextCursor string `json:"next_cursor"`
}

func (l eventList) ids() (ids []string) {
	for _, e := range l.Data {
		ids = append(ids, e.ID)
	}
	return ids
}

var eventID = regexp.MustCompile(`evt_[0-9]+`)

// enqueue records events of a customer's messages.
func (w *world) enqueue(customer string, from int64, n int) {
	w.t.Helper()
	events := make([]webhooks.Event, n)
	for i := range events {
		events[i] = webhooks.Event{CompanyID: w.company[customer], MessageID: from + int64(i), Name: webhooks.Sent,
			PhoneNumber: "+25761000001", At: time.Now()}
	}
	if err := postgres.InTx(w.t.Context(), w.pool,
		func(tx pgx.Tx) error { return w.deps.Webhooks.Enqueue(w.t.Context(), tx, events) }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// events asks for events as a customer.
func (w *world) events(customer, query string) (l eventList) {
	w.t.Helper()
	got := w.do(customer, "GET", "/v1/events?"+query, "")
	if err := json.Unmarshal([]byte(got.body), &l); err != nil || got.status != 200 {
		w.t.Fatalf("%s: %d %s", query, got.status, got.body)
	}
	return l
}

// TestEvents: events are fetched in pages behind a cursor, as their webhooks have them. Cursors are of one company, and
// wrong parameters are refused.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	if got := w.do("live", "GET", "/v1/events", ""); got.status != 200 ||
		!strings.HasPrefix(got.body, `{"data":[],"next_cursor":"`) {
		t.Fatalf("at first: %d %s", got.status, got.body)
	}
	w.enqueue("live", 1, 3)
	first := w.events("live", "limit=2")
	second := w.events("live", "limit=2&after="+first.NextCursor)
	last := w.events("live", "after="+second.NextCursor)
	if all := append(first.ids(), second.ids()...); len(first.Data) != 2 || len(all) != 3 || len(last.Data) != 0 ||
		last.NextCursor != second.NextCursor {
		t.Errorf("pages %v, %v, %v", first, second, last)
	}
	for range 2 { // it begins again from where it was
		if again := w.events("live", "limit=2&after="+first.NextCursor); !slices.Equal(again.ids(), second.ids()) {
			t.Errorf("again: %v", again)
		}
	}
	// Byte for byte the body of the delivery.
	page, _, err := w.deps.Webhooks.Pull(t.Context(), sms.CompanyID(w.company["live"]), webhooks.Place{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	body := string(page[0].Body)
	if got := w.do("live", "GET", "/v1/events?limit=1", ""); !strings.HasPrefix(got.body, `{"data":[{"id":"`+
		page[0].WebhookID+`",`+body[1:]+`],"next_cursor":"`) {
		t.Errorf("%s\nis not\n%s", got.body, body)
	}
	w.gets("live", "/v1/events?after=x", 422, failsFirst("after", "The after must be a next_cursor of these events."))
	w.gets("other", "/v1/events?after="+first.NextCursor, 422,
		failsFirst("after", "The after must be a next_cursor of these events."))
	w.gets("live", "/v1/events?after="+cursorAt(sms.CompanyID(w.company["live"]), webhooks.Place{Position: 1 << 60}), 410,
		`{"message":"Events after this cursor are gone.","next_cursor":"`+
			cursorAt(sms.CompanyID(w.company["live"]), webhooks.Place{})+`"}`)
	w.gets("live", "/v1/events?limit=501", 422, failsFirst("limit", "The limit must be between 1 and 500."))
	w.gets("live", "/v1/events?wait=31", 422, failsFirst("wait", "The wait must be between 0 and 30."))
	w.gets("live", "/v1/events?wait=1.5", 422, failsFirst("wait", "The wait must be between 0 and 30."))
	if got := w.do("live", "GET", "/v1/events?cursor="+first.NextCursor, ""); got.status != 422 ||
		got.header.Get("X-Error-Code") != "parameter_unknown" {
		t.Errorf("an unknown parameter: %d %s", got.status, got.body)
	}
	if got := w.do("", "GET", "/v1/events", ""); got.status != 401 {
		t.Errorf("without a token: %d", got.status)
	}
	// Deleted before it was fetched.
	w.exec(`UPDATE event_readers SET purged = (SELECT min(position) FROM events)`)
	got := w.do("live", "GET", "/v1/events", "")
	var expired expiredView
	if err := json.Unmarshal([]byte(got.body), &expired); err != nil || got.status != 410 ||
		got.header.Get("X-Error-Code") != "cursor_expired" {
		t.Fatalf("a cursor that has expired: %d %s", got.status, got.body)
	}
	if rest := w.events("live", "after="+expired.NextCursor); len(rest.Data) != 3 {
		t.Errorf("continued: %v", rest)
	}
}

// TestEventsWait: a request without events waits, without a slot of a look-up, until there is one, its time is over,
// its token is revoked, or the process ends; few of a token and of all.
func TestEventsWait(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	w := newWorld(t, worldOptions{Options: Options{Lookups: waitsOfToken - 1, LookupsPerUser: waitsOfToken - 1,
		Metrics: registry}}).settle()
	cursor := w.events("live", "").NextCursor
	waiting := func() (n int) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "intumwa_http_requests_waiting" {
				n = int(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return n
	}
	ask := func(ctx context.Context, customer string) (ended chan reply) {
		ended = make(chan reply, 1)
		before := waiting()
		go func() {
			req, _ := http.NewRequestWithContext(ctx, "GET", w.server.URL+"/v1/events?wait=30&after="+cursor, nil)
			req.Header.Set("Authorization", "Bearer "+w.tokens[customer])
			resp, err := w.server.Client().Do(req)
			if err != nil {
				ended <- reply{}
				return
			}
			defer resp.Body.Close()
			var text strings.Builder
			_, _ = bufio.NewReader(resp.Body).WriteTo(&text)
			ended <- reply{resp.StatusCode, resp.Header, text.String()}
		}()
		w.until("it waits", func() bool { return waiting() == before+1 })
		return ended
	}
	// A wait that is longer than the server's timeouts.
	short := httptest.NewUnstartedServer(w.handler)
	short.Config.ReadTimeout, short.Config.WriteTimeout = 1500*time.Millisecond, 1500*time.Millisecond
	short.Start()
	t.Cleanup(short.Close)
	req, _ := http.NewRequest("GET", short.URL+"/v1/events?wait=3&after="+cursor, nil)
	req.Header.Set("Authorization", "Bearer "+w.tokens["live"])
	start := time.Now()
	if resp, err := short.Client().Do(req); err != nil || resp.Body.Close() != nil || resp.StatusCode != 200 ||
		time.Since(start) < 3*time.Second {
		t.Errorf("after %s: %v, %v", time.Since(start), resp, err)
	}
	start = time.Now()
	if l := w.events("live", "wait=1&after="+cursor); len(l.Data) > 0 || time.Since(start) < time.Second {
		t.Errorf("after %s: %v", time.Since(start), l)
	}
	var all []chan reply
	for range waitsOfToken {
		all = append(all, ask(t.Context(), "live"))
	}
	if got := w.do("live", "GET", "/v1/events?wait=30&after="+cursor, ""); got.status != 429 ||
		got.header.Get("X-Error-Code") != "too_many_waiting" || got.header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", got.status, got.body)
	}
	w.gets("live", "/v1/balance", 200, `{"credits":1000,"unit":"credits"}`) // more wait than there are slots
	w.enqueue("live", 1, 1)
	for _, ended := range all {
		if got := <-ended; got.status != 200 || !strings.Contains(got.body, `"event":"sms.`) {
			t.Errorf("woken: %d %s", got.status, got.body)
		}
	}
	cursor = w.events("live", "after="+cursor).NextCursor
	ctx, leave := context.WithCancel(t.Context())
	ended := ask(ctx, "live")
	leave()
	<-ended
	w.until("the client's wait ends", func() bool { return waiting() == 0 })

	second, text, err := w.keys.CreateToken(t.Context(), "live@example.com", "second", accounts.TokenLimits{})
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["second"] = text
	ended = ask(t.Context(), "second")
	if err := w.keys.RevokeToken(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	w.deps.Holders.ForgetUser(fmt.Sprint(w.users["live"])) // the notice
	w.enqueue("live", 2, 1)
	if got := <-ended; got.status != 401 || strings.Contains(got.body, "evt_") {
		t.Errorf("revoked meanwhile: %d %s", got.status, got.body)
	}
	cursor = w.events("live", "after="+cursor).NextCursor
	ended = ask(t.Context(), "live")
	w.deps.Webhooks.EndWaits()
	if got := <-ended; got.status != 200 || got.body != `{"data":[],"next_cursor":"`+cursor+`"}` {
		t.Errorf("at the end of the process: %d %s", got.status, got.body)
	}
}

// TestWaits: few requests of a token and of a company wait, and few of all.
func TestWaits(t *testing.T) {
	w := newWaits()
	const tokens = waitsOfCompany / waitsOfToken
	var leave func()
	for company := range int64(waitsOfProcess / waitsOfCompany) {
		for n := range int64(waitsOfCompany) {
			var refused *refusal
			if leave, refused = w.enter(company*tokens+n/waitsOfToken, sms.CompanyID(company)); refused != nil {
				t.Fatalf("company %d: %v", company, refused)
			}
		}
		if _, refused := w.enter(-1, sms.CompanyID(company)); refused != tooManyWaiting {
			t.Errorf("one more of a company: %v", refused)
		}
	}
	if _, refused := w.enter(1, -1); refused != tooManyWaiting {
		t.Errorf("one more of a token: %v", refused)
	}
	if _, refused := w.enter(-1, -1); refused != unavailable {
		t.Errorf("one more of all: %v", refused)
	}
	leave()
	if _, refused := w.enter(-1, -1); refused != nil {
		t.Errorf("in its place: %v", refused)
	}
}

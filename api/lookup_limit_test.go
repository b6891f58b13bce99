package api

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/accounts/companies"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
)

// Slow look-ups do not delay sends. Too many of one user get 429, too many of all users 503, and one that exceeds its
// timeout 503.
func TestLookupsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	for _, name := range []string{"greedy", "other", "sender"} {
		w.customer(name, &companies.NewCompany{Approved: true})
	}
	w.sender("sender", "ACME", "BI", true)
	w.credits("sender", 1000)
	pool, err := postgres.Open(t.Context(), w.pool.Config().ConnString(),
		postgres.Options{MaxConns: 1, StatementTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	deps := w.deps
	deps.Messages, deps.Lookup, deps.Statistics = messages.New(pool), lookup.New(pool), statistics.New(pool)
	handler, err := New(deps, Options{Plan: w.plan, TestSender: testSender, Lookups: 1, LookupsPerUser: 1})
	if err != nil {
		t.Fatal(err)
	}
	do := func(name, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+w.tokens[name])
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		return answer
	}
	if code := do("greedy", "GET", "/v1/sms", "").Code; code != http.StatusOK {
		t.Fatalf("alone: %d", code)
	}

	// Lists read segments; sends do not.
	ctx := context.WithoutCancel(t.Context())
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE segments IN ACCESS EXCLUSIVE
		MODE`); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	list := func(name string) <-chan *httptest.ResponseRecorder {
		answers := make(chan *httptest.ResponseRecorder, 1)
		all.Go(func() { answers <- do(name, "GET", "/v1/sms", "") })
		return answers
	}
	first := list("greedy")
	for deadline := time.Now().Add(10 * time.Second); pool.Stat().AcquiredConns() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the first look-up is not at the database")
		}
		time.Sleep(time.Millisecond)
	}
	second, third := list("greedy"), list("other")
	for range 3 {
		answer := do("sender", "POST", "/v1/sms", `{"phone_number":"+25761234567","sender":"ACME","message":"x"}`)
		if answer.Code != http.StatusOK {
			t.Errorf("a send meanwhile: %d %s", answer.Code, answer.Body)
		}
	}
	select {
	case answer := <-first:
		t.Errorf("the first was answered while its table was locked: %d", answer.Code)
	default:
	}
	for _, c := range []struct {
		whose   string
		answers <-chan *httptest.ResponseRecorder
		code    int
		text    string
	}{
		{"the same user's second", second, http.StatusTooManyRequests, `{"message":"Too Many Attempts."}`},
		{"another user's", third, http.StatusServiceUnavailable, `{"message":"Service unavailable."}`},
		{"the first", first, http.StatusServiceUnavailable, `{"message":"Service unavailable."}`},
	} {
		if answer := <-c.answers; answer.Code != c.code || answer.Body.String() != c.text ||
			answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s, Retry-After %q; want %d %s", c.whose, answer.Code, answer.Body,
				answer.Header().Get("Retry-After"), c.code, c.text)
		}
	}
	all.Wait()
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"other", "greedy"} {
		answer := do(name, "GET", "/v1/sms", "")
		// A user's slot is free again some time after a slow look-up.
		for deadline := time.Now().Add(10 * time.Second); answer.Code == http.StatusTooManyRequests &&
			time.Now().Before(deadline); {
			answer = do(name, "GET", "/v1/sms", "")
		}
		if answer.Code != http.StatusOK {
			t.Errorf("%s afterwards: %d %s", name, answer.Code, answer.Body)
		}
	}
}

// A response that is not read takes no slot of the look-ups.
func TestUnreadListsTakeNoSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{Lookups: 2, LookupsPerUser: 2}})
	for _, name := range []string{"deaf", "other"} {
		w.customer(name, &companies.NewCompany{Approved: true})
	}
	request := func(name, path string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+w.tokens[name])
		return r
	}
	var all sync.WaitGroup
	defer all.Wait()
	read := make(chan struct{})
	defer close(read)
	writing := make(chan struct{}, 2)
	for range 2 {
		all.Go(func() {
			w.handler.ServeHTTP(&unread{httptest.NewRecorder(), writing, read}, request("deaf", "/v1/sms"))
		})
	}
	<-writing
	<-writing
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, request("other", "/v1/balance"))
	if answer.Code != http.StatusOK {
		t.Errorf("another user's look-up: %d %s", answer.Code, answer.Body)
	}
}

// unread is the connection of a client that reads only after it is closed.
type unread struct {
	*httptest.ResponseRecorder
	writing chan<- struct{}
	read    <-chan struct{}
}

func (u *unread) Write(p []byte) (int, error) {
	u.writing <- struct{}{}
	<-u.read
	return u.ResponseRecorder.Write(p)
}

// A body that is announced and not sent takes no slot of the look-ups, not even from its own user.
func TestSlowBodiesTakeNoSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{Lookups: 2, LookupsPerUser: 2}})
	for _, name := range []string{"dripper", "other"} {
		w.customer(name, &companies.NewCompany{Approved: true})
	}
	for _, start := range []string{"POST /v1/opt-outs", "PUT /v1/test-number", "POST /v1/test-number/verify",
		"POST /v1/sms/preview"} {
		var dripping []net.Conn
		for range 2 {
			conn := w.dial()
			dripping = append(dripping, conn)
			_, _ = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer "+
				"%s\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
				start, w.tokens["dripper"])
			if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
				// now the body is read
				t.Fatalf("%s: %q, %v", start, line, err)
			}
		}
		for _, name := range []string{"other", "dripper"} {
			if got := w.do(name, "GET", "/v1/balance", ""); got.status != http.StatusOK {
				t.Errorf("%s meanwhile, a look-up of %s: %d %s", start, name, got.status, got.body)
			}
		}
		for _, conn := range dripping {
			_ = conn.Close()
		}
	}
}

// Requests for one-time codes of one user wait for each other in the database, each with a connection, so few of them
// run at a time.
func TestCodesOfOneUserTakeFewConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{Lookups: 4, LookupsPerUser: 2}})
	w.customer("greedy", &companies.NewCompany{Approved: true})
	ctx := context.WithoutCancel(t.Context())
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT FROM users WHERE id = $1 FOR UPDATE`, w.users["greedy"]); err != nil {
		t.Fatal(err)
	}
	const perUser = 8
	answers := make(chan *httptest.ResponseRecorder, 2*perUser)
	var all sync.WaitGroup
	defer all.Wait()
	for i := range 2 * perUser {
		method, path, body := "PUT", "/v1/test-number", `{"phone_number":"+25761234567"}`
		if i%2 == 1 {
			method, path, body = "POST", "/v1/test-number/verify", `{"code":"123456"}`
		}
		all.Go(func() {
			r := httptest.NewRequest(method, path, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+w.tokens["greedy"])
			r.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			answers <- answer
		})
	}
	for range 2*perUser - 2 {
		select {
		case answer := <-answers:
			if code := answer.Header().Get("X-Error-Code"); answer.Code != http.StatusTooManyRequests ||
				code != "too_many_lookups" {
				t.Errorf("answered %d, %s", answer.Code, code)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("more than two requests wait for the user's row")
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
}

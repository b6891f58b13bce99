package dashboard

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/internal/audit"
)

// inside signs an administrator in, with a second factor, and enters the administrators' scope.
func (c *client) inside(email string) accounts.User {
	c.t.Helper()
	user := c.w.user(email, true)
	secret, err := c.w.accounts.BeginSecondFactor(c.t.Context(), user.ID)
	if err != nil {
		c.t.Fatal(err)
	}
	recovery, err := c.w.accounts.ConfirmSecondFactor(c.t.Context(), user.ID, codeOf(c.t, secret))
	if err != nil {
		c.t.Fatal(err)
	}
	c.signIn(email)
	c.wants(c.post("/sign-in/code", "code", recovery[0]), http.StatusSeeOther)
	c.wants(c.get("/admin"), http.StatusSeeOther) // the second factor of signing in does not open it
	c.wants(c.post("/admin/enter", "proof", recovery[1]), http.StatusSeeOther)
	c.wants(c.get("/admin"), http.StatusOK)
	return user
}

// recorded are the acts from the latest on.
func (w *world) recorded() []audit.Act {
	w.t.Helper()
	list, _, err := audit.List(w.t.Context(), w.pool, audit.Filter{}, 0, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// TestAdministratorsScope: an administrator outside the scope, or whose scope has run out, opens and changes nothing.
func TestAdministratorsScope(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	w.company("aline@example.com", "Isoko")
	c := newClient(w)
	admin := c.inside("root@example.com")
	w.exec(`INSERT INTO links (name, carrier) VALUES ('x', 'lumitel')`)
	for _, after := range []string{`UPDATE sessions SET admin_until = now() - interval '1 second'`, `UPDATE users SET administrator = false`} {
		w.exec(after)
		seen := 0
		for _, route := range w.d.handler.(*gin.Engine).Routes() {
			if !strings.HasPrefix(route.Path, "/admin") || route.Path == "/admin/leave" || route.Path == "/admin/enter" {
				continue
			}
			seen++
			a := c.do(route.Method, filledIn(route.Path), url.Values{"reason": {"x"}, "amount": {"1"}, "note": {"x"}, "once": {strings.Repeat("0", 32)}})
			if to := a.Header.Get("Location"); a.StatusCode != http.StatusNotFound && (a.StatusCode != http.StatusSeeOther || to != "/admin/enter") {
				t.Errorf("after %s: %s %s: %d %s", after, route.Method, route.Path, a.StatusCode, to)
			}
		}
		if seen < 20 {
			t.Errorf("only %d routes of the administration", seen)
		}
	}
	if done := w.recorded(); len(done) > 0 {
		t.Errorf("user %d did %+v", admin.ID, done)
	}
}

// TestGrantedOnce: a form of credits that is sent many times at once gives them once, and is recorded once.
func TestGrantedOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	company := w.company("aline@example.com", "Isoko")
	c := newClient(w)
	admin := c.inside("root@example.com")
	path := companyPath(company.ID)
	_, rest, found := strings.Cut(c.get(path).body, `name="once" value="`)
	once, _, _ := strings.Cut(rest, `"`)
	if !found || len(once) != 32 {
		t.Fatalf("the form's key: %q", once)
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			a := c.post(path+"/credits", "amount", "100", "note", "Invoice 1", "once", once)
			if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != path {
				t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
			}
		})
	}
	all.Wait()
	if credits, err := w.d.rooms.Ledger.Balance(t.Context(), company.ID); err != nil || credits != 100 {
		t.Errorf("%d credits, %v", credits, err)
	}
	done := w.recorded()
	if len(done) != 1 || done[0].Actor != audit.User(admin.ID) || done[0].Act != "credits.add" || int64(done[0].Company) != company.ID ||
		string(done[0].Before) != `{"credits": 0}` || string(done[0].After) != `{"note": "Invoice 1", "amount": 100, "credits": 100}` {
		t.Errorf("recorded: %+v", done)
	}
	fresh := strings.Repeat("ab", 16)
	for _, wrong := range [][]string{{"0", "x", fresh}, {"", "x", fresh}, {"1e9", "x", fresh}, {"1000000001", "x", fresh}, {"9223372036854775808", "x", fresh},
		{"5", "", fresh}, {"5", "a\x1bb", fresh}, {"5", strings.Repeat("x", 201), fresh}, {"5", "x", ""}, {"5", "x", "zz"}, {"5", "x", fresh + "00"}, {"-101", "x", fresh}} {
		c.wants(c.post(path+"/credits", "amount", wrong[0], "note", wrong[1], "once", wrong[2]), http.StatusUnprocessableEntity)
	}
	c.wants(c.post("/admin/companies/999/credits", "amount", "1", "note", "x", "once", fresh), http.StatusNotFound)
	if credits, err := w.d.rooms.Ledger.Balance(t.Context(), company.ID); err != nil || credits != 100 || len(w.recorded()) != 1 {
		t.Errorf("%d credits, %v", credits, err)
	}
}

// TestEveryActIsRecorded: with who did it, what was and what is; what is refused is not.
func TestEveryActIsRecorded(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	company := w.company("aline@example.com", "Isoko")
	sender, err := w.accounts.CreateSender(t.Context(), company.ID, "ISOKO", "BI", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := w.accounts.CreateToken(t.Context(), "aline@example.com", "Web shop")
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`INSERT INTO links (name, carrier) VALUES ('lumitel-1', 'lumitel')`)
	c := newClient(w)
	admin := c.inside("root@example.com")
	home, name, token := companyPath(company.ID), "/admin/senders/"+strconv.FormatInt(sender.ID, 10), "/admin/keys/"+strconv.FormatInt(key.ID, 10)
	for i, step := range []struct {
		path, act, before, after string
		pairs                    []string
	}{
		{home + "/approve", "company.set", `{"approved": false, "verified": false}`, `{"approved": true, "verified": false}`, nil},
		{home + "/verify", "company.set", `{"approved": true, "verified": false}`, `{"approved": true, "verified": true}`, nil},
		{home + "/withdraw", "company.set", `{"approved": true, "verified": true}`, `{"reason": "fraud", "approved": true, "verified": false}`, []string{"what", "verification", "reason", "fraud"}},
		{home + "/withdraw", "company.set", `{"approved": true, "verified": false}`, `{"reason": "fraud", "approved": false, "verified": false}`, []string{"what", "approval", "reason", "fraud"}},
		{name + "/approve", "sender.set", `{"name": "ISOKO", "approved": false}`, `{"name": "ISOKO", "approved": true}`, nil},
		{name + "/withdraw", "sender.set", `{"name": "ISOKO", "approved": true}`, `{"name": "ISOKO", "reason": "a bank's", "approved": false}`, []string{"reason", "a bank's"}},
		{token + "/revoke", "token.revoke", "", "", nil},
		{"/admin/links/lumitel-1/pause", "link.pause", `{"paused": false}`, `{"paused": true}`, nil},
		{"/admin/links/lumitel-1/resume", "link.resume", `{"paused": true}`, `{"paused": false}`, nil},
	} {
		c.wants(c.post(step.path, step.pairs...), http.StatusSeeOther)
		done := w.recorded()
		if len(done) != i+1 || done[0].Actor != audit.User(admin.ID) || done[0].Act != step.act ||
			step.before != "" && (string(done[0].Before) != step.before || string(done[0].After) != step.after) {
			t.Fatalf("%s: %d acts, the latest %s by %s: %s → %s", step.path, len(done), done[0].Act, done[0].Actor, done[0].Before, done[0].After)
		}
	}
	count := len(w.recorded())
	c.wants(c.post(home+"/withdraw", "what", "approval"), http.StatusUnprocessableEntity)
	for _, reason := range []string{" ", "a\u202eb", "a\x00b", "\xff", strings.Repeat("x", 201)} {
		c.wants(c.post(name+"/withdraw", "reason", reason), http.StatusUnprocessableEntity)
	}
	for _, path := range []string{"/admin/companies/999/approve", "/admin/senders/999/approve", "/admin/keys/999/revoke", "/admin/links/nobody/pause", "/admin/companies/x/verify"} {
		c.wants(c.post(path), http.StatusNotFound)
	}
	if n := len(w.recorded()); n != count {
		t.Errorf("what was refused is recorded: %d acts, then %d", count, n)
	}
	c.wants(c.get("/admin/acts?actor=root@example.com&company="+strconv.FormatInt(company.ID, 10)), http.StatusOK, "token.revoke", "fraud")
}

// TestMarkupAtAdministrators: what customers, carriers and handsets wrote is text on every page.
func TestMarkupAtAdministrators(t *testing.T) {
	w := newWorld(t, nil)
	user := w.user("aline@example.com", false)
	w.exec(`UPDATE users SET name = $1`, hostile)
	company := w.company("aline@example.com", hostile)
	if _, _, err := w.accounts.CreateToken(t.Context(), "aline@example.com", hostile); err != nil {
		t.Fatal(err)
	}
	message := w.accept(company.ID, user.ID, "+25761000001", hostile)
	w.exec(`UPDATE messages SET status = 2, failed_at = now(), failure_reason = $1`, hostile)
	w.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, carrier_id, key, submitted_at) SELECT id, 1, 1, $1, $1, $1, $1, now() FROM messages`, hostile)
	w.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, error, outcome) VALUES ($1, $1, $1, $1, $1, $1, $1, 'unmatched')`, hostile)
	w.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets) VALUES ($1, $1, $1, $1, 0, 0, $1, '')`, hostile)
	w.exec(`INSERT INTO links (name, carrier, last_error) VALUES ($1, $1, $1)`, hostile)
	w.exec(`INSERT INTO audit_log (actor, act, subject, company_id, before, after) VALUES ($1, $1, $1, 1, to_jsonb($1::text), jsonb_build_object($1::text, $1::text))`, hostile)
	w.exec(`INSERT INTO webhook_endpoints (company_id, url, secret) VALUES ($1, 'https://u:hush@x.example/' || $2::text || '?hush', 'hush')`, company.ID, hostile)
	c := newClient(w)
	c.inside("root@example.com")
	for _, path := range []string{"/admin", "/admin/companies", "/admin/companies?q=" + url.QueryEscape(hostile), companyPath(company.ID), "/admin/senders", "/admin/links",
		"/admin/receipts", "/admin/inbound", "/admin/acts", "/admin/acts?actor=" + url.QueryEscape(hostile), "/admin/acts?company=" + url.QueryEscape(hostile),
		"/admin/search?q=" + url.QueryEscape("x "+hostile), "/admin/search?q=61000001", "/admin/messages/" + message.String()} {
		a := c.get(path)
		if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		if strings.Contains(a.body, "<img") || strings.Contains(a.body, `"'&`) || strings.Contains(a.body, "hush") || strings.Contains(a.body, "⟦") || strings.Contains(a.body, "ZgotmplZ") {
			t.Errorf("%s shows what it must not:\n%s", path, a.body)
		}
	}
	if a := c.get("/admin/messages/" + message.String()); strings.Contains(a.body, "61000001") || strings.Contains(a.body, "Amahoro") {
		t.Error("a message's page shows its number or text")
	}
}

// stream opens the links' stream and answers its lines, until it ends.
func (c *client) stream(ctx context.Context) (status int, lines <-chan string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.w.url+"/admin/links/stream", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept-Language", "en")
	r.Header.Set("Accept", "text/event-stream")
	response, err := c.http.Do(r) //nolint:bodyclose // whoever reads its lines closes it
	if err != nil {
		c.t.Fatal(err)
	}
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		defer response.Body.Close()
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			out <- scanner.Text()
		}
	}()
	return response.StatusCode, out
}

// next waits for a line with a text in it; false when the stream ended before.
func next(t *testing.T, lines <-chan string, text string) bool {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, open := <-lines:
			if !open {
				return false
			}
			if strings.Contains(line, text) {
				return true
			}
		case <-late:
			t.Fatalf("no line says %q", text)
		}
	}
}

// ends waits for the end of a stream and answers how long that took.
func ends(t *testing.T, lines <-chan string) time.Duration {
	t.Helper()
	began := time.Now()
	for next(t, lines, "event:") {
		continue
	}
	return time.Since(began)
}

// TestStream: it tells what changes, outlives the server's read timeout and every request's, and ends with the scope, the
// session and the server; there are so many and no more.
func TestStream(t *testing.T) {
	w := newWorld(t, nil)
	w.exec(`WITH d AS (INSERT INTO dispatchers (name) VALUES ('x') RETURNING id), l AS (INSERT INTO links (name, carrier, state) VALUES ('lumitel-1', 'lumitel', 'bound'))
		INSERT INTO leases (name, holder) SELECT 'link lumitel-1', id FROM d`)
	c := newClient(w)
	admin := c.inside("root@example.com")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	c.wants(c.do(http.MethodHead, "/admin/links/stream", nil), http.StatusNotFound)
	c.wants(c.get("/admin/links/stream"), http.StatusNotFound)
	status, lines := c.stream(ctx)
	if status != http.StatusOK || !next(t, lines, `"state":"Bound"`) {
		t.Fatalf("the stream: %d", status)
	}
	w.exec(`UPDATE links SET paused = true`)
	if !next(t, lines, `"state":"Paused"`) {
		t.Error("the stream ended")
	}
	// Looking on by itself it keeps no session from growing old.
	var old bool
	w.exec(`UPDATE sessions SET seen_at = now() - interval '2 minutes'`)
	if open, err := w.accounts.AdminScopeOpen(ctx, c.cookie("intumwa-session"), time.Hour); err != nil || !open {
		t.Errorf("the scope is open: %v, %v", open, err)
	}
	if err := w.pool.QueryRow(ctx, `SELECT seen_at < now() - interval '1 minute' FROM sessions WHERE user_id = $1`, admin.ID).Scan(&old); err != nil || !old {
		t.Errorf("the stream is seen as the person: %v", err)
	}
	if open, err := w.accounts.AdminScopeOpen(ctx, c.cookie("intumwa-session"), time.Minute); err != nil || open {
		t.Errorf("an unused session's scope is open: %v, %v", open, err)
	}

	var others []<-chan string
	for range streamsOfUser - 1 {
		status, lines := c.stream(ctx)
		if status != http.StatusOK {
			t.Fatalf("another stream: %d", status)
		}
		others = append(others, lines)
	}
	if status, _ := c.stream(ctx); status != http.StatusTooManyRequests {
		t.Errorf("one stream too many: %d", status)
	}

	w.exec(`UPDATE sessions SET admin_until = now()`)
	for _, lines := range append(others, lines) {
		if took := ends(t, lines); took > 20*time.Second {
			t.Errorf("a stream outlived the scope by %v", took)
		}
	}
	w.exec(`UPDATE sessions SET admin_until = now() + interval '1 hour'`)
	w.soon("the ended streams are not counted any more", func() bool {
		w.d.streams.mu.Lock()
		defer w.d.streams.mu.Unlock()
		return w.d.streams.all == 0 && len(w.d.streams.of) == 0
	})

	_, lines = c.stream(ctx)
	next(t, lines, "event: links")
	if err := w.accounts.EndSessions(ctx, admin.ID, 0); err != nil {
		t.Fatal(err)
	}
	ends(t, lines)

	second := newClient(w)
	second.inside("second@example.com")
	_, lines = second.stream(ctx)
	next(t, lines, "event: links")
	w.d.EndStreams()
	ends(t, lines)
	if status, _ := second.stream(ctx); status != http.StatusTooManyRequests {
		t.Errorf("a stream begins in a server that shuts down: %d", status)
	}
}

// TestStreamOutlivesTimeouts: what bounds other requests does not end it; the server's end does, at once.
func TestStreamOutlivesTimeouts(t *testing.T) {
	w := newWorld(t, nil)
	w.exec(`WITH d AS (INSERT INTO dispatchers (name) VALUES ('x') RETURNING id), l AS (INSERT INTO links (name, carrier, state) VALUES ('lumitel-1', 'lumitel', 'bound'))
		INSERT INTO leases (name, holder) SELECT 'link lumitel-1', id FROM d`)
	c := newClient(w)
	c.inside("root@example.com") // which has its time: passwords are slow
	server := httptest.NewUnstartedServer(w.d)
	server.Config.ReadTimeout, server.Config.WriteTimeout = 2*time.Second, 2*time.Second
	server.Config.RegisterOnShutdown(w.d.EndStreams) // as the binary does
	server.Start()
	t.Cleanup(server.Close)
	w.url = server.URL
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, lines := c.stream(ctx)
	next(t, lines, "event: links")
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		if !next(t, lines, "event: links") {
			t.Fatal("the stream ended")
		}
	}
	grace, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := server.Config.Shutdown(grace); err != nil {
		t.Errorf("the stream held up the server's end: %v", err)
	}
	ends(t, lines)
}

package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/dashboard/web"
	"intumwa/internal/audit"
)

// inside signs an administrator in with the second factor and opens the administrator scope.
func (c *client) inside(email string) people.User {
	c.t.Helper()
	user := c.w.user(email, true)
	recovery := c.w.secondFactor(user)
	c.signIn(email)
	c.wants(c.post("/sign-in/code", "code", recovery[0]), http.StatusSeeOther)
	c.wants(c.get("/admin"), http.StatusSeeOther) // the second factor of the sign-in is not enough
	c.wants(c.post("/admin/enter", "proof", recovery[1]), http.StatusSeeOther)
	c.wants(c.get("/admin"), http.StatusOK)
	return user
}

// recorded returns the acts, newest first.
func (w *world) recorded() []audit.Act {
	w.t.Helper()
	list, _, err := audit.List(w.t.Context(), w.pool, audit.Filter{}, 0, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// TestAdministratorsScope: an administrator without an open scope can open and change nothing.
func TestAdministratorsScope(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	w.company("aline@example.com", "Isoko")
	c := newClient(w)
	admin := c.inside("root@example.com")
	w.exec(`INSERT INTO links (name, carrier) VALUES ('x', 'lumitel')`)
	for _, after := range []string{`UPDATE sessions SET admin_until = now() - interval '1 second'`,
		`UPDATE users SET administrator = false`} {
		w.exec(after)
		seen := 0
		for _, route := range w.d.site.Routes() {
			if !strings.HasPrefix(route.Path, "/admin") || route.Path == "/admin/leave" || route.Path == "/admin/enter" {
				continue
			}
			seen++
			a := c.do(route.Method, filledIn(route.Path), url.Values{"reason": {"x"}, "amount": {"1"}, "note": {"x"},
				"key": {strings.Repeat("0", 32)}})
			if to := a.Header.Get("Location"); a.StatusCode != http.StatusNotFound &&
				(a.StatusCode != http.StatusSeeOther || to != "/admin/enter") {
				t.Errorf("after %s: %s %s: %d %s", after, route.Method, route.Path, a.StatusCode, to)
			}
		}
		if seen < 19 {
			t.Errorf("only %d routes of the administration", seen)
		}
	}
	if done := w.recorded(); len(done) > 0 {
		t.Errorf("user %d did %+v", admin.ID, done)
	}
}

// TestCreditsAreGrantedOnce: a credits form that is submitted many times at once adds the credits once, with one act.
func TestCreditsAreGrantedOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	company := w.company("aline@example.com", "Isoko")
	c := newClient(w)
	admin := c.inside("root@example.com")
	path := web.CompanyPath(company.ID)
	_, rest, found := strings.Cut(c.get(path).body, `name="key" value="`)
	once, _, _ := strings.Cut(rest, `"`)
	if !found || len(once) != 32 {
		t.Fatalf("the form's key: %q", once)
	}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			a := c.post(path+"/credits", "amount", "100", "note", "Invoice 1", "key", once)
			if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != path {
				t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
			}
		})
	}
	all.Wait()
	w.credits(company.ID, 100)
	done := w.recorded()
	if len(done) != 1 || done[0].Actor != audit.User(admin.ID) || done[0].Act != "credits.add" ||
		int64(done[0].Company) != company.ID ||
		string(done[0].Before) != `{"credits": 0}` ||
		string(done[0].After) != `{"kind": "adjustment", "note": "Invoice 1", "amount": 100, "credits": 100}` {
		t.Errorf("recorded: %+v", done)
	}
	fresh := strings.Repeat("ab", 16)
	for _, wrong := range [][]string{{"0", "x", fresh}, {"", "x", fresh}, {"1e9", "x", fresh}, {"1000000001", "x", fresh},
		{"9223372036854775808", "x", fresh},
		{"5", "", fresh}, {"5", "a\x1bb", fresh}, {"5", strings.Repeat("x", 201), fresh}, {"-101", "x", fresh}} {
		c.wants(c.post(path+"/credits", "amount", wrong[0], "note", wrong[1], "key", wrong[2]),
			http.StatusUnprocessableEntity)
	}
	c.wants(c.post("/admin/companies/999/credits", "amount", "1", "note", "x", "key", fresh), http.StatusNotFound)
	if w.credits(company.ID, 100); len(w.recorded()) != 1 {
		t.Errorf("recorded: %+v", w.recorded())
	}
}

// TestSameSender: before an approval, the pages show other companies with the same sender ID, in any case.
func TestSameSender(t *testing.T) {
	w := newWorld(t, nil)
	var second accounts.Company
	for i, name := range []string{"Isoko", "Iwacu & Fils"} {
		email := strconv.Itoa(i) + "@example.com"
		w.user(email, false)
		second = w.company(email, name)
		if _, err := w.senders.CreateSender(t.Context(), second.ID, []string{"ISOKO", "Isoko"}[i], "BI", i == 0); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient(w)
	c.inside("root@example.com")
	for _, path := range []string{"/admin/senders", web.CompanyPath(second.ID)} {
		c.wants(c.get(path), http.StatusOK, "Iwacu &amp; Fils", "Also approved for: Isoko<")
	}
}

// TestEveryActIsRecorded: acts have their actor and the state before and after. A refused change is not recorded.
func TestEveryActIsRecorded(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	company := w.company("aline@example.com", "Isoko")
	sender, err := w.senders.CreateSender(t.Context(), company.ID, "ISOKO", "BI", false)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := w.keys.CreateToken(t.Context(), "aline@example.com", "Web shop", accounts.TokenLimits{})
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`INSERT INTO links (name, carrier) VALUES ('lumitel-1', 'lumitel')`)
	c := newClient(w)
	admin := c.inside("root@example.com")
	second := "/admin/users/" + strconv.FormatInt(w.user("second@example.com", true).ID, 10)
	home, name, token := web.CompanyPath(company.ID), "/admin/senders/"+strconv.FormatInt(sender.ID, 10), "/admin/keys/"+
		strconv.FormatInt(key.ID, 10)
	for i, step := range []struct {
		path, act, before, after string
		pairs                    []string
	}{
		{home + "/approve", "company.set", `{"approved": false, "verified": false, "company_id": 1, "smart_encoding": false}`,
			`{"approved": true, "verified": false, "company_id": 1, "smart_encoding": false}`, nil},
		{home + "/verify", "company.set", `{"approved": true, "verified": false, "company_id": 1, "smart_encoding": false}`,
			`{"approved": true, "verified": true, "company_id": 1, "smart_encoding": false}`, nil},
		{home + "/withdraw", "company.set", `{"approved": true, "verified": true, "company_id": 1, "smart_encoding": false}`,
			`{"reason": "fraud", "approved": true, "verified": false, "company_id": 1, "smart_encoding": false}`,
			[]string{"what", "verification", "reason", "fraud"}},
		{home + "/withdraw", "company.set", `{"approved": true, "verified": false, "company_id": 1, "smart_encoding": false}`,
			`{"reason": "fraud", "approved": false, "verified": false, "company_id": 1, "smart_encoding": false}`,
			[]string{"what", "approval", "reason", "fraud"}},
		{name + "/approve", "sender.set", `{"name": "ISOKO", "country": "BI", "purpose": "", "approved": false}`,
			`{"name": "ISOKO", "country": "BI", "purpose": "", "approved": true}`,
			[]string{"version", senders.SenderRequest{Sender: sender}.Version()}},
		{name + "/withdraw", "sender.refuse", `{"name": "ISOKO", "country": "BI", "purpose": "", "approved": true}`,
			`{"name": "ISOKO", "reason": "a bank's", "country": "BI", "purpose": "", "approved": false}`,
			[]string{"reason", "a bank's"}},
		{token + "/revoke", "token.revoke", "", "", nil},
		{"/admin/links/lumitel-1/pause", "link.pause", `{"paused": false}`, `{"paused": true}`, nil},
		{"/admin/links/lumitel-1/resume", "link.resume", `{"paused": true}`, `{"paused": false}`, nil},
		{second + "/disable", "user.disable",
			`{"email": "second@example.com", "user_id": 3, "disabled": false, "administrator": true}`,
			`{"email": "second@example.com", "reason": "left", "user_id": 3, "disabled": true, "administrator": true}`,
			[]string{"reason", "left"}},
		{second + "/enable", "user.enable", "", "", []string{"reason", "back"}},
		{second + "/reset", "user.reset", "", "", []string{"reason", "phone lost"}},
		{second + "/demote", "user.demote", "", "", []string{"reason", "left"}},
	} {
		c.wants(c.post(step.path, step.pairs...), http.StatusSeeOther)
		done := w.recorded()
		if len(done) != i+1 || done[0].Actor != audit.User(admin.ID) || done[0].Act != step.act ||
			step.before != "" && (string(done[0].Before) != step.before || string(done[0].After) != step.after) {
			t.Fatalf("%s: %d acts, the latest %s by %s: %s → %s", step.path, len(done), done[0].Act, done[0].Actor,
				done[0].Before, done[0].After)
		}
	}
	customer := newClient(w)
	customer.signIn("aline@example.com")
	customer.wants(customer.post("/keys", "name", "Till"), http.StatusSeeOther)
	for range 2 { // the second time nothing changes
		customer.wants(customer.post("/keys/2/revoke"), http.StatusSeeOther)
	}
	if got := strings.Join(w.acts(company.ID), " "); !strings.HasSuffix(got, " token.revoke token.create token.revoke") {
		t.Errorf("recorded: %s", got)
	}
	count := len(w.recorded())
	c.wants(c.post("/admin/users/"+strconv.FormatInt(admin.ID, 10)+"/demote", "reason", "x"),
		http.StatusUnprocessableEntity, "last administrator")
	c.wants(c.post("/admin/users/1/disable", "reason", "x"), http.StatusNotFound) // a customer
	c.wants(c.post(home+"/withdraw", "what", "approval"), http.StatusUnprocessableEntity)
	for _, reason := range []string{" ", "a\u202eb", "a\x00b", "\xff", strings.Repeat("x", 201)} {
		c.wants(c.post(name+"/withdraw", "reason", reason), http.StatusUnprocessableEntity)
	}
	for _, path := range []string{"/admin/companies/999/approve", "/admin/senders/999/approve", "/admin/keys/999/revoke",
		"/admin/links/unknown/pause", "/admin/smpp/999/unbind", "/admin/smpp/x/unbind", "/admin/links/no%00pe/pause",
		"/admin/companies/x/verify"} {
		c.wants(c.post(path), http.StatusNotFound)
	}
	if n := len(w.recorded()); n != count {
		t.Errorf("what was refused is recorded: %d acts, then %d", count, n)
	}
	c.wants(c.get("/admin/acts?actor=root@example.com&company="+strconv.FormatInt(company.ID, 10)), http.StatusOK,
		"token.revoke", "fraud")
}

// TestMarkupAtAdministrators: every page shows text from customers, carriers and handsets as text.
func TestMarkupAtAdministrators(t *testing.T) {
	w := newWorld(t, nil)
	user := w.user("aline@example.com", false)
	w.exec(`UPDATE users SET name = $1`, hostile)
	company := w.company("aline@example.com", hostile)
	if _, _, err := w.keys.CreateToken(t.Context(), "aline@example.com", hostile, accounts.TokenLimits{}); err != nil {
		t.Fatal(err)
	}
	message := w.accept(company.ID, user.ID, "+25761000001", hostile)
	w.exec(`UPDATE messages SET status = 2, failed_at = now(), failure_reason = $1`, hostile)
	w.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, carrier_id, key, submitted_at)
		SELECT id, 1, 1, $1, $1, $1, $1, now() FROM messages`, hostile)
	w.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, error, outcome)
		VALUES ($1, $1, $1, $1, $1, $1, $1, 'unmatched')`, hostile)
	w.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets, outcome)
		VALUES ($1, $1, $1, $1, 0, 0, $1, '', 'unrouted')`, hostile)
	w.exec(`INSERT INTO links (name, carrier, last_error) VALUES ($1, $1, $1)`, hostile)
	w.exec(`INSERT INTO audit_log (actor, act, subject, company_id, before, after)
		VALUES ($1, $1, $1, 1, to_jsonb($1::text), jsonb_build_object($1::text, $1::text))`, hostile)
	w.exec(`INSERT INTO webhook_endpoints (company_id, url, secret)
		VALUES ($1, 'https://u:canary@x.example/' || $2::text || '?canary', 'canary')`, company.ID, hostile)
	w.exec(`INSERT INTO company_facts (company_id, nif, trade_register, address, phone, contact, document, document_name,
		document_type, document_at)
		VALUES ($1, $2, $2, $2, $2, $2, '', $2, 'application/pdf', now())`, company.ID, hostile)
	w.exec(`INSERT INTO senders (company_id, name, purpose) VALUES ($1, 'ISOKO', $2)`, company.ID, hostile)
	w.exec(`INSERT INTO sender_carriers (sender_id, company_id, carrier, state, reason, changed_at)
		SELECT id, company_id, left($1, 60), 'sent', $1, now() - interval '8 days' FROM senders`, hostile)
	w.exec(`INSERT INTO sender_documents (registration_id, name, type, size, at, document) SELECT id, left($1, 100),
		'application/pdf', 0, now(), '' FROM sender_carriers`, hostile)
	c := newClient(w)
	c.inside("root@example.com")
	for _, path := range []string{"/admin", "/admin/companies", "/admin/companies?q=" + url.QueryEscape(hostile),
		web.CompanyPath(company.ID), "/admin/senders", "/admin/senders/1", "/admin/senders/late",
		"/admin/senders/1/letter?carrier=leo", "/admin/links",
		"/admin/money", "/admin/money?month=" + url.QueryEscape(hostile), "/admin/receipts", "/admin/inbound", "/admin/users",
		"/admin/acts", "/admin/acts?actor=" + url.QueryEscape(hostile), "/admin/acts?company=" + url.QueryEscape(hostile),
		"/admin/search?q=" + url.QueryEscape("x "+hostile), "/admin/search?q=61000001", "/admin/messages/" +
			message.String()} {
		a := c.get(path)
		if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
		if strings.Contains(a.body, "<img") || strings.Contains(a.body, `"'&`) || strings.Contains(a.body, "canary") ||
			strings.Contains(a.body, "⟦") || strings.Contains(a.body, "ZgotmplZ") {
			t.Errorf("%s shows what it must not:\n%s", path, a.body)
		}
	}
	if a := c.get("/admin/messages/" + message.String()); strings.Contains(a.body, "61000001") ||
		strings.Contains(a.body, "Amahoro") {
		t.Error("a message's page shows its number or text")
	}
}

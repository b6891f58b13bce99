package dashboard

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/people"
	"intumwa/dashboard/web"
	"intumwa/internal/testenv"
	"intumwa/messages/lookup"
	"intumwa/sms"
	"intumwa/webhooks"
)

// openTo are the routes without a session.
var openTo = map[string]bool{
	"GET /assets/:name": true, "GET /robots.txt": true, "POST /language": true, "GET /sent": true,
	"GET /sign-up": true, "POST /sign-up": true, "GET /sign-up/:token": true, "POST /sign-up/:token": true,
	"GET /sign-in": true, "POST /sign-in": true, "GET /sign-in/code": true, "POST /sign-in/code": true,
	"POST /sign-out": true,
	"GET /password":  true, "POST /password": true, "GET /password/:token": true, "POST /password/:token": true,
	"GET /invitation/:token": true, "POST /invitation/:token": true,
}

// keyText is an API key.
var keyText = regexp.MustCompile(`\d+\|\w{40}`)

func filledIn(path string) string {
	return strings.NewReplacer(":id", "1", ":token", "x", ":name", "x").Replace(path)
}

// TestEveryRoute: every route except the public ones requires a session, only administrators have the administration,
// and no other site can change anything.
func TestEveryRoute(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	stranger, customer := newClient(w), newClient(w)
	customer.signIn("aline@example.com")
	changes := 0
	for _, route := range w.d.site.Routes() {
		if route.Method != http.MethodGet {
			changes++
			for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
				{"Origin", "https://evil.example"}, {"Origin", "null"}} {
				if a := customer.do(route.Method, filledIn(route.Path), url.Values{"name": {"x"}},
					headers...); a.StatusCode != http.StatusForbidden {
					t.Errorf("%s %s with %v: %d", route.Method, route.Path, headers, a.StatusCode)
				}
			}
		}
		if openTo[route.Method+" "+route.Path] {
			continue
		}
		a := stranger.do(route.Method, filledIn(route.Path), url.Values{})
		if to := a.Header.Get("Location"); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/sign-in") {
			t.Errorf("%s %s without a session: %d %s", route.Method, route.Path, a.StatusCode, to)
		}
		if strings.HasPrefix(route.Path, "/admin") && route.Path != "/admin/leave" {
			if a := customer.do(route.Method, filledIn(route.Path), url.Values{}); a.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s for a customer: %d", route.Method, route.Path, a.StatusCode)
			}
		}
	}
	if changes < 15 {
		t.Errorf("only %d routes change anything", changes)
	}
	customer.wants(customer.get("/company"), http.StatusSeeOther) // no company was created
	customer.wants(customer.get("/account"), http.StatusOK)       // and the session goes on
}

// TestHeaders: every response restricts what a browser may load, store and frame.
func TestHeaders(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.SecureCookies = true })
	w.user("aline@example.com", false)
	c := newClient(w)
	for _, path := range []string{"/", "/sign-in", "/nowhere", "/robots.txt", w.d.assets.paths["style.css"]} {
		a := c.get(path)
		for name, want := range map[string]string{"Content-Security-Policy": web.Policy, "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "same-origin", "Strict-Transport-Security": "max-age=31536000"} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if caching := a.Header.Get("Cache-Control"); (caching == "no-store") == strings.HasPrefix(path, "/assets/") {
			t.Errorf("%s: Cache-Control %q", path, caching)
		}
	}
	a := c.post("/sign-in", "email", "aline@example.com", "password", testPassword)
	cookies := a.Cookies()
	if len(cookies) != 2 {
		t.Errorf("%d cookies", len(cookies))
	}
	for _, c := range cookies {
		if c.Name != "__Host-intumwa-session" && c.Name != "__Host-intumwa-device" || !c.Secure || !c.HttpOnly ||
			c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("a cookie: %v", c)
		}
	}
}

// TestFixation: a planted session is never signed in, and the token changes whenever its rights do.
func TestFixation(t *testing.T) {
	w := newWorld(t, nil)
	w.user("mallory@example.com", false)
	victim := w.user("aline@example.com", false)
	recovery := w.secondFactor(victim)
	mallory := newClient(w)
	mallory.signIn("mallory@example.com")
	planted := mallory.cookie("intumwa-session")

	c := newClient(w)
	c.plant(planted)
	c.wants(c.post("/sign-in", "email", "aline@example.com", "password", testPassword), http.StatusSeeOther)
	half := c.cookie("intumwa-session")
	if half == planted {
		t.Fatal("the planted token is used on")
	}
	if a := mallory.get("/account"); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the planted session lives on: %d", a.StatusCode)
	}
	c.wants(c.get("/account"), http.StatusSeeOther) // the second factor is missing
	c.wants(c.post("/keys", "name", "x"), http.StatusSeeOther)
	if tokens, err := w.keys.TokensOf(t.Context(), victim.ID); err != nil || len(tokens) > 0 {
		t.Errorf("half a session made %v (%v)", tokens, err)
	}
	c.wants(c.post("/sign-in/code", "code", recovery[0]), http.StatusSeeOther)
	if c.cookie("intumwa-session") == half {
		t.Error("the token from before the second factor is used on")
	}
	c.wants(c.get("/account"), http.StatusOK)
	c.plant(half)
	c.wants(c.get("/account"), http.StatusSeeOther)
}

// TestOtherCompanysRows: no address or form accepts the ids of another company's rows.
func TestOtherCompanysRows(t *testing.T) {
	w := newWorld(t, nil)
	aline, alineUser, _ := w.customer("aline", "ISOKO", 10)
	bob, bobUser, bobs := w.customer("bob", "BOBCO", 10)
	w.exec(`update users set test_number = '+25779000001', test_verified_at = now() where id = $1`, bobUser.ID)
	w.grant(bobs.ID, 7, "Bob's invoice")
	bob.wants(bob.post("/keys", "name", "Bob's"), http.StatusSeeOther)
	bob.wants(bob.get("/keys"), http.StatusOK, "Bob&#39;s")
	draft := bob.send("/campaigns", "BOBCO", "Bob's {{name}}", []byte("phone_number,name\n79111111,secret\n")).Header.Get(
		"Location")
	batch := bob.send("/campaigns", "BOBCO", "Bob's {{name}}", []byte("phone_number,name\n79111111,secret\n")).Header.Get(
		"Location")
	batch = bob.post(batch + "/send").Header.Get("Location")
	rows, _, err := w.d.deps.Lookup.List(t.Context(), sms.CompanyID(bobs.ID), lookup.Filter{}, 0, 1)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	w.exec(`insert into segments (message_id, segment, total, carrier, link, key, submitted_at)
		values ($1, 1, 1, 'leo', 'leo-1', 'bobsid', now())`, rows[0].ID)
	message, numbered := "/messages/"+rows[0].ULID.String(), "/messages?id="+strconv.FormatInt(rows[0].ID, 10)
	first := bob.key("/first")
	bob.wants(bob.post("/first", "key", first, "message", "Bob's first"), http.StatusSeeOther)
	w.exec(
		`insert into webhook_endpoints (company_id, url, secret, active) values ($1, 'https://bob.example', 'x', false)`,
		bobs.ID)
	w.exec(`insert into webhook_deliveries (company_id, id, at, phone_number, delivered, due, tries, given_up_at)
		values ($1, 800, now(), '+25779111111', false, 'infinity', 1, now())`, bobs.ID)
	w.writes(bobs, "+25779000001", "Bob's secret")
	group := fmt.Sprint(w.group(bobs.ID, "Bob's group"))
	contact := fmt.Sprint(w.contact(bobs.ID, "+25779111111", "Bob's secret"))
	imported := bob.upload("/contacts/import", nil, "tel;nom\n79111111;secret\n").Header.Get("Location")
	sessions, err := w.sessions.Sessions(t.Context(), bobUser.ID, 1<<40)
	if err != nil || len(sessions) != 1 {
		t.Fatal(sessions, err)
	}
	session := "/account/sessions/" + strconv.FormatInt(sessions[0].ID, 10) + "/end"
	for _, path := range []string{"GET " + message, "GET " + batch, "POST " + batch + "/cancel", "GET /first/" + first,
		"GET " + draft, "POST " + draft + "/send", "GET " + draft + "/lines.csv", "POST " + batch + "/continue",
		"POST " + draft + "/without", "POST " + draft + "/drop",
		"GET /deliveries/of/800", "POST /deliveries/of/800/resend", "POST " + session, "POST /keys/1/revoke",
		"GET /contacts/" + contact, "POST /contacts/" + contact, "POST /contacts/" + contact + "/delete",
		"POST /contacts/groups/" + group + "/delete", "GET " + imported, "GET " + imported + "/lines.csv",
		"POST " + imported + "/confirm", "POST " + imported + "/drop"} {
		method, path, _ := strings.Cut(path, " ")
		aline.wants(aline.do(method, path, url.Values{"company_id": {strconv.FormatInt(bobs.ID, 10)}}), http.StatusNotFound)
		for _, none := range []string{"0", "-1", "x", "99999999999999999999", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "1%20or%201=1"} {
			// the same response as for a missing row
			id := regexp.MustCompile(`[0-9a-f]{32}|[0-9A-Z]{26}|\d+`).FindString(path)
			aline.wants(aline.do(method, strings.Replace(path, id, none, 1), url.Values{}), http.StatusNotFound)
		}
	}
	aline.wants(aline.get(numbered), http.StatusNotFound)
	aline.wants(aline.get("/contacts?group="+group), http.StatusNotFound)
	aline.wants(aline.post("/contacts/groups/"+group, "name", "Aline's"), http.StatusNotFound)
	aline.wants(aline.post("/contacts/export.csv", "group", group), http.StatusNotFound)
	for _, do := range []string{"join", "leave", "delete"} {
		aline.post("/contacts/ticked", "do", do, "id", contact, "to", group, "group", group)
	}
	w.counts(1, `select count(*) from contacts where company_id = $1`, bobs.ID)
	w.counts(0, `select count(*) from contact_members`)
	for _, path := range []string{"/messages", "/messages?q=79111111", "/messages?q=bobsid", "/messages?q=" +
		rows[0].ULID.String(), "/messages?q=" + strings.TrimPrefix(batch, "/batches/"), "/messages?q=" +
		strconv.FormatInt(rows[0].ID, 10),
		"/messages?before=1000", "/messages?status=pending&company_id=2", "/campaigns", "/deliveries",
		"/deliveries?before=801", "/deliveries?state=failed", "/received", "/received?number=79000001",
		"/received?before=1000", "/opt-outs", "/verifications", "/contacts", "/contacts?q=79111111", "/contacts/groups",
		"/contacts/import", "/contacts/new",
		"/statement", "/statement/month", "/statement/month.csv", "/statement/print", "/keys", "/charts", "/quality",
		"/quality.csv", "/messages.csv", "/messages.csv?batch=" + strings.TrimPrefix(batch, "/batches/"), "/received.csv",
		"/statement.csv"} {
		if a := aline.get(path); a.StatusCode != http.StatusOK || strings.Contains(a.body, "secret") ||
			strings.Contains(a.body, "79111111<") || strings.Contains(a.body, "/of/800") || strings.Contains(a.body, "Bob") ||
			strings.Contains(a.body, "BOBCO") {
			t.Errorf("%s shows what is Bob's: %d\n%s", path, a.StatusCode, a.body)
		}
	}
	for _, sender := range []string{"BOBCO", testSender} { // Bob's sender and test number
		aline.wants(aline.post("/messages/new", "key", aline.key("/messages/new"), "sender", sender, "number", "79000001",
			"message", "x"), http.StatusUnprocessableEntity)
	}
	aline.wants(aline.post("/messages/new", "key", first, "sender", "ISOKO", "number", "79222222", "message",
		"Aline's own"), http.StatusSeeOther)
	if _, known, err := w.d.deps.Intake.Answered(t.Context(), alineUser.ID, web.KeyPrefix+first); !known || err != nil {
		t.Error("the key is not Aline's own:", known, err)
	}
	aline.wants(aline.post("/deliveries/recovery", "from", "2020-01-01T00:00"), http.StatusSeeOther)
	aline.wants(aline.post("/account/sign-out"), http.StatusSeeOther)
	for _, path := range []string{numbered, "/messages?q=bobsid"} {
		bob.wants(bob.get(path), http.StatusSeeOther)
	}
	for _, path := range []string{message, batch, "/first/" + first, draft, "/deliveries/of/800", "/account",
		"/contacts/" + contact, imported} {
		// Bob still has all of it
		bob.wants(bob.get(path), http.StatusOK)
	}
	w.credits(bobs.ID, 16)
	if n := w.inState(bobs.ID, webhooks.StateFailed); n != 1 {
		t.Errorf("%d failed deliveries of Bob", n)
	}
}

// TestAccountsAreNotRevealed: no response reveals whether an account exists.
func TestAccountsAreNotRevealed(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	c := newClient(w)
	for _, try := range []struct {
		path  string
		pairs []string
	}{
		{"/sign-in", []string{"password", "not the password"}},
		{"/sign-up", []string{"name", "Mallory"}},
		{"/password", nil},
	} {
		var pages [2]string
		for i, email := range []string{"aline@example.com", "unknown@example.com"} {
			a := c.post(try.path, append(try.pairs, "email", email)...)
			pages[i] = strconv.Itoa(a.StatusCode) + a.Header.Get("Location") + a.body
			pages[i] = strings.NewReplacer(url.QueryEscape(email), "X", email, "X").Replace(pages[i])
		}
		if pages[0] != pages[1] {
			t.Errorf("%s reveals: %s\n%s", try.path, pages[0], pages[1])
		}
	}
	// The account's owner gets two mails, one about the sign-up and one about the password, in either order.
	both := w.mail("aline@example.com", 0).Text + w.mail("aline@example.com", 1).Text
	if strings.Contains(both, "/sign-up/") || !strings.Contains(both, "/sign-in") ||
		!strings.Contains(both, "/password/") || strings.Contains(both, "Mallory") {
		t.Errorf("an account's owner gets %s", both)
	}
}

// TestBruteForce: tries of passwords, codes and mails are limited from any address, whether the account exists or not.
func TestBruteForce(t *testing.T) {
	const most, dayMost = 3, 5
	w := newWorld(t, func(r *Deps, _ *Options) {
		r.Tries.Codes = limit(t, dayMost, 24*time.Hour)
		r.Tries.Account = limit(t, most, time.Hour)
		r.Tries.Mails = limit(t, most, time.Hour)
		r.Tries.Address = limit(t, 50, time.Hour)
		r.Tries.Warnings = limit(t, 1, time.Hour)
	})
	u := w.user("aline@example.com", false)
	own := newClient(w)
	own.signIn("aline@example.com")
	own.post("/sign-out")
	for range most { // a right password does not count
		newClient(w).signIn("aline@example.com")
	}
	for _, email := range []string{"aline@example.com", "unknown@example.com", " Unknown@Example.com"} {
		c := newClient(w)
		last := 0
		for range most + 1 {
			last = c.post("/sign-in", "email", email, "password", "wrong password").StatusCode
		}
		if last != http.StatusTooManyRequests {
			t.Errorf("%s: %d after %d tries", email, last, most)
		}
	}
	if a := newClient(w).post("/sign-in", "email", "aline@example.com", "password",
		testPassword); a.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the right password past the limit: %d", a.StatusCode)
	}
	// The owner gets one mail, and can sign in from a known browser, which has its own limit.
	if m := w.mail("aline@example.com", 0); !strings.Contains(m.Text, w.url+"/password") {
		t.Errorf("the warning: %s", m.Text)
	}
	own.signIn("aline@example.com")
	own.post("/sign-out")
	for range most {
		own.wants(own.post("/sign-in", "email", "aline@example.com", "password", "wrong password"),
			http.StatusUnprocessableEntity)
	}
	own.wants(own.post("/sign-in", "email", "aline@example.com", "password", testPassword), http.StatusTooManyRequests)
	w.until("one warning was sent", func() bool {
		return w.count(`select count(*) from letters`) == 0 &&
			len(w.mails.Mails()) == 1
	})
	for range most {
		newClient(w).post("/password", "email", "aline@example.com")
	}
	c := newClient(w)
	c.wants(c.post("/password", "email", " Aline@Example.com"), http.StatusTooManyRequests, "in the last hour")
	c.wants(c.post("/sign-up", "email", "aline@example.com", "name", "Mallory"), http.StatusTooManyRequests,
		"in the last hour")

	codes := w.secondFactor(u)
	token, passed, err := w.sessions.OpenSession(t.Context(), u, people.Browser{})
	if err != nil || passed {
		t.Fatal(passed, err)
	}
	c.plant(token)
	for range most {
		c.wants(c.post("/sign-in/code", "code", "000000"), http.StatusUnprocessableEntity)
	}
	c.wants(c.post("/sign-in/code", "code", codes[0]), http.StatusTooManyRequests)
	w.d.deps.Tries.Account = nil // in the next quarter of an hour the daily limit of codes holds
	w.d.wire()
	for range dayMost - most {
		c.wants(c.post("/sign-in/code", "code", "000000"), http.StatusUnprocessableEntity)
	}
	c.wants(c.post("/sign-in/code", "code", codes[0]), http.StatusTooManyRequests)
}

// TestTwoStepNeedsThePassword: a session alone cannot turn two-step sign-in on. Turning it on ends the other sessions.
// Turning it off, or creating a key, mails the owner.
func TestTwoStepNeedsThePassword(t *testing.T) {
	w := newWorld(t, nil)
	c, u, _ := w.owner()
	other := newClient(w)
	other.signIn(u.Email)
	secret, err := w.signIn.BeginSecondFactor(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, present := range []string{"", "wrong"} {
		c.wants(c.post("/account/two-step", "code", codeOf(t, secret), "present", present), http.StatusUnprocessableEntity)
	}
	other.wants(other.get("/account"), http.StatusOK)
	c.wants(c.post("/account/two-step", "code", codeOf(t, secret), "present", testPassword), http.StatusSeeOther)
	recovery := regexp.MustCompile(`(\w{4}-){3}\w{4}`).FindString(c.get("/account/two-step").body)
	other.wants(other.get("/account"), http.StatusSeeOther)
	c.wants(c.post("/account/two-step/off", "proof", recovery), http.StatusSeeOther)
	c.wants(c.post("/keys", "name", "Web shop"), http.StatusSeeOther)
	both := w.mail(u.Email, 0).Text + w.mail(u.Email, 1).Text
	if l := w.d.words.Languages[0]; !strings.Contains(both, l.T("mail.twostep.text")) ||
		!strings.Contains(both, l.T("mail.key.text", "Web shop")) {
		t.Errorf("the mails to the owner: %s", both)
	}
}

// TestOpenRedirect: signing in redirects only to this site.
func TestOpenRedirect(t *testing.T) {
	for next, want := range map[string]string{
		"/keys": "/keys", "/admin?after=3": "/admin?after=3", "": "/", "keys": "/", "//evil.example": "/",
		"https://evil.example/": "/",
		"/\\evil.example":       "/", "\\\\evil.example": "/", "javascript:alert(1)": "/", "/\tx": "/",
		"///evil.example":  "/",
		"/%2fevil.example": "/", "http:evil": "/", "/x\r\nLocation: y": "/", "/" + strings.Repeat("x", 2000): "/",
	} {
		if got := web.LocalPath(next); got != want {
			t.Errorf("next %q leads to %q", next, got)
		}
	}
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	c := newClient(w)
	a := c.post("/sign-in?next="+url.QueryEscape("//evil.example"), "email", "aline@example.com", "password", testPassword)
	if to := a.Header.Get("Location"); to != "/" {
		t.Errorf("leads to %q", to)
	}
	if to := c.post("/language", "to", "en", "next", "//evil.example").Header.Get("Location"); to != "/" {
		t.Errorf("the language leads to %q", to)
	}
}

// TestMailedLinks: a mailed link works once, for its purpose, and opening it changes nothing.
func TestMailedLinks(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(w)
	path := func(email string, n int) string {
		return strings.TrimPrefix(linkInMail.FindString(w.mail(email, n).Text), w.url)
	}
	c.post("/sign-up", "name", "Aline", "email", "Aline@Example.com")
	c.wants(c.get("/sent"), http.StatusOK, "Aline@Example.com")
	if a := newClient(w).get("/sent?to=pay%40evil.example"); a.StatusCode != http.StatusOK ||
		strings.Contains(a.body, "evil") {
		t.Errorf("a link writes on the page: %d\n%s", a.StatusCode, a.body)
	}
	link := path("Aline@Example.com", 0)
	for range 3 {
		c.wants(c.get(link), http.StatusOK, "aline@example.com")
	}
	c.wants(c.get(strings.Replace(link, "/sign-up/", "/password/", 1)), http.StatusNotFound)
	c.wants(c.post(link, "password", testPassword), http.StatusSeeOther)
	c.wants(c.get("/account"), http.StatusOK, "aline@example.com")
	other := newClient(w)
	other.wants(other.get(link), http.StatusNotFound)
	other.wants(other.post(link, "password", testPassword), http.StatusNotFound)

	other.post("/password", "email", "aline@example.com")
	reset := path("aline@example.com", 0)
	other.wants(other.post(strings.Replace(reset, "/password/", "/sign-up/", 1), "password", testPassword+"!"),
		http.StatusNotFound)
	other.wants(other.post(reset, "password", "short"), http.StatusUnprocessableEntity)
	other.wants(other.post(reset, "password", testPassword+"!"), http.StatusSeeOther)
	c.wants(c.get("/account"), http.StatusSeeOther) // the old session has ended
	other.wants(other.get("/account"), http.StatusOK)
	other.wants(other.get(reset), http.StatusNotFound)

	other.post("/password", "email", "aline@example.com")
	old := path("aline@example.com", 1)
	w.exec(`update mail_links set expires_at = now()`)
	c.wants(c.post(old, "password", testPassword), http.StatusNotFound)
}

// TestOversizedRequests: oversized and malformed requests are refused.
func TestOversizedRequests(t *testing.T) {
	w := newWorld(t, nil)
	c := newClient(w)
	c.wants(c.post("/sign-in", "email", "a@example.com", "password", strings.Repeat("x", web.MaxForm)),
		http.StatusRequestEntityTooLarge)
	c.wants(c.post("/sign-in", "email", "a@example.com", "password", strings.Repeat("x", 2000)),
		http.StatusUnprocessableEntity)
	c.wants(c.post("/sign-up", "email", strings.Repeat("x", 300)+"@example.com", "name", "x"),
		http.StatusUnprocessableEntity)
	c.wants(c.post("/sign-up", "email", "a@example.com", "name", strings.Repeat("x", 201)), http.StatusUnprocessableEntity)
	c.wants(c.get("/sign-up/"+strings.Repeat("x", 5000)), http.StatusNotFound)
	c.wants(c.do(http.MethodDelete, "/sign-in", nil), http.StatusMethodNotAllowed)
	for _, email := range []string{"aline@example.com\x00", "aline\xff@example.com"} {
		// invalid text for the database: no account, and no outage
		c.wants(c.post("/sign-in", "email", email, "password", testPassword), http.StatusUnprocessableEntity)
	}
	for path, status := range map[string]int{"/sign-in": http.StatusOK, "/account": http.StatusSeeOther,
		"/none": http.StatusNotFound} {
		if a := c.do(http.MethodHead, path, nil); a.StatusCode != status || a.body != "" {
			t.Errorf("HEAD %s: %d with %d bytes, want %d and none", path, a.StatusCode, len(a.body), status)
		}
	}
}

// TestKeyIsShownOnce: a new key is shown once, and never stored in plain text.
func TestKeyIsShownOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.user("aline@example.com", false)
	c := newClient(w)
	c.signIn("aline@example.com")
	c.wants(c.post("/keys", "name", "Shop"), http.StatusSeeOther)
	var kept string
	if err := w.pool.QueryRow(t.Context(), `select once::text from sessions`).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	first := c.get("/keys")
	if !keyText.MatchString(first.body) {
		t.Fatalf("the key is not shown:\n%s", first.body)
	}
	if strings.Contains(kept, keyText.FindString(first.body)) {
		t.Error("the database keeps the key readable")
	}
	if second := c.get("/keys"); keyText.MatchString(second.body) {
		t.Error("the key is shown twice")
	}
}

// TestDatabaseAway: the pages report an outage, and the sign-in page still opens.
func TestDatabaseAway(t *testing.T) {
	var pool *pgxpool.Pool
	w := newWorld(t, func(r *Deps, _ *Options) {
		pool = testenv.Pool(t)
		on := accountsOn(pool)
		r.People, r.SignIn, r.Sessions, r.Companies, r.Keys, r.Holders, r.Senders, r.TestNumbers = on.People, on.SignIn,
			on.Sessions, on.Companies, on.Keys, on.Holders, on.Senders, on.TestNumbers
	})
	pool.Close()
	c := newClient(w)
	c.plant(strings.Repeat("x", 43))
	a := c.get("/keys")
	c.wants(a, http.StatusServiceUnavailable, "Temporarily unavailable")
	if a.Header.Get("Retry-After") == "" || len(a.Cookies()) > 0 {
		t.Errorf("%v", a.Header)
	}
	c.wants(c.get(w.d.assets.paths["style.css"]), http.StatusOK)
	c.wants(newClient(w).get("/sign-in"), http.StatusOK)
}

// TestPanic: a panic becomes an error page without details.
func TestPanic(t *testing.T) {
	var log logged
	w := newWorld(t, func(_ *Deps, o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w.d.site.GET("/panic/:id", w.d.site.Open(func(*web.Visit) error { panic("canary") }))
	c := newClient(w)
	a := c.get("/panic/secret")
	c.wants(a, http.StatusInternalServerError, "Something went wrong")
	if strings.Contains(a.body, "canary") {
		t.Error("the page has details")
	}
	if text := log.String(); !strings.Contains(text, "canary") || !strings.Contains(text, "attack_test.go") ||
		strings.Contains(text, "secret") {
		t.Errorf("the log has %s", text)
	}
}

// logged collects concurrent log lines.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

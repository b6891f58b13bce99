package dashboard

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"intumwa/accounts/companies"
	"intumwa/intake"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/sms"
)

var formKeyOnPage = regexp.MustCompile(`name="key" value="([0-9a-f]{32})"`)

// key returns the form key on a page.
func (c *client) key(path string) string {
	c.t.Helper()
	found := formKeyOnPage.FindStringSubmatch(c.get(path).body)
	if found == nil {
		c.t.Fatalf("%s has no key", path)
	}
	return found[1]
}

// TestSendOnce: a form sends one message however often it is submitted. A changed repetition gets an error.
func TestSendOnce(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 10)
	send := func(key, text string) answer {
		return c.post("/messages/new", "do", "send", "key", key, "sender", "ISOKO", "number", "79222222", "message", text)
	}
	key := c.key("/messages/new")
	first, second := send(key, "once"), send(key, "once")
	c.wants(first, http.StatusSeeOther)
	c.wants(second, http.StatusSeeOther)
	if first.Header.Get("Location") != second.Header.Get("Location") {
		t.Error("a double click sends twice")
	}
	changed := send(key, "twice")
	c.wants(changed, http.StatusConflict, "was already sent")
	next := formKeyOnPage.FindStringSubmatch(changed.body)
	if next == nil || next[1] == key {
		t.Fatal("the form keeps its key")
	}
	c.wants(send(next[1], "twice"), http.StatusSeeOther)
	c.wants(c.post("/messages/new", "do", "check", "key", c.key("/messages/new"), "sender", "ISOKO", "number", "79222222",
		"message", "been searched yet"), http.StatusOK)
	w.credits(company.ID, 8)
}

// TestRefusals: the pages refuse what the API refuses, in the user's language.
func TestRefusals(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 1)
	if _, err := w.senders.CreateSender(t.Context(), company.ID, "LATER", "BI", false); err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct{ sender, number, message, text string }{
		{"", "79222222", "x", "This field is required"},
		{"TOO-LONG-NAME", "79222222", "x", "1 to 11 letters and digits"},
		{"A B", "79222222", "x", "1 to 11 letters and digits"},
		{"ISOKO", "", "x", "This field is required"},
		{"ISOKO", "22222222", "x", "not a Burundi"},
		{"ISOKO", "29222222", "x", "No carrier serves"},
		{"ISOKO", "79222222", " \r\n ", "This field is required"},
		{"ISOKO", "79222222", "x\x00", "This field is required"},
		{"ISOKO", "79222222", "\xff", "contains invalid characters"},
		{"ISOKO", "79222222", strings.Repeat("é", 601), "at most 600"},
		{"OTHER", "79222222", "x", "no such sender ID"},
		{"LATER", "79222222", "x", "This sender ID is not approved yet"},
		{"ISOKO", "79222222", strings.Repeat("x", 161), "not have enough credits"},
		{testSender, "79222222", "x", "Verify a test number first"},
	} {
		a := c.post("/messages/new", "do", "send", "key", c.key("/messages/new"), "sender", try.sender, "number", try.number,
			"message", try.message)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, try.text) {
			t.Errorf("%+q: %d, without %q", try, a.StatusCode, try.text)
		}
	}
	if _, err := w.testNumbers.SetTestNumber(t.Context(), "aline@example.com", "+25779000001", true); err != nil {
		t.Fatal(err)
	}
	test := func(number, message string) answer {
		return c.post("/messages/new", "do", "send", "key", c.key("/messages/new"), "sender", testSender, "number", number,
			"message", message)
	}
	c.wants(test("79222222", "x"), http.StatusUnprocessableEntity, "to your verified test number only")
	c.wants(test("79000001", strings.Repeat("ê", 600)), http.StatusUnprocessableEntity, "quota is too small")
	if _, err := w.companies.SetCompany(t.Context(), company.ID,
		companies.CompanyChange{Approved: new(false)}); err != nil {
		t.Fatal(err)
	}
	c.wants(c.post("/messages/new", "do", "send", "key", c.key("/messages/new"), "sender", "ISOKO", "number", "79222222",
		"message", "x"),
		http.StatusUnprocessableEntity, "must be approved before it can send")
	w.credits(company.ID, 1)
}

// TestSendsAreLimited: pages and API share a user's limit of sends. A send that could not be stored can be submitted
// again.
func TestSendsAreLimited(t *testing.T) {
	var away *intake.Intake
	w := newWorld(t, func(r *Deps, _ *Options) {
		r.Sends = limit(t, 2, 0)
		pool := testenv.Pool(t)
		pool.Close()
		away = intake.New(pool, r.Holders, r.TestNumbers, messages.New(pool), nil, nil, intake.Options{})
	})
	c, _, company := w.customer("aline", "ISOKO", 10)
	key := c.key("/messages/new")
	send := func() answer {
		return c.post("/messages/new", "do", "send", "key", key, "sender", "ISOKO", "number", "79222222", "message", "kept")
	}
	here := w.d.deps.Intake
	w.d.deps.Intake = away
	w.d.wire()
	c.wants(send(), http.StatusServiceUnavailable, "Nothing was sent", key, ">\nkept</textarea>")
	w.d.deps.Intake = here
	w.d.wire()
	c.wants(send(), http.StatusSeeOther)
	c.wants(send(), http.StatusTooManyRequests, "within a minute")
	a := c.send("/campaigns", "ISOKO", "Bonjour {{prenom}}", []byte("phone_number;prenom\n79000000;Aline\n"))
	c.wants(c.post(a.Header.Get("Location")+"/send"), http.StatusTooManyRequests, "within a minute", "Bonjour Aline",
		"Send 1 message")
	c.wants(c.post("/messages/new", "do", "check", "message", "x"), http.StatusOK) // sends nothing
	w.credits(company.ID, 9)
}

// TestTestNumber: tries of a code and replacements of the number are limited.
func TestTestNumber(t *testing.T) {
	w := newWorld(t, nil)
	c, u, _ := w.customer("aline", "ISOKO", 0)
	c.wants(c.post("/test-number/verify", "code", "123456"), http.StatusUnprocessableEntity, "no code to confirm")
	c.wants(c.post("/test-number", "number", "29000001"), http.StatusUnprocessableEntity, "No carrier serves")
	c.wants(c.post("/test-number", "number", "79000001"), http.StatusSeeOther)
	a := c.post("/test-number", "number", "79000001")
	c.wants(a, http.StatusTooManyRequests)
	if !regexp.MustCompile(`Wait (60|5\d) seconds`).MatchString(a.body) {
		t.Errorf("it does not say how long to wait:\n%s", a.body)
	}
	for left := 4; left >= 0; left-- { // no code is tried twice
		a := c.post("/test-number/verify", "code", "00000"+strconv.Itoa(left))
		if a.StatusCode == http.StatusSeeOther {
			return // guessed, once in 200,000 runs
		}
		c.wants(a, http.StatusUnprocessableEntity, "Attempts left: "+strconv.Itoa(left))
	}
	c.wants(c.post("/test-number/verify", "code", "000009"), http.StatusUnprocessableEntity, "Too many wrong codes")
	for i := range 4 {
		w.exec(`update test_number_codes set created_at = created_at - interval '2 hours'`)
		w.exec(`update users set test_verified_at = now() where id = $1`, u.ID)
		a := c.post("/test-number", "number", "7900001"+strconv.Itoa(i))
		if i < 3 {
			c.wants(a, http.StatusSeeOther)
			continue
		}
		c.wants(a, http.StatusUnprocessableEntity, "can no longer be replaced")
	}
	a = c.get("/test-number")
	if strings.Contains(a.body, `name="number"`) || !strings.Contains(a.body, "0 left") {
		t.Errorf("the page offers another replacement:\n%s", a.body)
	}
}

// TestSearch: by number in any form, by day in Bujumbura, by state, page by page.
func TestSearch(t *testing.T) {
	w := newWorld(t, nil)
	c, u, company := w.customer("aline", "ISOKO", 0)
	var list []*messages.Message
	for i := range 60 {
		list = append(list, &messages.Message{CompanyID: company.ID, UserID: u.ID,
			Number: sms.Number("+257791000" + strconv.Itoa(10+i)), Body: "text " + strconv.Itoa(i) + "."})
	}
	ids := w.insert(list...)
	w.exec(`update messages set created_at = '2026-03-01 21:59:00+00' where id <= $1`, ids[9])
	w.exec(`update messages set created_at = '2026-03-01 22:01:00+00', status = 2, failed_at = now(),
		failure_reason = 'expired' where id > $1 and id <= $2`, ids[9], ids[19])
	shown := regexp.MustCompile(`>text (\d+)\.<`)
	for path, want := range map[string]int{"/messages": 60, "/messages?q=79100010": 1, "/messages?q=" +
		url.QueryEscape("+257 79 10 00 10"): 1, "/messages?q=79100099": 0,
		"/messages?from=2026-03-01&to=2026-03-01": 10, "/messages?from=2026-03-02&to=2026-03-02": 10,
		"/messages?status=failed": 10,
		"/messages?status=sent":   0, "/messages?status=failed&to=2026-03-01": 0, "/messages?q=none": 0,
		"/messages?before=-1": 60, "/messages?q=" + strings.Repeat("x", 200): 0, "/messages?q=" +
			strings.Repeat("x", 2000): 0} {
		seen := 0
		for _, page := range c.pages(path) {
			seen += len(shown.FindAllString(page.body, -1))
		}
		if seen != want {
			t.Errorf("%s shows %d messages, not %d", path, seen, want)
		}
	}
	c.wants(c.get("/messages?from=31.12.2026"), http.StatusUnprocessableEntity, "not a date")
	c.wants(c.get("/messages/"+list[12].ULID.String()), http.StatusOK, "It expired before it reached a carrier")
	// An eight-digit message_id may be a phone number: the page offers both.
	w.exec(`insert into messages (id, ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
		carrier)
		overriding system value values (79100010, gen_random_uuid(), $1, 1, '+25779111111', 'DEMO', 'numbered', 0, 1, false,
		'leo')`, company.ID)
	c.wants(c.get("/messages?q=79100010"), http.StatusOK, "also a message’s number")
	// Links have the message_id as a parameter. A carrier's id leads to its message.
	w.exec(`insert into segments (message_id, segment, total, carrier, link, carrier_id, key, submitted_at)
		values ($1, 1, 1, 'leo', 'leo-1', '00A5-7F', 'a5-7f', now())`, ids[3])
	for path, at := range map[string]string{"/messages?id=" + strconv.FormatInt(ids[5], 10): list[5].ULID.String(),
		"/messages?q=00A5-7F": list[3].ULID.String(), "/messages?q=a5-7f": list[3].ULID.String()} {
		if a := c.get(path); a.Header.Get("Location") != "/messages/"+at {
			t.Errorf("%s leads to %s, not to %s", path, a.Header.Get("Location"), at)
		}
	}
	c.wants(c.get("/messages?id=79100011"), http.StatusNotFound)
}

// TestCodeFails: the page reports an undeliverable code, and does not mistake another user's code for this one.
func TestCodeFails(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.customer("aline", "ISOKO", 0)
	other, u, _ := w.customer("bob", "BOB", 0)
	c.wants(c.post("/test-number", "number", "79000001"), http.StatusSeeOther)
	other.wants(other.post("/test-number", "number", "79000002"), http.StatusSeeOther)
	const failed = "could not be delivered"
	c.wants(c.get("/test-number"), http.StatusOK, `id="coded" data-live data-from="/test-number">`)
	w.exec(`update messages set status = 2, failed_at = now() where company_id = 0 and user_id = $1`, u.ID)
	if a := c.get("/test-number"); strings.Contains(a.body, failed) {
		t.Error("another's code is taken for hers")
	}
	other.wants(other.get("/test-number"), http.StatusOK, failed, `id="coded">`)
	w.exec(`update messages set status = 1, sent_at = now(), failed_at = null where company_id = 0`)
	if a := other.get("/test-number"); strings.Contains(a.body, failed) || strings.Contains(a.body, "data-live") {
		t.Error("the code has arrived, but the page still waits")
	}
}

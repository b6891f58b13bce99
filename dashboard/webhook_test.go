package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts/senders"
	"intumwa/internal/audit"
	"intumwa/sms"
	"intumwa/webhooks"
)

const markup = `<script>alert(1)</script><img src=x onerror=alert(1)>`

// receiver is a customer's endpoint: it records calls and responds as set.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	status int
	body   string
	got    []*http.Request
	bodies []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got, r.bodies = append(r.got, request), append(r.bodies, string(body))
		w.WriteHeader(r.status)
		if r.status != http.StatusNoContent {
			_, _ = io.WriteString(w, r.body)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.body = status, body
}

// signedBy reports whether that secret signed the latest call (X-Webhook-Signature).
func (r *receiver) signedBy(secret string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) == 0 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(r.bodies[len(r.bodies)-1]))
	return r.got[len(r.got)-1].Header.Get("X-Webhook-Signature") == hex.EncodeToString(mac.Sum(nil))
}

// enqueue makes events of messages, alternately sent and failed.
func (w *world) enqueue(company int64, from int64, n int) {
	w.t.Helper()
	at := time.Now()
	var events []webhooks.Event
	for i := range int64(n) {
		e := webhooks.Event{CompanyID: company, MessageID: from + i, Name: webhooks.Sent, PhoneNumber: "+25761234567", At: at}
		if i%2 == 1 {
			e.Name = webhooks.Failed
		}
		events = append(events, e)
	}
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		return w.hooks.Enqueue(w.t.Context(), tx, events)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.hooks.Kick()
}

// until waits for a condition.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// inState counts a company's deliveries.
func (w *world) inState(company int64, state string) int {
	w.t.Helper()
	list, _, err := w.hooks.Deliveries(w.t.Context(), sms.CompanyID(company), webhooks.Filter{State: state}, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list)
}

func (w *world) endpoint(company int64, address string) {
	w.t.Helper()
	if _, err := w.hooks.SetEndpoint(w.t.Context(), company, webhooks.Setting{URL: address}); err != nil {
		w.t.Fatal(err)
	}
}

// called makes a company's endpoint that has responded to n events in this way until they were delivered or given up.
func (w *world) called(company int64, n, status int, body string) *receiver {
	w.t.Helper()
	r := newReceiver(w.t)
	r.answer(status, body)
	w.endpoint(company, r.URL)
	w.enqueue(company, 100, n)
	state := webhooks.StateDelivered
	if status/100 != 2 {
		state = webhooks.StateFailed
	}
	w.until("the deliveries end", func() bool { return w.inState(company, state) == n })
	return r
}

func (w *world) acts(company int64) (names []string) {
	w.t.Helper()
	list, _, err := audit.List(w.t.Context(), w.pool, audit.Filter{Company: sms.CompanyID(company)}, 0, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range list {
		names = append([]string{a.Act}, names...)
	}
	return names
}

var secretText = regexp.MustCompile(`whsec_[A-Za-z0-9+/]+=*`)

// secretOn returns the secret on a page, or "".
func secretOn(a answer) string {
	return secretText.FindString(strings.ReplaceAll(a.body, "&#43;", "+"))
}

// TestWebhookSecret: a secret appears on one page only and signs the calls. Its successor replaces it after a day or at
// once. Each change is one act, without secrets.
func TestWebhookSecret(t *testing.T) {
	w := newWorld(t, nil)
	c, user, company := w.owner()
	r := newReceiver(t)
	c.wants(c.post("/webhook", "url", r.URL+"/hook?key=hidden"), http.StatusSeeOther)
	w.letters.Wake("") // as a notice does
	if m := w.mail(user.Email, 0); !strings.Contains(m.Text, r.URL+"/hook") || strings.Contains(m.Text, "hidden") {
		t.Errorf("the mail to the owner: %s", m.Text)
	}
	page := c.get("/deliveries")
	first := secretOn(page)
	if first == "" || page.Header.Get("Cache-Control") != "no-store" {
		t.Fatal("no secret, or it is kept:", page.Header, page.body)
	}
	if again := c.get("/deliveries"); secretOn(again) != "" {
		t.Error("the secret is shown twice")
	}
	test := c.post("/webhook/test", "test", webhooks.Sent)
	c.wants(test, http.StatusSeeOther)
	if at := test.Header.Get("Location"); at != "/deliveries#test" { // the result is below the button
		t.Error("after a test:", at)
	}
	if !r.signedBy(first) {
		t.Error("the secret that was shown does not sign")
	}
	c.wants(c.get("/deliveries"), http.StatusOK, "HTTP 204", "evt_test_")
	if a := c.get("/deliveries"); strings.Contains(a.body, "evt_test_") {
		t.Error("a test is shown twice")
	}

	c.wants(c.post("/webhook/rotate"), http.StatusSeeOther)
	page = c.get("/deliveries")
	second := secretOn(page)
	w.letters.Wake("")
	if m := w.mail(user.Email, 1); !strings.Contains(m.Subject, "secret de signature") ||
		!strings.Contains(m.Text, r.URL+"/hook") || strings.Contains(m.Text, second) {
		t.Errorf("the mail to the owner: %s\n%s", m.Subject, m.Text)
	}
	c.wants(page, http.StatusOK, "signed with the old secret and the new one", "X-Webhook-Signature")
	if second == "" || second == first || secretOn(c.get("/deliveries")) != "" {
		t.Fatal("the new secret:", second)
	}
	c.wants(c.post("/webhook/rotate"), http.StatusSeeOther) // a second click
	if secretOn(c.get("/deliveries")) != "" {
		t.Error("a second click made another secret")
	}
	c.post("/webhook/test", "test", webhooks.Failed)
	if !r.signedBy(first) {
		t.Error("the old secret signs no more")
	}
	c.get("/deliveries")
	c.wants(c.post("/webhook/rotate/end"), http.StatusSeeOther)
	c.post("/webhook/test", "test", webhooks.Failed)
	if !r.signedBy(second) {
		t.Error("the new secret does not sign")
	}
	c.wants(c.post("/webhook/active", "on", "no"), http.StatusSeeOther)
	c.wants(c.get("/deliveries"), http.StatusOK, "Inactive")
	c.wants(c.post("/webhook/active", "on", "yes"), http.StatusSeeOther)

	want := "webhook.set webhook.rotate webhook.rotation_end webhook.set webhook.set"
	if got := strings.Join(w.acts(company.ID), " "); got != want {
		t.Errorf("recorded: %s", got)
	}
	var actor, all string
	if err := w.pool.QueryRow(t.Context(), `select min(actor), string_agg(audit_log::text, ' ') from audit_log`).Scan(
		&actor, &all); err != nil {
		t.Fatal(err)
	}
	if actor != audit.User(user.ID) || strings.Contains(all, first) || strings.Contains(all, second) ||
		strings.Contains(all, "hidden") {
		t.Errorf("the record of %s: %s", actor, all)
	}
	if a := c.get("/deliveries"); !strings.Contains(a.body, "No deliveries yet") {
		t.Error("tests are among the deliveries")
	}
}

// TestWebhookAddress: an invalid URL, or a private address as a URL or behind a name, is refused in the page's language
// and changes nothing.
func TestWebhookAddress(t *testing.T) {
	w := newWorld(t, func(r *Deps, _ *Options) { r.Webhooks = webhooks.New(r.Pool, webhooks.Options{}) })
	c, _, company := w.owner()
	for address, text := range map[string]string{
		"": "This field is required.", "x": "not a complete address", "http://example.com": "must begin with https://",
		"javascript:alert(1)":      "not a complete address",
		"https://u:p@example.com/": "user name or password", "https://example.com/#x": "# part",
		"https://example.com:8443/": "port 443",
		"https://127.0.0.1/":        "must be public", "https://169.254.169.254/latest": "must be public",
		"https://[::1]/": "must be public", "https://localhost/": "must be public",
		"https://exa mple.com/": "not a complete address", "https://-é-/": "not a complete address",
		"https://a..b/": "host name is wrong", "https://example.com/" + strings.Repeat("x", 3000): "not a complete address",
		"https://example.com/" + markup: "not a complete address",
	} {
		a := c.post("/webhook", "url", address)
		c.wants(a, http.StatusUnprocessableEntity, text)
		if strings.Contains(a.body, "<script>alert") {
			t.Error("markup in the field")
		}
	}
	for _, path := range []string{"/webhook/active", "/webhook/rotate", "/webhook/rotate/end", "/webhook/test"} {
		c.wants(c.post(path, "on", "yes"), http.StatusNotFound)
	}
	if got := w.acts(company.ID); len(got) != 0 {
		t.Errorf("recorded: %v", got)
	}
	c.wants(c.post("/webhook", "url", "https://localtest.invalid/"), http.StatusSeeOther)
	c.wants(c.post("/webhook/test"), http.StatusSeeOther)
	c.wants(c.get("/deliveries"), http.StatusOK, "Unknown host")
}

// TestWebhookTests: test calls to another party's server are limited.
func TestWebhookTests(t *testing.T) {
	w := newWorld(t, func(r *Deps, _ *Options) {
		r.Tries.Tests = limit(t, 2, time.Hour)
	})
	c, _, company := w.owner()
	r := newReceiver(t)
	w.endpoint(company.ID, r.URL)
	for range 2 {
		c.wants(c.post("/webhook/test"), http.StatusSeeOther)
	}
	c.wants(c.post("/webhook/test"), http.StatusTooManyRequests, "quarter of an hour")
	if len(r.got) != 2 {
		t.Errorf("%d calls", len(r.got))
	}
}

// TestSenders: a requested sender ID waits, a refusal shows its reason, and the number of waiting ones is limited.
// Another company's are invisible.
func TestSenders(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.owner()
	b, _, _ := w.customer("bob", "BOBCO", 0)
	for _, name := range []string{"", "TWELVELETTER", "Bé", "A B", markup, "INTUMWATEST"} {
		c.wants(c.post("/senders", "name", name, "purpose", "x"), http.StatusUnprocessableEntity)
	}
	for _, purpose := range []string{"", " ", strings.Repeat("x", senders.MaxPurpose+1), "a\x00b"} {
		c.wants(c.post("/senders", "name", "ISOKO", "purpose", purpose), http.StatusUnprocessableEntity)
	}
	c.wants(c.get("/senders"), http.StatusOK, `<a href="/deliveries">Webhook endpoint</a>`) // developers look for it here
	c.wants(c.post("/senders", "name", "ISOKO", "purpose", markup), http.StatusSeeOther)
	c.wants(c.post("/senders", "name", "ISOKO", "purpose", "x"), http.StatusUnprocessableEntity, "already")
	a := c.get("/senders")
	c.wants(a, http.StatusOK, "ISOKO", "Pending approval", "&lt;script&gt;")
	list, err := w.senders.SenderRequestsOf(t.Context(), sms.CompanyID(company.ID))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := w.senders.RefuseSender(t.Context(), list[0].ID, "A bank has it "+markup); err != nil {
		t.Fatal(err)
	}
	a = c.get("/senders")
	c.wants(a, http.StatusOK, "Refused", "A bank has it &lt;script&gt;")
	if strings.Contains(a.body, "<script>alert") {
		t.Error("markup on the page")
	}
	if strings.Contains(b.get("/senders").body, "ISOKO") {
		t.Error("Bob sees Aline's sender")
	}
	for i := range senders.MaxWaiting {
		c.wants(c.post("/senders", "name", "S"+strconv.Itoa(i), "purpose", "x"), http.StatusSeeOther)
	}
	c.wants(c.post("/senders", "name", "MORE", "purpose", "x"), http.StatusUnprocessableEntity, "can be pending")
	if got := strings.Join(w.acts(company.ID), " "); got != "sender.ask"+
		strings.Repeat(" sender.ask", senders.MaxWaiting) {
		t.Errorf("recorded: %s", got)
	}
}

// TestDelivery: an endpoint's response is shown as text, and the delivery can be resent.
func TestDelivery(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 0)
	r := w.called(company.ID, 1, http.StatusInternalServerError, markup+"\x1b[31m\u202eevil")
	page := c.get("/deliveries/of/800")
	c.wants(page, http.StatusOK, "&lt;script&gt;", "HTTP 500", "evt_800", "[31mevil", "Attempt 3",
		`&#34;message_id&#34;: 100`, `href="/messages?id=100"`)
	if strings.Contains(page.body, "<script>alert") || strings.Contains(page.body, "\x1b") ||
		strings.Contains(page.body, "\u202e") {
		t.Error("the endpoint's answer is not made printable")
	}
	r.answer(http.StatusOK, "")
	c.wants(c.post("/deliveries/of/800/resend"), http.StatusSeeOther)
	w.until("it is delivered", func() bool { return w.inState(company.ID, webhooks.StateDelivered) == 1 })
	c.wants(c.get("/deliveries/of/800"), http.StatusOK, "Attempt 4", "HTTP 200", "Delivered")
	if got := strings.Join(w.acts(company.ID), " "); got != "webhook.resend" {
		t.Errorf("recorded: %s", got)
	}
}

// TestConcurrentResends: several clicks and the delivery's own attempts do not collide.
func TestConcurrentResends(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.customer("aline", "ISOKO", 0)
	w.called(company.ID, 1, http.StatusInternalServerError, "")
	for range 10 {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if a := c.post("/deliveries/of/800/resend"); a.StatusCode != http.StatusSeeOther {
					t.Errorf("sending again: %d", a.StatusCode)
				}
			})
		}
		all.Wait()
	}
}

// TestManyAttempts: a delivery with many attempts, whose responses are all markup, has a page of bounded size with the
// latest attempts.
func TestManyAttempts(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.owner()
	w.called(company.ID, 1, http.StatusNoContent, "")
	w.exec(`update webhook_deliveries set attempts = (attempts::jsonb || (
		select jsonb_agg(jsonb_build_object('at', now(), 'ms', i, 'status', 500, 'result', '5xx', 'excerpt',
			repeat('<', 1024))) from generate_series(1, 65) i))::json`)
	a := c.get("/deliveries/of/800")
	c.wants(a, http.StatusOK, "Attempt 66", "Attempt 47", "46 earlier attempts are not shown")
	if len(a.body) > 120_000 || strings.Contains(a.body, "Attempt 46<") {
		t.Errorf("%d bytes", len(a.body))
	}

	// While it waits, the pages show its next attempt, and a resend makes it due now.
	w.exec(`update webhook_deliveries set delivered = false, due = now() + interval '1 hour', tries = 1`)
	c.wants(c.get("/deliveries/of/800"), http.StatusOK, "Pending", "Next attempt: ", "Try now")
	c.wants(c.get("/deliveries?state=pending"), http.StatusOK, "next attempt ")
	c.wants(c.post("/deliveries/of/800/resend"), http.StatusSeeOther)
	w.until("it is delivered again", func() bool { return w.inState(company.ID, webhooks.StateDelivered) == 1 })
}

// TestDeliveries: the list filters by state, event and time, and leaves no gap between pages.
func TestDeliveries(t *testing.T) {
	w := newWorld(t, nil)
	c, _, company := w.owner()
	w.called(company.ID, 2*25+3, http.StatusNoContent, "")
	line := regexp.MustCompile(`/deliveries/of/(\d+)"`)
	for query, want := range map[string][2]int{
		"": {53, 3}, "state=delivered": {53, 3}, "state=failed": {0, 1}, "state=pending": {0, 1},
		"event=" + webhooks.Sent: {27, 2}, "event=" + webhooks.Failed: {26, 2},
		"since=2020-01-01T00:00": {53, 3}, "since=2199-01-01T00:00": {0, 1}, "state=nonsense&event=%22%3E&before=-3": {53, 3},
		"before=99999999999999999999": {53, 3},
	} {
		seen, pages := map[string]bool{}, c.pages("/deliveries?"+query)
		for _, page := range pages {
			for _, m := range line.FindAllString(page.body, -1) {
				if seen[m] {
					t.Errorf("%s is listed twice", m)
				}
				seen[m] = true
			}
		}
		if len(seen) != want[0] || len(pages) != want[1] {
			t.Errorf("%s: %d deliveries on %d pages, want %v", query, len(seen), len(pages), want)
		}
	}
	c.wants(c.get("/deliveries?since=9999999-01-01T00:00"), http.StatusUnprocessableEntity)
	for _, from := range []string{"", "yesterday", "1000000-01-01T00:00", "0001-01-01T00:00"} {
		c.wants(c.post("/deliveries/recovery", "from", from), http.StatusUnprocessableEntity)
	}
	a := c.get("/deliveries?since=" + url.QueryEscape(`"><script>alert(1)</script>`) + "&state=" + url.QueryEscape(markup))
	if strings.Contains(a.body, "<script>alert") {
		t.Error("markup from the address")
	}
}

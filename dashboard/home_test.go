package dashboard

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"intumwa/messages/statistics"
)

var mainButton = regexp.MustCompile(`<a class="button" href="([^"]*)"`)

// TestHome: a new customer's page leads with one next step. An active customer's page has the day, the week and the
// latest failures, and no steps although its test number is not verified. Without credits, every page reports it with
// the operator's notice.
func TestHome(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.CreditsNotice = "25 FBu a credit, by transfer. Call 22 22 22 22." })
	c, _, _ := w.owner()
	a := c.get("/")
	c.wants(a, http.StatusOK, "Steps to your first message")
	if next := mainButton.FindAllStringSubmatch(a.body, -1); len(next) != 1 || next[0][1] != "/test-number" ||
		strings.Contains(a.body, "Today") || strings.Contains(a.body, "no credits") {
		t.Errorf("the next step is %v\n%s", next, a.body)
	}

	c, company := w.merchant("bob", 0)
	fillMessages(t, w.pool, company.ID, 70, 7)
	w.tally("the messages are counted", func() bool { return strings.Contains(c.get("/").body, "<rect") })
	c.wants(c.get("/"), http.StatusOK, "Today", "Last seven days", "Latest failures", "The carrier could not deliver it.",
		"1 credit was charged.", "You have no credits")
	if strings.Contains(c.get("/").body, "Steps to your first message") {
		t.Error("who sends still sees the steps to the first message")
	}
	c.wants(c.get("/senders"), http.StatusOK, "You have no credits", "/statement#credits")
	c.wants(c.get("/statement"), http.StatusOK, "Call 22 22 22 22", "Payment reference")
	w.grant(company.ID, 100, "invoice 7")
	if a = c.get("/"); strings.Contains(a.body, "no credits") || strings.Contains(a.body, "more than a year") ||
		!regexp.MustCompile(`about 1[01] days`).MatchString(a.body) {
		t.Errorf("with credits:\n%s", a.body)
	}
	w.grant(company.ID, 1_000_000, "invoice 8")
	if a = c.get("/"); !strings.Contains(a.body, "more than a year") ||
		regexp.MustCompile(`about [0-9,]+ days`).MatchString(a.body) {
		t.Errorf("with many credits:\n%s", a.body)
	}
}

// TestTodayIsNow: pages count messages that no task has counted yet, beside those that one has.
func TestTodayIsNow(t *testing.T) {
	w := stillWorld(t, nil)
	c, company := w.merchant("bob", 10_000)
	send := func(n int) {
		w.exec(`insert into messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
			carrier, status)
			select gen_random_uuid(), $1, 1, '+25779000001', 'DEMO', 'x', 0, 1, false, 'leo', case when n % 3 = 0 then 0
				else 1 end from generate_series(1, $2) n`, company.ID, n)
	}
	shows := func(n, pending int) {
		t.Helper()
		today := fmt.Sprintf(
			`<dt>Total</dt><dd>%d</dd></div>\s*<div><dt>Sent</dt><dd>%d</dd></div>\s*<div><dt>Failed</dt><dd>0</dd></div>\s*<div><dt>Pending</dt><dd>%d</dd>`, n, n-pending, pending)
		if a := c.get("/"); !regexp.MustCompile(today).MatchString(a.body) {
			t.Errorf("after %d messages the home page is\n%s", n, a.body)
		}
		c.wants(c.get("/charts"), http.StatusOK, fmt.Sprintf("%d messages: %d sent, 0 failed, %d pending", n, n-pending,
			pending))
	}
	send(1)
	if !strings.Contains(c.get("/").body, "they last more than a year") {
		t.Error("at one message a week, 10,000 credits last for days")
	}
	shows(1, 0)
	if err := statistics.New(w.pool).TallyNow(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	send(30)
	shows(31, 10)
}

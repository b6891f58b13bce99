package dashboard

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var mainButton = regexp.MustCompile(`<a class="button" href="([^"]*)"`)

// TestHome: a new customer's page leads with one next step. An active customer's page has the day, the week and the
// latest failures. Without credits, every page reports it with the operator's notice.
func TestHome(t *testing.T) {
	w := newWorld(t, func(_ *Rooms, o *Options) { o.CreditsNotice = "25 FBu a credit, by transfer. Call 22 22 22 22." })
	c, _, _ := w.owner()
	a := c.get("/")
	c.wants(a, http.StatusOK, "Steps to your first message")
	if next := mainButton.FindAllStringSubmatch(a.body, -1); len(next) != 1 || next[0][1] != "/test-number" || strings.Contains(a.body, "Today") || strings.Contains(a.body, "no credits") {
		t.Errorf("the next step is %v\n%s", next, a.body)
	}

	c, company := w.merchant("bob", 0)
	fillMessages(t, w.pool, company.ID, 70, 7)
	w.tally("the messages are counted", func() bool { return strings.Contains(c.get("/").body, "<rect") })
	c.wants(c.get("/"), http.StatusOK, "Today", "Last seven days", "Latest failures", "UNDELIV", "You have no credits")
	c.wants(c.get("/senders"), http.StatusOK, "You have no credits", "/statement#credits")
	c.wants(c.get("/statement"), http.StatusOK, "Call 22 22 22 22", "Payment reference")
	w.grant(company.ID, 100, "invoice 7")
	if a = c.get("/"); strings.Contains(a.body, "no credits") || strings.Contains(a.body, "more than a year") || !regexp.MustCompile(`about 1[01] days`).MatchString(a.body) {
		t.Errorf("with credits:\n%s", a.body)
	}
	w.grant(company.ID, 1_000_000, "invoice 8")
	if a = c.get("/"); !strings.Contains(a.body, "more than a year") || regexp.MustCompile(`about [0-9,]+ days`).MatchString(a.body) {
		t.Errorf("with many credits:\n%s", a.body)
	}
}

package dashboard

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"intumwa/texts"
)

// TestCampaignLater: a scheduled campaign waits until its time, and its page can cancel it. A past or distant time is
// refused; nothing is sent or charged.
func TestCampaignLater(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 100)
	a := c.send("/campaigns", "DEMO", "Bonjour {{name}}", []byte("phone_number,name\n79000001,A\n79000002,B\n"))
	c.wants(a, http.StatusSeeOther)
	draft := a.Header.Get("Location")
	c.wants(c.get(draft), http.StatusOK, `name="send_at"`)
	local := func(d time.Duration) string { return time.Now().Add(d).In(texts.Bujumbura).Format("2006-01-02T15:04") }
	for value, text := range map[string]string{
		local(-time.Hour): "Choose a future day", "2026-02-30T10:00": "Choose a future day",
		"tomorrow": "Choose a future day", local(31 * 24 * time.Hour): "next 30 days",
	} {
		c.wants(c.post(draft+"/send", "send_at", value), http.StatusUnprocessableEntity, text, `value="`+value+`"`)
	}
	w.counts(0, `select count(*) from messages`)
	at := local(2 * time.Hour)
	a = c.post(draft+"/send", "send_at", at)
	c.wants(a, http.StatusSeeOther)
	place := a.Header.Get("Location")
	if again := c.post(draft+"/send", "send_at", local(3*time.Hour)).Header.Get("Location"); again != place {
		t.Errorf("sent again, to %s and %s", place, again)
	}
	due, err := time.ParseInLocation("2006-01-02T15:04", at, texts.Bujumbura)
	if err != nil {
		t.Fatal(err)
	}
	w.counts(2, `select count(*) from scheduled where due_at = $1`, due)
	c.wants(c.get(place), http.StatusOK, `datetime="`+strings.ReplaceAll(due.Format(time.RFC3339), "+", "&#43;")+`"`,
		"Scheduled for",
		"Your campaign is scheduled.", "<h1>people</h1>", "Scheduled</span>", "Text to &#43;25779000002", "Bonjour B",
		"Credits</dt><dd><span class=\"number\">2<", place+"/cancel")
	c.wants(c.get("/campaigns"), http.StatusOK, `href="`+place+`">people</a>`, "Scheduled</span>")
	inStatement := "/messages?q=" + strings.TrimPrefix(place, "/batches/")
	c.wants(c.get("/statement"), http.StatusOK, `href="`+inStatement+`"`)
	if to := c.get(inStatement).Header.Get("Location"); to != place {
		t.Errorf("the statement links to %s", to)
	}
	w.exec(`update messages set client_reference = '=1+1'`)
	rows := c.lines(c.get("/messages.csv?q=%3D1%2B1"))
	if len(rows) != 3 || rows[1][len(rows[1])-2] != "'=1+1" {
		t.Fatalf("the file by the reference: %q", rows)
	}
	c.wants(c.get("/messages/"+rows[1][0]), http.StatusOK, "Scheduled for", "Waiting for its time", "Your reference",
		"=1&#43;1")
	c.wants(c.get("/messages?q=%3D1%2B1"), http.StatusOK, "/messages/"+rows[1][0])
	for _, q := range []string{"%3D1", "%ff"} {
		c.wants(c.get("/messages?q="+q), http.StatusOK, "Nothing found")
	}
	w.credits(company.ID, 98)
	for _, result := range []string{"Their credits are refunded.", "nothing to cancel"} {
		if to := c.post(place + "/cancel").Header.Get("Location"); to != place {
			t.Errorf("cancelling leads to %s", to)
		}
		c.wants(c.get(place), http.StatusOK, result, "Cancelled</span>")
		w.credits(company.ID, 100)
	}
	w.counts(0, `select count(*) from scheduled`)
}

package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"intumwa/sms"
)

// leaving uploads and begins a campaign with the numbers of two carriers: every hundredth is one of lumitel.
func (c *client) leaving(n int) (draft, batch string) {
	c.t.Helper()
	var file strings.Builder
	file.WriteString("phone_number,name\n")
	for i := range n {
		prefix := "79"
		if i%100 == 50 {
			prefix = "69"
		}
		fmt.Fprintf(&file, "%s%06d,N%d\n", prefix, i, i)
	}
	a := c.upload("/campaigns", url.Values{"sender": {"DEMO"}, "template": {"Bonjour {{name}}"}}, file.String())
	c.wants(a, http.StatusSeeOther)
	draft = a.Header.Get("Location")
	batch, _ = strings.CutPrefix(c.post(draft+"/send").Header.Get("Location"), "/batches/")
	return draft, batch
}

// TestCampaignLeavesOut (rule choices 13.6): whatever can no longer be sent to one recipient between two parts stops no
// other. They are counted by reason, not charged, and can be fetched.
func TestCampaignLeavesOut(t *testing.T) {
	routes := func(registration bool) *sms.Routes {
		made, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Prefixes: []string{"7"}},
			{Carrier: "lumitel", Prefixes: []string{"6"}, Registration: registration}})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for reason, change := range map[string]struct {
		do   func(w *world)
		out  int // of 2,500
		text string
	}{
		"no_carrier": {func(w *world) {
			w.d.deps.Intake.SetRoutes(routes(false).Without(map[string]string{"lumitel": ""}))
		}, 15, "No carrier serves this number."},
		"sender_not_registered": {func(w *world) { w.d.deps.Intake.SetRoutes(routes(true)) }, 15,
			"does not know this sender ID yet"},
		"number_limit": {func(w *world) {
			w.exec(`update companies set number_a_day = 1`)
			w.exec(`update campaign_rows set number = '+25779001600' where n in (1700, 1800, 2300)`)
		}, 3, "has reached the limit for repeated messages"},
		"too_long": {func(w *world) {
			w.exec(`update campaign_rows set variables = jsonb_build_object('name', repeat('é', 40000)) where n = 1200`)
		}, 1, "The message is too long."},
	} {
		t.Run(reason, func(t *testing.T) {
			w := stillWorld(t, nil)
			c, company := w.merchant("aline", 3000)
			_, batch := c.leaving(2500)
			w.credits(company.ID, 2000)
			change.do(w)
			w.sendAll()
			w.counts(2500-change.out, `select count(*) from messages`)
			w.credits(company.ID, int64(500+change.out))
			w.counts(1, `select count(*) from batches where awaited = 0 and recipients_count = $1
				and left_out = jsonb_build_object($2::text, $3::int)`,
				2500-change.out, reason, change.out)
			c.wants(c.get("/batches/"+batch), http.StatusOK, "Left out, not charged", change.text, `number">2,500<`,
				"/batches/"+batch+"/left-out.csv")
			if rows := c.lines(c.get("/batches/" + batch + "/left-out.csv")); len(rows) != 1+change.out ||
				!strings.Contains(strings.Join(rows[1], "|"), change.text) {
				t.Errorf("the file has %q", rows)
			}
			w.counts(change.out, `select count(*) from campaign_rows`)
			w.exec(`update campaigns set created_at = now() - interval '25 hours'`)
			if err := w.campaigns.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.audited()
			c.wants(c.get("/batches/"+batch), http.StatusOK, "Left out, not charged")
			c.wants(c.get("/batches/"+batch+"/left-out.csv"), http.StatusNotFound)
		})
	}
	// Nobody is left.
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", 3000)
	_, batch := c.leaving(2500)
	none, err := sms.NewRoutes(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.d.deps.Intake.SetRoutes(none)
	w.sendAll()
	w.counts(1, `select count(*) from batches where awaited = 0 and recipients_count = 1000
		and (left_out->>'no_carrier')::int = 1500`)
	w.credits(company.ID, 2000)
	c.wants(c.get("/batches/"+batch), http.StatusOK, `number">1,500<`)
}

// TestCampaignChangedSinceCheck: before the first part, those who cannot be sent to any more are listed and can be left
// out.
func TestCampaignChangedSinceCheck(t *testing.T) {
	w := stillWorld(t, nil)
	c, _ := w.merchant("aline", 3000)
	a := c.send("/campaigns", "DEMO", "Bonjour {{name}}",
		[]byte("phone_number,name\n79000001,A\n69000001,B\n79000002,C\n"))
	draft := a.Header.Get("Location")
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Prefixes: []string{"7"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.d.deps.Intake.SetRoutes(routes)
	c.wants(c.post(draft+"/send"), http.StatusUnprocessableEntity, "Nothing was sent", "No carrier serves this number.")
	w.counts(0, `select count(*) from messages`)
	c.wants(c.post(draft+"/without", "what", "faults"), http.StatusSeeOther)
	c.wants(c.post(draft+"/send"), http.StatusSeeOther)
	w.counts(2, `select count(*) from messages`)
	w.audited()
}

package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/campaigns"
	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/statistics"
	"intumwa/operations"
	"intumwa/sms"
)

// recipients returns a file with n lines, each with its own number.
func recipients(n int) string {
	var file strings.Builder
	file.WriteString("phone_number,name\n")
	for i := range n {
		fmt.Fprintf(&file, "79%06d,N%d\n", i, i)
	}
	return file.String()
}

// parts uploads and begins a campaign, and returns the path of its batch.
func (c *client) parts(n int) (batch string) {
	c.t.Helper()
	return c.partsOf(n, "")
}

// partsOf is parts with a cost centre.
func (c *client) partsOf(n int, costCenter string) (batch string) {
	c.t.Helper()
	a := c.upload("/campaigns", url.Values{"sender": {"DEMO"}, "template": {"Bonjour {{name}}"},
		"cost_center": {costCenter}}, recipients(n))
	c.wants(a, http.StatusSeeOther)
	batch, _ = strings.CutPrefix(c.post(a.Header.Get("Location")+"/send").Header.Get("Location"), "/batches/")
	return batch
}

// sendOn sends the next part of a campaign, like the background work, and reports whether one was due.
func (w *world) sendOn() (found bool) {
	w.t.Helper()
	found, err := w.campaigns.SendNext(context.WithoutCancel(w.t.Context()))
	if err != nil {
		w.t.Error(err)
	}
	return found
}

// sendAll sends all parts that are due.
func (w *world) sendAll() {
	w.t.Helper()
	for w.sendOn() {
	}
}

// audited expects a clean audit and no stored campaign.
func (w *world) audited() {
	w.t.Helper()
	found, err := statistics.New(w.pool).Audit(w.t.Context(), time.Hour)
	if err != nil || found != (statistics.Audit{}) {
		w.t.Errorf("the audit found %+v, %v", found, err)
	}
	if _, wrong, err := w.d.deps.Ledger.Audit(w.t.Context()); err != nil || wrong != 0 {
		w.t.Errorf("%d wrong balances, %v", wrong, err)
	}
	w.counts(0, `select (select count(*) from campaigns) + (select count(*) from campaign_rows)`)
}

// TestCampaignChangedMeanwhile: a campaign from which somebody removes lines while it is being sent waits for another
// look at it. It is not begun with recipients whom it does not have.
func TestCampaignChangedMeanwhile(t *testing.T) {
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", 1500)
	path := c.send("/campaigns", "DEMO", "Bonjour {{name}}", []byte(recipients(1500))).Header.Get("Location") + "/send"
	sent := make(chan answer, 1)
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `set local idle_in_transaction_session_timeout = 0;
			lock table balances in access exclusive mode`); err != nil {
			return err
		}
		go func() { sent <- c.post(path) }()
		w.until("the lines are counted", func() bool { // and whether there are credits is looked up
			return testenv.Blocked(t, w.pool)
		})
		w.exec(`delete from campaign_rows where n = 1`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.wants(<-sent, http.StatusConflict, "The campaign changed just before it was sent", "1,499")
	w.credits(company.ID, 1500)
	c.wants(c.post(path), http.StatusSeeOther)
	w.sendAll()
	w.credits(company.ID, 1)
	w.audited()
}

// TestCampaignInParts: 2,500 recipients go out in three parts as one batch, each charged once, although two dashboards
// send and one dies half-way.
func TestCampaignInParts(t *testing.T) {
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", 3000)
	batch := c.parts(2500)
	w.credits(company.ID, 2000)
	page := "/batches/" + batch
	c.wants(c.get(page), http.StatusOK, "1,000 of 2,500 messages are accepted", "Cancel this batch", "data-live")
	c.wants(c.get("/campaigns"), http.StatusOK, page, `number">2,500<`, "On its way")
	if to := c.get("/campaigns/drafts/" + batch).Header.Get("Location"); to != page {
		t.Errorf("back leads to %s", to)
	}
	// A process takes the campaign and dies. No other sends until its take expires.
	w.exec(`update campaigns set taken_until = now() + interval '1 minute'`)
	if w.sendOn() {
		t.Error("a part is sent beside another process")
	}
	w.credits(company.ID, 2000)
	w.exec(`update campaigns set taken_until = now()`)
	if !w.sendOn() {
		t.Error("no part is sent after that")
	}
	w.credits(company.ID, 1000)
	// A late process sends a part a second time.
	id := ulid.MustParse(batch)
	p, err := w.holders.PrincipalOf(t.Context(), int64(w.count(`select user_id from batches`)))
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`delete from idempotency_keys`) // only the batch decides
	recipients := make([]intake.Recipient, 1000)
	for i := range recipients {
		recipients[i] = intake.Recipient{Number: "+25779000000", Message: "x"}
	}
	for _, part := range []intake.Part{{Of: id, Awaited: 1500}, {Of: id, Further: true, Awaited: 500},
		{Of: id, Further: true}} {
		if _, err := w.d.deps.Intake.SendBatch(t.Context(), p,
			intake.Batch{Sender: "DEMO", Recipients: recipients, Part: &part}); err == nil {
			t.Errorf("a part after which %d are awaited is accepted", part.Awaited)
		}
	}
	w.credits(company.ID, 1000)
	w.sendAll()
	w.credits(company.ID, 500)
	w.counts(2500, `select count(distinct phone_number) from messages where body = 'Bonjour N' || substr(phone_number,
		7)::int`)
	w.counts(1, `select count(*) from batches where recipients_count = 2500 and item_count = 2500 and awaited = 0`)
	c.wants(c.get("/campaigns"), http.StatusOK, page, `number">2,500<`)
	if rows := c.lines(c.get("/messages.csv?batch=" + batch)); len(rows) != 2501 {
		t.Errorf("the file has %d lines", len(rows))
	}
	if to := c.get("/campaigns/drafts/" + batch).Header.Get("Location"); to != page {
		t.Errorf("back leads to %s", to)
	}
	w.audited()
}

// TestCostCenterByPage: a cost centre of a campaign is on the messages of all its parts, one of a single send on its
// message. Both show it and are found by it, in the list and its file. A wrong one is refused at its field. Messages
// from pages have their channel.
func TestCostCenterByPage(t *testing.T) {
	w := stillWorld(t, nil)
	c, _ := w.merchant("aline", 3000)
	batch := c.partsOf(1001, " =IT ")
	c.wants(c.get("/campaigns/drafts/"+batch), http.StatusSeeOther)
	w.sendAll()
	w.counts(1001, `select count(*) from messages where cost_center = '=IT' and channel = 1`)
	send := func(pairs ...string) answer {
		return c.post("/messages/new", append([]string{"do", "send", "sender", "DEMO", "number", "79222222", "message",
			"kept"}, pairs...)...)
	}
	for _, wrong := range []string{strings.Repeat("é", 65), "a\u2028b", "a\tb", "\xff"} {
		c.wants(send("key", c.key("/messages/new"), "cost_center", wrong), http.StatusUnprocessableEntity,
			`id="f-cost_center-wrong"`, "at most 64 visible characters")
		a := c.upload("/campaigns", url.Values{"sender": {"DEMO"}, "template": {"x"}, "cost_center": {wrong}}, recipients(1))
		c.wants(a, http.StatusUnprocessableEntity, `id="f-cost_center-wrong"`, "at most 64 visible characters")
	}
	key := c.key("/messages/new")
	a := send("key", key, "cost_center", "HR")
	c.wants(a, http.StatusSeeOther)
	c.wants(send("key", key, "cost_center", "IT"), http.StatusConflict) // another request with the same key
	c.wants(send("key", c.key("/messages/new")), http.StatusSeeOther)
	w.counts(2, `select count(*) from messages where channel = 1 and batch_id is null and cost_center is distinct
		from '=IT'`)
	one := a.Header.Get("Location")
	c.wants(c.get(one), http.StatusOK, "Cost centre", `<span dir="auto">HR</span>`)
	found := c.get("/messages?cost_center=HR")
	c.wants(found, http.StatusOK, one, `name="cost_center" type="text" value="HR"`)
	if n := strings.Count(found.body, `href="/messages/0`); n != 1 {
		t.Errorf("%d messages are found", n)
	}
	c.wants(c.get("/messages?cost_center=hr"), http.StatusOK, "Nothing found")
	rows := c.lines(c.get("/messages.csv?cost_center=%3DIT"))
	if last := len(rows[0]) - 1; len(rows) != 1002 || rows[0][last] != "Cost centre" || rows[1][last] != "'=IT" {
		t.Errorf("the file has %d lines, the first %q", len(rows), rows[:2])
	}
	w.audited()
}

// TestCampaignCancelled: a campaign that is cancelled between two parts accepts no further one and refunds the credits.
func TestCampaignCancelled(t *testing.T) {
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", 3000)
	batch := c.parts(2500)
	w.counts(1, `select count(*) from campaigns`)
	c.wants(c.post("/batches/"+batch+"/cancel"), http.StatusSeeOther)
	w.sendAll()
	w.credits(company.ID, 3000)
	c.wants(c.get("/batches/"+batch), http.StatusOK, "Their credits are refunded.", "Cancelled</span>")
	w.counts(1000, `select count(*) from messages`)
	w.audited()
	// An operator's cancellation leaves the rows for the next round.
	second := c.parts(1500)
	queued, err := messages.QueuedOf(t.Context(), w.pool, ulid.MustParse(second))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operations.By("test", nil, w.d.operations).CancelCompany(t.Context(), queued.Company, ""); err != nil {
		t.Fatal(err)
	}
	w.sendOn()
	w.counts(2000, `select count(*) from messages`)
	w.audited()
}

// TestCampaignPaused: the credits run out half-way. The page shows it and the user continues; after a day the rest is
// given up.
func TestCampaignPaused(t *testing.T) {
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", 2400)
	a := c.send("/campaigns", "DEMO", "Bonjour {{name}}", []byte(recipients(2500)))
	c.wants(c.post(a.Header.Get("Location")+"/send"), http.StatusUnprocessableEntity, "You do not have enough credits.")
	w.counts(0, `select count(*) from messages`)
	w.grant(company.ID, 100, "invoice 8")
	batch := c.post(a.Header.Get("Location") + "/send").Header.Get("Location")
	w.grant(company.ID, -1000, "spent elsewhere")
	w.sendOn() // 500 credits pay for no more
	w.sendOn()
	w.credits(company.ID, 500)
	c.wants(c.get(batch), http.StatusOK, "Paused after 1,000 of 2,500 messages. You do not have enough credits.",
		"Continue sending")
	other, _, _ := w.customer("bob", "OTHER", 0)
	other.wants(other.post(batch+"/continue"), http.StatusNotFound)
	w.grant(company.ID, 500, "invoice 9")
	c.wants(c.post(batch+"/continue"), http.StatusSeeOther)
	w.sendOn()
	w.sendOn()
	w.counts(2000, `select count(*) from messages`)
	w.exec(`update companies set approved = false where id = $1`, company.ID)
	w.exec(`update campaigns set paused = ''`)
	w.sendOn()
	c.wants(c.get(batch), http.StatusOK, "Paused after 2,000 of 2,500 messages. Your company must be approved")
	w.exec(`update campaigns set created_at = now() - interval '25 hours'`)
	if err := w.campaigns.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.counts(1, `select count(*) from batches where recipients_count = 2000 and awaited = 0
		and (left_out->>'not_continued')::int = 500`)
	c.wants(c.get(batch), http.StatusOK, "Left out, not charged", "not continued within a day")
	w.credits(company.ID, 0)
	w.audited()
}

// TestCampaignScheduled: all parts have the scheduled time of the first.
func TestCampaignScheduled(t *testing.T) {
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", 1500)
	a := c.send("/campaigns", "DEMO", "Bonjour {{name}}", []byte(recipients(1500)))
	at := time.Now().Add(2 * time.Hour).In(time.FixedZone("", 2*60*60)).Format(web.LocalTime)
	batch := c.post(a.Header.Get("Location")+"/send", "send_at", at).Header.Get("Location")
	c.wants(c.get(batch), http.StatusOK, "Scheduled</span>")
	if _, err := handsets.New(w.pool).OptOut(t.Context(), sms.CompanyID(company.ID),
		[]handsets.OptOut{{Number: "+25779001200", Source: handsets.ByHandset}}); err != nil {
		t.Fatal(err)
	}
	if err := w.companies.NoteOptOuts(t.Context(), company.ID); err != nil {
		t.Fatal(err)
	}
	w.sendOn() // the opted-out recipient is refused when due
	w.counts(1500, `select count(*) from scheduled s join batches b on b.send_at = s.due_at`)
	w.credits(company.ID, 0)
	w.audited()
}

// TestCampaignLines: invalid lines, opted-out recipients and repeated numbers are listed on the page and in a file, and
// each kind can be left out.
func TestCampaignLines(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 100)
	if _, err := handsets.New(w.pool).OptOut(t.Context(), sms.CompanyID(company.ID),
		[]handsets.OptOut{{Number: "+25779000002", Source: handsets.ByHandset}}); err != nil {
		t.Fatal(err)
	}
	file :=
		"phone_number,name\n79000001,A\n=1+1,B\n\n7900000,C\n79000002,D\n79000001,E\n79000001\n79000003,F,G\n29000001," +
			"H\n<script>alert(1)</script>,I\n79000004," +
			strings.Repeat("é", 256) + "\n79000005,\n" + strings.Repeat("12,A\n", 30)
	a := c.send("/campaigns", "DEMO", "{{name}}", []byte(file))
	c.wants(a, http.StatusSeeOther)
	draft := a.Header.Get("Location")
	page := c.get(draft)
	c.wants(page, http.StatusOK, "Not ready to send yet", "38 lines have errors", `number">3<`,
		"“=1&#43;1” is not a phone number", "&lt;script&gt;", "There are 1 cells instead of 2.",
		"There are 3 cells instead of 2.", "No carrier serves", "has more than 255 characters", "Its message is empty.",
		"and 18 more lines",
		"1 recipient has opted out", `number">6<`, "One line repeats a number", `number">7<`)
	if strings.Contains(page.body, draft+"/send") {
		t.Error("it can be sent")
	}
	rows := c.lines(c.get(draft + "/lines.csv"))
	if len(rows) != 41 || strings.Join(rows[1], "|") != "3||“=1+1” is not a phone number of Burundi." ||
		strings.Join(rows[3], "|") != "6|25779000002|Opted out" ||
		strings.Join(rows[4], "|") != "7|25779000001|An earlier line has this number" {
		t.Errorf("the file has %d lines: %q", len(rows), rows[:5])
	}
	c.wants(c.post(draft+"/send"), http.StatusUnprocessableEntity, "Nothing was sent")
	c.wants(c.post(draft+"/without", "what", "all"), http.StatusNotFound)
	for _, what := range []string{"faults", "optedout"} {
		c.wants(c.post(draft+"/without", "what", what), http.StatusSeeOther)
	}
	c.wants(c.get(draft), http.StatusOK, "Ready to send", "Send 2 messages")
	c.wants(c.post(draft+"/without", "what", "repeated"), http.StatusSeeOther)
	c.wants(c.get(draft), http.StatusOK, "Ready to send", "Send 1 message<")
	c.wants(c.post(draft+"/send"), http.StatusSeeOther)
	w.counts(1, `select count(*) filter (where body = 'A') from messages having count(*) = 1`)
	w.audited()
	empty := c.send("/campaigns", "DEMO", "{{name}}", []byte("phone_number,name\n12,A\n")).Header.Get("Location")
	c.wants(c.get(empty), http.StatusOK, "no recipients left")
	c.wants(c.post(empty+"/send"), http.StatusUnprocessableEntity, "Nothing was sent")
}

// TestLargeCampaign checks and sends the maximum number of recipients.
func TestLargeCampaign(t *testing.T) {
	testenv.Long(t)
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", campaigns.MaxRecipients)
	start := time.Now()
	a := c.send("/campaigns", "DEMO", "Bonjour {{name}}", []byte(recipients(campaigns.MaxRecipients)))
	c.wants(a, http.StatusSeeOther)
	t.Logf("checked in %v", time.Since(start))
	start = time.Now()
	c.wants(c.get(a.Header.Get("Location")), http.StatusOK, "Send 100,000 messages")
	t.Logf("shown in %v", time.Since(start))
	start = time.Now()
	c.wants(c.post(a.Header.Get("Location")+"/send"), http.StatusSeeOther)
	t.Logf("begun in %v", time.Since(start))
	start = time.Now()
	w.sendAll()
	t.Logf("sent in %v", time.Since(start))
	w.counts(campaigns.MaxRecipients, `select count(*) from messages`)
	w.credits(company.ID, 0)
	w.audited()
}

package api

import (
	"fmt"
	"net/url"
	"testing"
	"time"
)

// TestUsage: a company's messages by day or month and other properties; others' are not in it.
func TestUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.sent("live", single("79123456", "ACME", "Bonjour"))
	w.sent("live", single("61123456", "ACME", "Bonjour"))
	w.sent("other", single("79123456", "ACME", "Bonjour"))
	w.exec(`UPDATE messages SET created_at = '2026-03-31T21:59:59Z', status = 1, sent_at = '2026-03-31T22:00:05Z',
		cost_center = 'sales' WHERE id = 1`)
	w.exec(`UPDATE messages SET created_at = '2026-03-31T22:00:00Z', status = 2, failed_at = '2026-03-31T22:00:05Z',
		failure_reason = 'UNDELIV 027' WHERE id = 2`)
	w.exec(`UPDATE messages SET created_at = '2026-03-31T22:00:00Z' WHERE id = 3`)
	w.exec(`DELETE FROM outbox`)
	sent, failed := `"accepted":1,"sent":1,"failed":0,"pending":0,"segments":1,"credits":1}`,
		`"accepted":1,"sent":0,"failed":1,"pending":0,"segments":1,"credits":1}`
	for query, want := range map[string]string{
		"from=2026-03-01&to=2026-04-30": `{"from":"2026-03-01","to":"2026-04-30","provisional":false,` +
			`"data":[{"day":"2026-03-31",` + sent + `,{"day":"2026-04-01",` + failed + `]}`,
		"from=2026-04-01&to=2026-04-01&by=day": `{"from":"2026-04-01","to":"2026-04-01","provisional":false,` +
			`"data":[{"day":"2026-04-01",` + failed + `]}`,
		"from=2026-03-31&to=2026-04-01&by=carrier,month,cost_center," +
			"sender": `{"from":"2026-03-31","to":"2026-04-01","provisional":false,"data":[
			{"month":"2026-03","carrier":"leo","sender":"ACME","cost_center":"sales",` + sent +
			`,{"month":"2026-04","carrier":"lumitel","sender":"ACME","cost_center":"",` + failed + `]}`,
		"from=2026-05-01&to=2027-06-04&by=month": `{"from":"2026-05-01","to":"2027-06-04","provisional":` +
			fmt.Sprint(time.Now().Before(time.Date(2027, 6, 4, 22, 0, 0, 0, time.UTC))) + `,"data":[]}`,
	} {
		got := w.do("live", "GET", "/v1/usage?"+query, "")
		if got.status != 200 {
			t.Fatalf("%s: %d %s", query, got.status, got.body)
		}
		sameJSON(t, got.body, want)
	}
	w.exec(`UPDATE messages SET status = 0 WHERE id = 2`)
	if got := w.do("live", "GET", "/v1/usage?from=2026-03-31&to=2026-03-31", ""); got.status != 200 {
		t.Error(got.body)
	} else {
		sameJSON(t, got.body, `{"from":"2026-03-31","to":"2026-03-31","provisional":false,"data":[{"day":"2026-03-31",`+sent+
			`]}`)
	}
	got := w.do("live", "GET", "/v1/usage?from=2026-04-01&to=2026-04-01", "")
	sameJSON(
		t, got.body,
		`{"from":"2026-04-01","to":"2026-04-01","provisional":true,"data":[{"day":"2026-04-01","accepted":1,"sent":0,`+
			`"failed":0,"pending":1,"segments":1,"credits":1}]}`)
	today := w.sent("live", single("79123456", "ACME", "Bonjour"))
	day := time.Now().UTC().Add(2 * time.Hour).Format(time.DateOnly)
	if got := w.do("live", "GET", "/v1/usage?from="+day+"&to="+day, ""); got.status != 200 {
		t.Error(today, got.body)
	} else {
		sameJSON(t, got.body, `{"from":"`+day+`","to":"`+day+`","provisional":true,"data":[{"day":"`+day+
			`","accepted":1,"sent":0,"failed":0,"pending":1,"segments":1,"credits":1}]}`)
	}

	const by, period = "The by must be day or month, and may add carrier, sender and cost_center, separated by commas.",
		"The to must not be before the from, and the period must not exceed 400 days."
	for query, want := range map[string]string{
		"": fails("The from field is required.", "from", "The from field is required.", "to",
			"The to field is required."),
		"from=2026-03-01":               failsFirst("to", "The to field is required."),
		"from=1+March&to=2026-03-01":    failsFirst("from", "The from must be a day such as 2026-03-01."),
		"from=2026-03-01&to=2026-02-30": failsFirst("to", "The to must be a day such as 2026-03-31."),
		"from=2026-03-01T00:00:00Z&to=2026-03-30": failsFirst(
			"from", "The from must be a day such as 2026-03-01."),
		"from=2026-03-02&to=2026-03-01": failsFirst("to", period),
		"from=2026-01-01&to=2027-02-05": failsFirst("to", period),
		"from=2026-03-01&to=2026-03-02&by=": failsFirst(
			"by", "The by parameter must not be empty."),
		"from=2026-03-01&to=2026-03-02&by=carrier":                               failsFirst("by", by),
		"from=2026-03-01&to=2026-03-02&by=day,month":                             failsFirst("by", by),
		"from=2026-03-01&to=2026-03-02&by=day,carrier,carrier":                   failsFirst("by", by),
		"from=2026-03-01&to=2026-03-02&by=day," + url.QueryEscape("sender;drop"): failsFirst("by", by),
		"from=2026-03-01&to=2026-03-02&by=day,company":                           failsFirst("by", by),
		"from=2026-03-01&to=2026-03-02&carrier=leo": failsFirst(
			"carrier", "The carrier parameter is not known."),
	} {
		got := w.do("live", "GET", "/v1/usage?"+query, "")
		if got.status != 422 {
			t.Errorf("%s: %d", query, got.status)
		}
		sameJSON(t, got.body, want)
	}

	w.exec(`INSERT INTO tallies (company_id, day, chunk, carrier, sender, kind, channel, cost_center, status, reason,
		messages, segments)
		SELECT $1, '2026-06-01', -1, 'leo', 'S' || i, 0, 0, '', 1, '', 1, 1 FROM generate_series(1, 10001) i`,
		w.company["live"])
	if got := w.do("live", "GET", "/v1/usage?from=2026-06-01&to=2026-06-01&by=day,sender", ""); got.status != 422 {
		t.Errorf("%d %s", got.status, got.body)
	} else {
		sameJSON(
			t, got.body, failsFirst("by", "The report has more than 10000 rows. Ask for fewer days or fewer properties."))
	}
}

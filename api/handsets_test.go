package api

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/inbound/handsets"
)

// optOut adds a number to a customer's opt-out list, as an MO would.
func (w *world) optOut(customer, number, sender string) {
	w.t.Helper()
	w.exec(`UPDATE companies SET opt_outs = true WHERE id = $1`, w.company[customer])
	w.exec(`INSERT INTO opt_outs (company_id, phone_number, sender, source) VALUES ($1, $2, $3, 'handset')`,
		w.company[customer], number, sender)
	w.deps.Holders.ForgetCompany(fmt.Sprint(w.company[customer])) // as the notice does
}

// A recipient who opted out gets nothing from that sender of that company, free of charge; other sends are not
// affected.
func TestOptedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	w.sender("live", "OTHER", "", true)
	const out, all, free = "+25779123401", "+25779123402", "+25779123403"
	single := func(sender, number string) string {
		return fmt.Sprintf(`{"phone_number":%q,"sender":%q,"message":"Amahoro"}`, number, sender)
	}
	if got := w.do("live", "POST", "/v1/sms", single("ACME", out)); got.status != 200 {
		t.Fatalf("before: %d %s", got.status, got.body)
	}
	w.optOut("live", out, "ACME")
	w.optOut("live", all, "")
	before := w.recorded()
	credits := func() int64 { return w.count(`SELECT credits FROM balances WHERE company_id = $1`, w.company["live"]) }
	had := credits()
	bulk := func(numbers ...string) string {
		var items []string
		for _, n := range numbers {
			items = append(items, fmt.Sprintf(`{"phone_number":%q,"message":"Amahoro"}`, n))
		}
		return `{"sender":"ACME","messages":[` + strings.Join(items, ",") + `]}`
	}
	template := func(numbers ...string) string {
		var items []string
		for _, n := range numbers {
			items = append(items, fmt.Sprintf(`{"phone_number":%q,"variables":{}}`, n))
		}
		return `{"sender":"ACME","template":"Amahoro","recipients":[` + strings.Join(items, ",") + `]}`
	}
	many := make([]string, 60)
	for i := range many {
		many[i] = out
	}
	var named []string
	for i := range 50 {
		named = append(named, fmt.Sprint("#", i+1))
	}
	const one = "The recipient has opted out of messages from this sender."
	gone := func(numbers ...string) (list []any) { // positions and numbers in turn
		for i := 0; i < len(numbers); i += 2 {
			position, _ := strconv.Atoi(numbers[i])
			list = append(list, map[string]any{"recipient": position, "phone_number": numbers[i+1]})
		}
		return list
	}
	var all60 []string
	for i := range many {
		all60 = append(all60, strconv.Itoa(i+1), out)
	}
	for _, c := range []struct {
		path, body, want string
		list             []any
	}{
		{"/v1/sms", single("ACME", out), one, nil},
		{"/v1/sms", single("ACME", all), one, nil},
		{"/v1/sms", single("OTHER", all), one, nil},
		// before the credits
		{"/v1/sms", strings.Replace(single("ACME", out), "Amahoro", strings.Repeat("x", 600), 1), one, nil},
		{"/v1/sms/bulk", bulk(free, out), "Recipient #2 has opted out of messages from this sender.", gone("2", out)},
		{"/v1/sms/bulk", bulk(out, free, all), "Recipients #1 and #3 have opted out of messages from this sender.",
			gone("1", out, "3", all)},
		{"/v1/sms/bulk", bulk(out, out, free, all), "Recipients #1, #2 and #4 have opted out of messages from this sender.",
			gone("1", out, "2", out, "4", all)},
		{"/v1/sms/bulk", bulk(many...), "Recipients " + strings.Join(named, ", ") +
			" and 10 more have opted out of messages from this sender.", gone(all60...)},
		{"/v1/sms/template", template(out, free), "Recipient #1 has opted out of messages from this sender.", gone("1", out)},
	} {
		got := w.do("live", "POST", c.path, c.body, "Idempotency-Key", "k")
		if got.status != 400 || got.header.Get("X-Error-Code") != "opted_out" {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.status, got.header.Get("X-Error-Code"))
		}
		want := map[string]any{"message": c.want}
		if c.list != nil {
			want["opted_out"] = c.list
		}
		sameJSON(t, got.body, encode(want))
	}
	if w.recorded() != before || credits() != had {
		t.Errorf("recorded %v, before %v; %d credits of %d", w.recorded(), before, credits(), had)
	}
	// Earlier rules refuse first; the opt-out list is not read.
	for _, c := range []struct{ path, body, want string }{
		{"/v1/sms", single("NEWS", all), "The sender must be approved before sending messages."},
		{"/v1/sms/template", strings.Replace(template(out), "Amahoro", "{{x}}", 1),
			"Recipient #1 is missing required template variables: x."},
	} {
		sameJSON(t, w.do("live", "POST", c.path, c.body).body, messageJSON(c.want))
	}
	// Another sender, number or company, the test sender and the sandbox are not affected.
	w.testNumber("live", all)
	for _, c := range []struct{ customer, body string }{
		{"live", single("OTHER", out)}, {"live", single("ACME", free)}, {"other", single("ACME", out)},
		{"live", single(testSender, all)}, {"live", single(testSender, "+25701000001")},
	} {
		if got := w.do(c.customer, "POST", "/v1/sms", c.body); got.status != 200 {
			t.Errorf("%s %s: %d %s", c.customer, c.body, got.status, got.body)
		}
	}
	// A refusal leaves the idempotency key free. A request accepted before the opt-out is repeated under its key.
	sent := w.do("live", "POST", "/v1/sms", single("ACME", free), "Idempotency-Key", "sent")
	w.optOut("live", free, "ACME")
	again := w.do("live", "POST", "/v1/sms", single("ACME", free), "Idempotency-Key", "sent")
	if again.status != 200 || again.body != sent.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("repeated: %d %s, first %s", again.status, again.body, sent.body)
	}
	if got := w.do("live", "POST", "/v1/sms", single("ACME", free), "Idempotency-Key", "refused"); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.do("live", "DELETE", "/v1/opt-outs/"+free, ""); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := w.do("live", "POST", "/v1/sms", single("ACME", free), "Idempotency-Key", "refused"); got.status != 200 {
		t.Errorf("after it was taken off: %d %s", got.status, got.body)
	}
}

// A company changes its own opt-out list, one entry or many at once, with harmless repetitions, and reads it in pages.
func TestOptOutList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	add := func(body, want string) {
		t.Helper()
		got := w.do("live", "POST", "/v1/opt-outs", body)
		if got.status != 200 {
			t.Fatalf("%s: %d %s", body, got.status, got.body)
		}
		sameJSON(t, got.body, want)
	}
	add(`{"phone_number":"79 12 34 01","sender":"ACME"}`, `{"added":1,"unchanged":0}`)
	add(`{"phone_number":"+25779123401","sender":"ACME"}`, `{"added":0,"unchanged":1}`)
	add(
		`{"opt_outs":[{"phone_number":"79123401","sender":"ACME"},{"phone_number":"79123402"},{"phone_number":"79123403",`+
			`"sender":null},{"phone_number":"79123402"}]}`, `{"added":2,"unchanged":2}`)
	add(`{"phone_number":"79123404","opt_outs":null}`, `{"added":1,"unchanged":0}`)
	list := func(customer, query string) (numbers string, cursor string) {
		t.Helper()
		rows, cursor := listed[struct {
			Number string  `json:"phone_number"`
			Sender *string `json:"sender"`
			Source string  `json:"source"`
		}](w, customer, "/v1/opt-outs?"+query)
		for _, e := range rows {
			numbers += " " + e.Number[8:]
			if e.Sender != nil {
				numbers += *e.Sender
			}
			if e.Source != "api" {
				t.Errorf("source %q", e.Source)
			}
		}
		return numbers, cursor
	}
	for query, want := range map[string]string{"": " 3404 3403 3402 3401ACME", "sender=ACME": " 3401ACME",
		"phone_number=79123402": " 3402", "phone_number=79123402&sender=ACME": ""} {
		if got, _ := list("live", query); got != want {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
	}
	first, cursor := list("live", "limit=3")
	rest, end := list("live", "limit=3&cursor="+cursor)
	if first+rest != " 3404 3403 3402 3401ACME" || end != "" {
		t.Errorf("pages %q and %q, %q", first, rest, end)
	}
	if got, _ := list("other", ""); got != "" {
		t.Errorf("another's: %q", got)
	}
	for _, c := range []struct { // in this order: a removed entry cannot be removed again
		path   string
		status int
	}{
		{"%2B25779123401?sender=OTHER", 404}, {"79123401?sender=ACME", 200}, {"+25779123401?sender=ACME", 404},
		{"+25779123402", 200}, {"+25779123409", 404},
	} {
		if got := w.do("live", "DELETE", "/v1/opt-outs/"+c.path, ""); got.status != c.status {
			t.Errorf("DELETE %s: %d %s, want %d", c.path, got.status, got.body, c.status)
		}
	}
	if got := w.do("other", "DELETE", "/v1/opt-outs/+25779123403", ""); got.status != 404 {
		t.Errorf("another's was removed: %d", got.status)
	}
	if got, _ := list("live", ""); got != " 3404 3403" {
		t.Errorf("left %q", got)
	}
	for _, wrong := range []struct{ method, path, allow string }{{"PUT", "/v1/opt-outs", "GET, HEAD, POST"},
		{"GET", "/v1/opt-outs/79123401", "DELETE"}, {"POST", "/v1/inbound", "GET, HEAD"}} {
		if got := w.do("live", wrong.method, wrong.path, ""); got.status != 405 || got.header.Get("Allow") != wrong.allow {
			t.Errorf("%s %s: %d, Allow %q", wrong.method, wrong.path, got.status, got.header.Get("Allow"))
		}
	}
}

// Invalid requests for the list get the usual texts.
func TestOptOutsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	items := strings.TrimSuffix(strings.Repeat(`{"phone_number":"79123401"},`, 501), ",")
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{}`, 422,
			`{"message":"The phone number is required.","errors":{"phone_number":["The phone number is required."]}}`},
		{`{"phone_number":"22123401","sender":"A B"}`, 422,
			`{"message":"The phone number must be a valid Burundi (+257) number.","errors":{"phone_number":["The phone ` +
				`number must be a valid Burundi (+257) number."],"sender":["The sender must be 1-11 alphanumeric characters."]}}`},
		{`{"phone_number":"79123401","sender":7}`, 422,
			`{"message":"The sender must be 1-11 alphanumeric characters.","errors":{"sender":["The sender must be 1-11 ` +
				`alphanumeric characters."]}}`},
		{`{"opt_outs":[]}`, 422,
			`{"message":"The given data was invalid.","errors":{"opt_outs":["The opt_outs field must contain at least one ` +
				`item."]}}`},
		{`{"opt_outs":7}`, 422,
			`{"message":"The given data was invalid.","errors":{"opt_outs":["The opt_outs field must contain at least one ` +
				`item."]}}`},
		{`{"opt_outs":[` + items + `]}`, 422,
			`{"message":"The given data was invalid.","errors":{"opt_outs":["The opt_outs field must not contain more than ` +
				`500 items."]}}`},
		{`{"opt_outs":[{"phone_number":"79123401"},{"sender":"-"},7,{"phone_number":"1"}]}`, 422,
			`{"message":"The given data was invalid.","errors":{
			"opt_outs.1.phone_number":["The opt_outs.1.phone_number field is required."],"opt_outs.1.sender":["The ` +
				`opt_outs.1.sender field must be 1-11 alphanumeric characters."],
			"opt_outs.2.phone_number":["The opt_outs.2.phone_number field is required."],"opt_outs.3.phone_number":["The ` +
				`opt_outs.3.phone_number field must be a valid Burundi (+257) number."]}}`},
		{`{"phone_number":"79123401","sender":"UNKNOWN"}`, 400, messageJSON("Sender not found.")},
		{`{"opt_outs":[{"phone_number":"79123401","sender":"acme"}]}`, 400, messageJSON("Sender not found.")},
		{`{`, 400, messageJSON("The request body is not valid JSON.")},
	} {
		got := w.do("live", "POST", "/v1/opt-outs", c.body)
		if got.status != c.status {
			t.Errorf("%.80s: %d", c.body, got.status)
		}
		sameJSON(t, got.body, c.want)
	}
	for path, want := range map[string]string{
		"/v1/opt-outs?sender=A-B":     "The sender must be 1-11 alphanumeric characters.",
		"/v1/opt-outs?phone_number=1": "The phone number must be a valid Burundi (+257) number.",
		"/v1/opt-outs?limit=0":        "The limit must be between 1 and 100.",
		"/v1/opt-outs?cursor=x":       "The cursor is not valid.",
		"/v1/opt-outs?number=1":       "The number parameter is not known.",
		"/v1/inbound?from=x":          "The from must be a date and time such as 2026-03-01T10:00:00+02:00.",
		"/v1/inbound?status=sent":     "The status parameter is not known.",
	} {
		if got := w.do("live", "GET", path, ""); got.status != 422 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := w.do("live", "DELETE", "/v1/opt-outs/unknown", ""); got.status != 422 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := w.count(`SELECT count(*) FROM opt_outs`); n != 0 {
		t.Errorf("%d entries", n)
	}
}

// A company reads the MOs to its own numbers, in pages.
func TestInboundList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	start := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	var ids []int64
	for i := range 5 {
		text := fmt.Sprint("m", i)
		body := &text
		if i == 4 {
			body = nil
		}
		id, err := w.deps.Handsets.Insert(t.Context(),
			handsets.Message{CompanyID: w.company["live"], At: start.Add(time.Duration(i) * time.Hour), Carrier: "lumitel",
				From: fmt.Sprint("+2577912340", i%2), To: "8080", Body: body, Parts: 1})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	view := func(i int, message string) string {
		return fmt.Sprintf(`{"inbound_id":%d,"from":"+2577912340%d","to":"8080","message":%s,"received_at":"TIME"}`, ids[i],
			i%2, message)
	}
	page := func(cursor string, views ...string) string {
		return `{"data":[` + strings.Join(views, ",") + `],"next_cursor":` + cursor + `}`
	}
	w.gets("live", "/v1/inbound", 200, page("null", view(4, "null"), view(3, `"m3"`), view(2, `"m2"`), view(1, `"m1"`),
		view(0, `"m0"`)))
	w.gets("live", "/v1/inbound?phone_number=79123401", 200, page("null", view(3, `"m3"`), view(1, `"m1"`)))
	w.gets("live", "/v1/inbound?phone_number=%2B32479000001", 200, page("null"))
	w.gets("live", "/v1/inbound?phone_number=12", 422,
		failsFirst("phone_number", "The phone number must be a valid Burundi (+257) number."))
	w.gets("live", "/v1/inbound?from=2026-03-01T10:00:00%2B01:00&to=2026-03-01T11:00:00Z", 200,
		page("null", view(2, `"m2"`), view(1, `"m1"`)))
	w.gets("other", "/v1/inbound", 200, page("null"))
	w.gets("live", fmt.Sprint("/v1/inbound/", ids[2]), 200, view(2, `"m2"`))
	w.gets("other", fmt.Sprint("/v1/inbound/", ids[2]), 404, messageJSON("Not found."))
	for _, id := range []string{"0", "-1", "x", "99999999999999999999"} {
		w.gets("live", "/v1/inbound/"+id, 404, messageJSON("Not found."))
	}
	for _, id := range []int64{1 << 40, ids[4]} { // unknown, and another company's
		cursor := cursorOf(inboundList, id)
		w.gets(map[bool]string{true: "other", false: "live"}[id == ids[4]], "/v1/inbound?cursor="+cursor, 422,
			failsFirst("cursor", "The cursor is not valid."))
	}
	var seen string
	all, _ := walk[struct {
		ID int64 `json:"inbound_id"`
	}](w, "live", "/v1/inbound?limit=2")
	for _, m := range all {
		seen += fmt.Sprint(" ", m.ID)
	}
	if want := fmt.Sprint(" ", ids[4], " ", ids[3], " ", ids[2], " ", ids[1], " ", ids[0]); seen != want {
		t.Errorf("pages have%s, want%s", seen, want)
	}
}

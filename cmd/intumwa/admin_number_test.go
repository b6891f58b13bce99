package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/configs"
	"intumwa/webhooks"
)

// lines runs a command that prints JSON lines and groups them by kind.
func (s *shell) lines(args ...string) map[string][]map[string]any {
	s.t.Helper()
	code, stdout, stderr := s.run("", append([]string{"admin"}, args...)...)
	if code != exitOK || stderr != "" {
		s.t.Fatalf("%v: %d %s", args, code, stderr)
	}
	kinds := map[string][]map[string]any{}
	for line := range strings.Lines(stdout) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			s.t.Fatalf("%q: %v", line, err)
		}
		kind, _ := object["kind"].(string)
		kinds[kind] = append(kinds[kind], object)
	}
	return kinds
}

// TestNumberArgument: commands read a number as the API does, also as a phone or a spreadsheet copies it.
func TestNumberArgument(t *testing.T) {
	o := &operator{config: &configs.Config{}}
	for _, typed := range []string{"79123412", "\u200e+257\u00a079\u201112\u201134\u201112", `="79123412"`, "79.12.34.12",
		"tel:+257-79-12-34-12"} {
		about, err := (&numberFlags{Number: typed}).parse(o)
		if err != nil || !about.valid || about.Number.Number != "+25779123412" || about.Forms[0] != "+25779123412" {
			t.Errorf("%q: %+v, %v", typed, about, err)
		}
	}
	for _, typed := range []string{"7912341.0", "2.5779E+10", "79123412 79123413"} { // nobody erases a stranger's data
		if about, err := (&numberFlags{Number: typed}).parse(o); err == nil {
			t.Errorf("%q: %+v", typed, about)
		}
	}
	if about, err := (&numberFlags{Number: "8080"}).parse(o); err != nil || about.valid || about.Number.Number != "" {
		t.Errorf("a short code: %+v, %v", about, err)
	}
}

// TestEraseNumber: everything that is kept of a number is exported. Final messages are erased; pending ones are
// reported and erased by a later run. The audit entries do not contain the number.
func TestEraseNumber(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	s.admin("", "company_id url secret active", "webhook", "set", "--company", company, "--url", "http://127.0.0.1:1/hook")
	pool := s.pool()
	const number, other = "+25779123412", "+25779123413"
	message := func(to string, status int, text string) (id int64) {
		t.Helper()
		err := pool.QueryRow(t.Context(), `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body,
			encoding, segments, test, carrier, status)
			VALUES (gen_random_uuid(), 1, 1, $1, 'DEMO', $3, 0, 1, false, 'lumitel', $2) RETURNING id`, to, status, text).Scan(
			&id)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	done, _, pending, undelivered, others := message(number, 1, "first"), message(number, 2, "second"),
		message(number, 0, "third"), message(number, 1, "fourth"), message(other, 1, "another's")
	s.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at)
		VALUES ($1, 1, 'lumitel', 0, now() + interval '1 hour')`, pending)
	hooks := webhooks.New(pool, webhooks.Options{})
	// its events are recorded to be fetched
	s.exec(`INSERT INTO event_readers (company_id, since, ready) VALUES (1, now(), true)`)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		var events []webhooks.Event
		for _, id := range []int64{done, undelivered, others} {
			to := number
			if id == others {
				to = other
			}
			events = append(events, webhooks.Event{CompanyID: 1, MessageID: id, Name: webhooks.Sent, PhoneNumber: to})
		}
		return hooks.Enqueue(t.Context(), tx, events)
	})
	if err != nil {
		t.Fatal(err)
	}
	s.exec(`UPDATE webhook_deliveries SET delivered = true, due = NULL WHERE id <> $1`, undelivered*8)
	s.exec(`UPDATE webhook_undelivered SET due = now() + interval '5 minutes', tries = 1`)
	s.exec(`UPDATE webhook_deliveries SET attempts = json_build_array(json_build_object('at', now(), 'ms', 5, 'status',
		500, 'result', '5xx', 'excerpt', 'no such number: ' || phone_number))`)
	s.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, handset, state, error, outcome)
		VALUES ('lumitel', 'l', 'k', 'k', '25779123412', 79123412, 'DELIVRD', '', 'unmatched')`)
	s.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets)
		VALUES ('lumitel', 'l', '25779123412', '1234', 0, 0, 'STOP', 'STOP')`)
	written := message(other, 1, "an id")
	s.exec(`DELETE FROM messages WHERE id = $1`, written)
	s.exec(`INSERT INTO inbound_messages (id, company_id, received_at, carrier, source, destination, body, parts)
		VALUES ($1, 1, now(), 'lumitel', $2, '1234', 'Yego', 1)`, written, number)
	s.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets, outcome,
		message_id) VALUES ('lumitel', 'l', '25779123412', '1234', 0, 0, 'Yego', 'Yego', 'routed', $1)`, written)
	s.exec(`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data)
		VALUES (1, $1 * 8 + 2, now(), $2,
		'{"inbound_id":1,"from":"+25779123412","to":"1234","message":"Yego","received_at":"2026-03-01T10:00:00+02:00"}')`,
		written, number)
	s.exec(`UPDATE webhook_deliveries SET delivered = false, due = now() WHERE id = $1 * 8 + 2`, written)
	s.exec(`INSERT INTO events (company_id, id, at, position, phone_number, data) SELECT company_id, id, at, -1,
		phone_number, data FROM webhook_deliveries WHERE data IS NOT NULL`)
	s.exec(`INSERT INTO events (company_id, id, at, position, phone_number, data) VALUES (1, $1 * 8 + 10, now(), 5, $2,
		'{"inbound_id":1,"from":"+25779123412","to":"1234","message":"Oya"}')`, written, number)
	s.exec(`INSERT INTO concat_refs (sender, phone_number, last) VALUES ('DEMO', $1, 7)`, number)
	s.exec(`UPDATE users SET test_number = $1 WHERE id = 1`, number)
	s.exec(`INSERT INTO test_number_codes (user_id, phone_number, secret, created_at)
		VALUES (1, $1, '', now() - interval '2 days')`, number)

	s.exec(`INSERT INTO smpp_deliveries (account, phone_number, address, at, body) VALUES (1, $1, '1234', now(), 'Yego'),
		(1, '+25779123413', '1234', now(), 'another''s')`, number)

	s.exec(`INSERT INTO exports (company_id, month, language, operators, bodies, expires_at, done_at)
		VALUES (1, '2026-03-01', 'en', false, true, now() + interval '1 day', now())`)
	s.exec(`INSERT INTO export_pieces (export_id, n, content) VALUES (1, 0, '25779123412')`)
	verification := func(state int) {
		t.Helper()
		s.exec(`INSERT INTO verifications (ulid, company_id, user_id, phone_number, sender, locale, secret, test, expires_at,
			state, message, carrier)
			VALUES (gen_random_uuid(), 1, 1, $1, 'DEMO', 'fr', '\x06', false, now(), $2, gen_random_uuid(), 'lumitel')`, number,
			state)
	}
	verification(0)
	verification(1)
	finished := fmt.Sprintf(
		`{"verification_id":"01JNA2K3M4N5P6Q7R8S9T0V1W2","phone_number":%q,"status":"approved",`+
			`"finished_at":"2026-03-01T08:02:11+00:00","sends":1,"wrong_checks":0`, number)
	s.exec(`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data, delivered)
		VALUES (1, 900 * 8 + 7, now(), $1, $2, true)`, number, finished+`,"client_reference":"login 7"}`)

	s.exec(`INSERT INTO contacts (company_id, phone_number, name, fields) VALUES (1, $1, 'Aline', '{"classe": "3"}')`, number)
	s.exec(`INSERT INTO contact_books (company_id, contacts, fields) VALUES (1, 1, '{classe}')`)
	s.exec(`INSERT INTO campaigns (ulid, company_id, name, sender, template, reading)
		VALUES ('00000000-0000-0000-0000-000000000001', 1, '', '', '', '{}')`)
	s.exec(`INSERT INTO campaign_rows (campaign, n, line, number, variables, segments, ucs2, opted_out, repeated)
		VALUES ('00000000-0000-0000-0000-000000000001', 1, 1, $1, '{}', 1, false, false, false)`, number)

	about := func(verb string) []string {
		return []string{"number", verb, "--number", "79 12 34 12", "--reason", "request 17"}
	}
	kinds := s.lines(about("export")...)
	if len(kinds["message"]) != 4 || len(kinds["receipt"]) != 1 || len(kinds["inbound"]) != 2 ||
		len(kinds["event"]) != 3 || kinds["event"][2]["state"] != "fetched" || len(kinds["verification"]) != 2 ||
		strings.Contains(fmt.Sprint(kinds["verification"]), "secret") || len(kinds["bind"]) != 1 ||
		kinds["bind"][0]["message"] != "Yego" || len(kinds["test_number"]) != 1 || len(kinds["contact"]) != 1 ||
		kinds["contact"][0]["name"] != "Aline" {
		t.Errorf("%v", kinds)
	}
	for i, text := range []string{"fourth", "third", "second", "first"} {
		if m := kinds["message"][i]; m["message"] != text || m["to"] != number || m["segments"] == nil {
			t.Errorf("%v, want %s", m, text)
		}
	}

	erase := func(code int, want string) {
		t.Helper()
		got, stdout, stderr := s.run("", append(append([]string{"admin"}, about("erase")...), "--json")...)
		if got != code || strings.TrimSpace(stdout) != want || (code == exitOK) != (stderr == "") ||
			strings.Contains(stdout+stderr, "123412") {
			t.Errorf("exit code %d, %s, %s; want %s", got, stdout, stderr, want)
		}
	}
	erase(
		exitError,
		`{"number":"+25779****12","messages":2,"pending":5,"receipts":0,"inbound":0,"binds":1,"events":2,"test_codes":1,`+
			`"verifications":1,"test_numbers":1,"contacts":1,"exports":1}`)
	s.holds(`SELECT count(*) FROM messages WHERE phone_number = '+2577XXXXX12' AND body = ''`, 2)
	s.holds(`SELECT count(*) FROM webhook_deliveries WHERE phone_number = '+2577XXXXX12'`, 2)
	s.holds(`SELECT count(*) FROM webhook_deliveries WHERE attempts IS NOT NULL AND attempts::text NOT LIKE '%excerpt%'`,
		1)
	s.holds(`SELECT count(*) FROM export_pieces`, 0)
	s.holds(`SELECT count(*) FROM events WHERE phone_number = '+2577XXXXX12'`, 2)
	s.holds(`SELECT count(*) FROM receipts`, 1) // it may settle the pending one
	s.exec(`UPDATE verifications SET state = 3`)
	s.holds(
		`SELECT count(*) FROM webhook_deliveries WHERE id = 900 * 8 + 7 AND phone_number = '+2577XXXXX12' AND data = '`+
			strings.Replace(finished, number, "+2577XXXXX12", 1)+`}'`, 1)
	s.exec(`UPDATE messages SET status = 2 WHERE id = $1`, pending)
	s.exec(`DELETE FROM outbox`)
	s.exec(`UPDATE inbound SET outcome = 'unrouted' WHERE outcome IS NULL`)
	s.holds(`SELECT count(*) FROM webhook_deliveries WHERE data LIKE '%Yego%' AND phone_number = '`+number+`'`, 1)
	s.holds(`SELECT count(*) FROM inbound_messages`, 1)
	s.exec(`UPDATE webhook_deliveries SET delivered = true, due = NULL`)
	erase(
		exitOK,
		`{"number":"+25779****12","messages":2,"pending":0,"receipts":1,"inbound":2,"binds":0,"events":1,"test_codes":0,`+
			`"verifications":1,"test_numbers":1,"contacts":0,"exports":0}`)
	erase(
		exitOK,
		`{"number":"+25779****12","messages":0,"pending":0,"receipts":0,"inbound":0,"binds":0,"events":0,"test_codes":0,`+
			`"verifications":0,"test_numbers":1,"contacts":0,"exports":0}`)
	s.holds(`SELECT count(*) FROM events WHERE phone_number = '`+number+`' OR data ~ '79123412|Yego|Oya'`, 0)
	if _, shown, _ := s.run("", append([]string{"admin"}, about("erase")...)...); !strings.HasPrefix(
		shown, "number         +25779****12\nmessages       0\n") {
		t.Errorf("without --json: %q", shown)
	}
	s.holds(`SELECT (SELECT count(*) FROM contacts) + (SELECT count(*) FROM campaign_rows)`, 0)
	s.holds(`SELECT (SELECT count(*) FROM receipts) + (SELECT count(*) FROM concat_refs) + (SELECT count(*) FROM messages
		WHERE phone_number = '`+number+`')`, 0)
	s.holds(`SELECT count(*) FROM messages WHERE phone_number = '`+other+`' AND body <> ''`, 1)
	s.holds(`SELECT count(*) FROM webhook_deliveries WHERE phone_number = '`+other+`'`, 1)
	if kinds := s.lines(about("export")...); len(kinds) != 1 || len(kinds["test_number"]) != 1 {
		t.Errorf("after it was erased: %v", kinds)
	}

	log := s.list("log")
	for _, act := range log {
		if text := fmt.Sprint(act); strings.Contains(text, "123412") || strings.Contains(text, "79 12 34 12") {
			t.Errorf("the record has the number: %s", text)
		}
	}
	if log[0]["act"] != "number.export.done" || log[0]["subject"] != "number +25779****12" ||
		!strings.Contains(fmt.Sprint(log[0]["after"]), "request 17") {
		t.Errorf("%v", log[0])
	}
	s.refused("not a valid", "", "admin", "number", "erase", "--number", "12")
}

// TestErasePurgedNumber: webhooks that name a number are exported and erased also after their message is purged, MO or
// MT. Undelivered ones are reported.
func TestErasePurgedNumber(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	s.admin("", "company_id url secret active", "webhook", "set", "--company", company, "--url", "http://127.0.0.1:1/hook")
	const number, other = "+25779123412", "+25761000000"
	received := func(id int, from, to, text string) {
		t.Helper()
		s.exec(
			`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data) VALUES (1, $1 * 8 + 2, now(), $2, $3)`, id,
			from,
			fmt.Sprintf(`{"inbound_id":%d,"from":%q,"to":%q,"message":%q,"received_at":"2026-03-01T10:00:00+02:00"}`, id, from,
				to, text))
	}
	received(101, number, "8080", "Amakuru")
	received(102, other, "8080", "Yego")
	received(103, other, "25779123412", "Oya") // to the number, and kept
	s.exec(`INSERT INTO inbound_messages (id, company_id, received_at, carrier, source, destination, body, parts)
		VALUES (103, 1, now(), 'lumitel', $1, '25779123412', 'Oya', 1)`, other)
	s.exec(`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, labels)
		VALUES (1, 90 * 8, now(), $1, 'patient 7'), (1, 91 * 8 + 1, now(), $2, 'patient 8')`, number, other)
	received(104, number, "8080", "Ego") // undelivered
	s.exec(`UPDATE webhook_deliveries SET delivered = false, due = now() WHERE id = 104 * 8 + 2`)
	s.exec(`UPDATE webhook_deliveries SET attempts = json_build_array(json_build_object('at', now(), 'ms', 5, 'status',
		500, 'result', '5xx', 'excerpt', 'no such number: ' || phone_number))`)
	s.exec(`INSERT INTO sweeps (name, up_to) VALUES ('purge messages', 100)`) // messages already purged

	about := func(verb string) []string {
		return []string{"number", verb, "--number", number, "--reason", "request 18"}
	}
	var shown []string
	for _, e := range s.lines(about("export")...)["event"] {
		shown = append(shown, fmt.Sprint(e["event"], " ", strings.Contains(fmt.Sprint(e["body"]), number)))
	}
	if got := strings.Join(shown, ", "); got != "sms.received true, sms.sent true, sms.received true" {
		t.Errorf("shown are %s", got)
	}
	erase := func(code int, want string) {
		t.Helper()
		if got, stdout, stderr := s.run("", append(append([]string{"admin"}, about("erase")...), "--json")...); got != code ||
			strings.TrimSpace(stdout) != want {
			t.Errorf("exit code %d, %s, %s; want %s", got, stdout, stderr, want)
		}
	}
	const named = `SELECT count(*) FROM webhook_deliveries WHERE phone_number || coalesce(data, '') LIKE '%79123412%'`
	erase(
		exitError,
		`{"number":"+25779****12","messages":0,"pending":1,"receipts":0,"inbound":0,"binds":0,"events":3,"test_codes":0,`+
			`"verifications":0,"test_numbers":0,"contacts":0,"exports":0}`)
	s.holds(named, 1)
	s.exec(`UPDATE webhook_deliveries SET delivered = true, due = NULL`)
	erase(
		exitOK,
		`{"number":"+25779****12","messages":0,"pending":0,"receipts":0,"inbound":0,"binds":0,"events":1,"test_codes":0,`+
			`"verifications":0,"test_numbers":0,"contacts":0,"exports":0}`)
	erase(
		exitOK,
		`{"number":"+25779****12","messages":0,"pending":0,"receipts":0,"inbound":0,"binds":0,"events":0,"test_codes":0,`+
			`"verifications":0,"test_numbers":0,"contacts":0,"exports":0}`)
	s.holds(named, 0)
	// another number's
	s.holds(`SELECT count(*) FROM webhook_deliveries WHERE labels = 'patient 8' OR data LIKE '%Yego%'`, 2)
	s.holds(`SELECT count(*) FROM webhook_deliveries WHERE labels = 'patient 7' OR data LIKE '%Amakuru%'
		OR data LIKE '%Ego%' OR data LIKE '%Oya%'`, 0)
	s.holds(`SELECT count(*) FROM webhook_deliveries WHERE id = 103 * 8 + 2 AND phone_number = '`+other+
		`' AND data LIKE '%"from":"`+other+`"%"to":"+2577XXXXX12"%'`, 1)
	s.holds(`SELECT count(*) FROM webhook_deliveries WHERE attempts::text LIKE '%excerpt%'`, 2)
	if kinds := s.lines(about("export")...); len(kinds) != 0 {
		t.Errorf("after it was erased: %v", kinds)
	}
}

// TestCompanyBounds: a company's own limits and retention of texts are set, shown, audited and removed.
func TestCompanyBounds(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	const flags = "company_id approved verified smart_encoding "
	set := s.admin("", flags+"daily_cap repeat_seconds repeats_a_day number_a_day bodies", "company", "set", "--id",
		company,
		"--daily-cap", "500", "--repeat-interval", "30s", "--repeats-a-day", "10", "--number-a-day", "none", "--bodies",
		"final")
	if number(set["daily_cap"]) != "500" || number(set["repeat_seconds"]) != "30" ||
		number(set["repeats_a_day"]) != "10" || set["number_a_day"] != nil || set["bodies"] != "final" {
		t.Errorf("%v", set)
	}
	shown := s.admin("", "company_id name owner_id owner approved verified smart_encoding credits senders webhook "+
		"spent_today daily_cap repeat_seconds repeats_a_day number_a_day bodies facts", "company", "show", "--id", company)
	if number(shown["daily_cap"]) != "500" || shown["number_a_day"] != nil || shown["bodies"] != "final" ||
		number(shown["spent_today"]) != "0" {
		t.Errorf("%v", shown)
	}
	if code, text, _ := s.run("", "admin", "company", "set", "--id", company, "--number-a-day", "none"); code != exitOK ||
		!regexp.MustCompile(`(?m)^number_a_day +none$`).MatchString(text) {
		t.Errorf("exit code %d, %s", code, text)
	}
	set = s.admin("", flags+"daily_cap repeat_seconds repeats_a_day number_a_day bodies", "company", "set", "--id",
		company, "--daily-cap", "none", "--bodies", "720h")
	if set["bodies"] != "720h0m0s" {
		t.Errorf("%v", set)
	}
	act := s.list("log")[0]
	before, _ := json.Marshal(act["before"])
	after, _ := json.Marshal(act["after"])
	if !strings.Contains(string(before), `"daily_cap":500`) || !strings.Contains(string(before), `"bodies":"final"`) ||
		!strings.Contains(string(after), `"daily_cap":null`) || !strings.Contains(string(after), `"bodies":"720h0m0s"`) {
		t.Errorf("%s, %s", before, after)
	}
	s.admin("", flags+"daily_cap repeat_seconds repeats_a_day number_a_day bodies", "company", "set", "--id", company,
		"--bodies", "none")
	// unchanged
	s.admin("", flags+"daily_cap repeat_seconds repeats_a_day number_a_day", "company", "set", "--id", company,
		"--approved=true")
	for _, wrong := range [][]string{{"--daily-cap", "0"}, {"--daily-cap", "-1"}, {"--daily-cap", "many"},
		{"--repeat-interval", "25h"}, {"--repeat-interval", "10ms"},
		{"--bodies", "1h"}, {"--bodies", "soon"}, {"--number-a-day", "2000000000"}} {
		if code, _, stderr := s.run("", append([]string{"admin", "company", "set", "--id", company},
			wrong...)...); code == exitOK || stderr == "" {
			t.Errorf("%v: %d %s", wrong, code, stderr)
		}
	}
	if rows := s.list("unusual"); len(rows) != 0 {
		t.Errorf("%v", rows)
	}
}

// TestForeignNumber: MO messages from a foreign number, a short code or a name are exported
// and erased, in whatever form the carrier wrote it. Messages to a short code or a name
// remain.
func TestForeignNumber(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	s.admin("", "company_id url secret active", "webhook", "set", "--company", company, "--url", "http://127.0.0.1:1/hook")
	received := func(id int, from, to string) {
		t.Helper()
		s.exec(`INSERT INTO inbound_messages (id, company_id, received_at, carrier, source, destination, body, parts)
			VALUES ($1, 1, now(), 'lumitel', $2, $3, 'Yego', 1)`, id, from, to)
		s.exec(`INSERT INTO inbound (carrier, link, source, destination, data_coding, esm_class, body, octets, outcome,
			message_id) VALUES ('lumitel', 'l', $2, $3, 0, 0, 'Yego', 'Yego', 'routed', $1)`, id, from, to)
		s.exec(
			`INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data) VALUES (1, $1 * 8 + 2, now(), $2, $3)`, id,
			from,
			fmt.Sprintf(`{"inbound_id":%d,"from":%q,"to":%q,"message":"Yego","received_at":"2026-03-01T10:00:00+02:00"}`, id,
				from, to))
	}
	received(101, "250788123456", "8080")
	received(102, "+250788123456", "8080")
	received(103, "00250788123456", "INTUMWATEST")
	received(104, "25788123456", "INTUMWATEST") // another number with the same last eight digits
	received(105, "8080", "9090")
	received(106, "MTN Promo", "9090")
	received(107, "INTUMWATEST", "9090")
	received(108, "25722001122", "9090") // a fixed line
	s.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, handset, state, error, outcome)
		VALUES ('lumitel', 'l', 'k', 'k', '25788123456', 88123456, 'DELIVRD', '', 'unmatched')`)
	left := 8
	for _, c := range []struct {
		number, masked string
		rows           int
	}{
		{"+250 788 123 456", "+250****56", 3}, {"8080", "****", 1}, {"MTN Promo", "****", 1},
		{"INTUMWATEST", "INTU****ST", 1}, {"22 00 11 22", "+25722****22", 1},
	} {
		about := func(verb string) []string {
			return []string{"number", verb, "--number", c.number, "--reason", "request 19"}
		}
		if kinds := s.lines(about("export")...); len(kinds) != 2 || len(kinds["inbound"]) != c.rows ||
			len(kinds["event"]) != c.rows {
			t.Errorf("%s: %v", c.number, kinds)
		}
		want := fmt.Sprintf(
			`{"number":%q,"messages":0,"pending":0,"receipts":0,"inbound":%d,"binds":0,"events":%d,"test_codes":0,`+
				`"verifications":0,"test_numbers":0,"contacts":0,"exports":0}`, c.masked, c.rows, c.rows)
		if code, stdout, stderr := s.run("", append(append([]string{"admin"}, about("erase")...),
			"--json")...); code != exitOK || strings.TrimSpace(stdout) != want {
			t.Errorf("%s: exit code %d, %s, %s; want %s", c.number, code, stdout, stderr, want)
		}
		left -= c.rows
		for _, table := range []string{"inbound", "inbound_messages", "webhook_deliveries WHERE data LIKE '%Yego%'"} {
			s.holds(`SELECT count(*) FROM `+table, left)
		}
	}
	s.holds(`SELECT count(*) FROM receipts`, 1) // another number's
	for _, verb := range []string{"export", "erase"} {
		// a digit is missing
		s.refused("nothing is kept of", "", "admin", "number", verb, "--number", "7912341", "--reason", "x")
		// not a mobile range
		s.refused("nothing is kept of", "", "admin", "number", verb, "--number", "+25797123412", "--reason", "x")
		s.refused("--number is empty", "", "admin", "number", verb, "--number", " ", "--reason", "x")
	}
	for _, act := range s.list("log") {
		if text := fmt.Sprint(act); strings.Contains(text, "788123456") || strings.Contains(text, "788 123 456") {
			t.Errorf("the record has the number: %s", text)
		}
	}
}

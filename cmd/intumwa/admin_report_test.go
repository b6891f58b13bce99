package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"intumwa/messages/statistics"
	"intumwa/texts"
)

// reported fills a database with a year-old month of two companies at two carriers: messages around midnight in
// Burundi, some handed over, resent, refunded or never answered; a price and a tariff that change on the 15th.
func (s *shell) reported() {
	s.t.Helper()
	for _, owner := range []string{"a", "b"} {
		if code, _, stderr := s.run("twelve green bananas", "admin", "user", "create", "--email", owner+"@example.com",
			"--name", "N", "--password-stdin"); code != exitOK {
			s.t.Fatal(stderr)
		}
		if code, _, stderr := s.run("", "admin", "company", "create", "--owner", owner+"@example.com", "--name",
			"=Isoko "+owner); code != exitOK {
			s.t.Fatal(stderr)
		}
	}
	for _, statement := range []string{
		// Days of March 2026 in Burundi begin at 22:00 UTC of the day before.
		`insert into messages (id, ulid, company_id, user_id, batch_id, phone_number, sender, body, encoding, segments, test,
			created_at, carrier, status, sent_at, failed_at)
			overriding system value select id, gen_random_uuid(), company, 1, batch, '+25779000001', 'ISOKO', 'x', 0, segments,
			test, at::timestamptz, carrier, status,
				case status when 1 then at::timestamptz end, case status when 2 then at::timestamptz end
			from (values
				(1, 1, null::bigint, 2, false, '2026-02-28 21:59:59.999Z', 'leo', 1),     -- February, submitted in March
				(2, 1, null, 1, false, '2026-02-28 22:00:00Z', 'leo', 1),         -- the first of March
				(3, 1, 1, 3, false, '2026-03-10 10:00Z', 'leo', 1),
				(4, 1, null, 1, false, '2026-03-14 22:00:00Z', 'leo', 1),         -- the 15th
				(5, 1, 1, 2, false, '2026-03-20 10:00Z', 'econet', 1),            -- leo had a segment before
				(6, 1, null, 1, true, '2026-03-20 11:00Z', 'leo', 1),             -- a test
				(7, 2, null, 4, false, '2026-03-21 10:00Z', 'leo', 2),            -- never submitted, refunded
				(8, 1, null, 1, false, '2026-03-31 21:59:59.999Z', 'leo', 1),     -- the last of March
				(9, 1, null, 1, false, '2026-03-31 22:00:00Z', 'leo', 1)          -- April
			) m(id, company, batch, segments, test, at, carrier, status)`,
		`insert into segments (message_id, segment, total, carrier, link, key, carrier_id, submitted_at, state)
			select message, segment, 1, carrier, link, key, upper(key), at::timestamptz, state from (values
				(1, 1, 'leo', 'leo-1', '1000a1', '2026-02-28 22:00:01Z', 1), (1, 2, 'leo', 'leo-1', '1000a2',
				'2026-02-28 22:00:01Z', 1),
				(2, 1, 'leo', 'leo-1', '1000a3', '2026-02-28 22:00:02Z', 1),
				(3, 1, 'leo', 'leo-2', '1000a4', '2026-03-10 10:00Z', 1), (3, 2, 'leo', 'leo-2', '1000a5', '2026-03-10 10:00Z', 1),
				(3, 3, 'leo', 'leo-2', '?7', '2026-03-10 10:00Z', null),
				(4, 1, 'leo', 'leo-1', '1000a6', '2026-03-14 22:00:01Z', 1),
				(5, 1, 'leo', 'leo-1', '1000a7', '2026-03-20 10:00Z', 2), (5, 1, 'econet', 'econet-1', '77', '2026-03-20 10:01Z',
				1), (5, 2, 'econet', 'econet-1', '78', '2026-03-20 10:01Z', 1),
				(6, 1, 'leo', 'leo-1', '1000a8', '2026-03-20 11:00Z', 1),
				(8, 1, 'leo', 'leo-1', '1000a9', '2026-03-31 21:59:59.999Z', 1),
				(9, 1, 'leo', 'leo-1', '1000aa', '2026-03-31 22:00:00Z', 1)
			) c(message, segment, carrier, link, key, at, state)`,
		`insert into ledger (company_id, kind, amount, balance_after, created_at) values
			(1, 'adjustment', 100, 100, '2026-02-01Z'), (1, 'send', -2, 98, '2026-02-28 21:59:59.999Z'), (1, 'send', -1, 97,
			'2026-02-28 22:00Z'), (1, 'send', -3, 94, '2026-03-10 10:00Z'),
			(1, 'adjustment', 50, 144, '2026-03-14 12:00Z'), (1, 'send', -1, 143, '2026-03-14 22:00Z'), (1, 'correction', -10,
			133, '2026-03-16 10:00Z'), (1, 'send', -2, 131, '2026-03-20 10:00Z'),
			(1, 'send', -1, 130, '2026-03-31 21:59:59.999Z'), (1, 'send', -1, 129, '2026-03-31 22:00Z'),
			(2, 'adjustment', 4, 4, '2026-02-01Z'), (2, 'send', -4, 0, '2026-03-21 10:00Z'), (2, 'refund', 4, 4,
			'2026-03-22 10:00Z')`,
		`insert into credit_prices values (1, '2026-03-01', 1000), (1, '2026-03-15', 1250)`,
		`insert into carrier_tariffs values ('leo', '2026-01-01', 700), ('leo', '2026-03-15', 725)`,
	} {
		s.exec(statement)
	}
	if err := statistics.New(s.pool()).TallyNow(s.t.Context(), time.Minute); err != nil {
		s.t.Fatal(err)
	}
}

// printed runs a report and reads its JSON.
func (s *shell) printed(into any, command string) {
	s.t.Helper()
	code, stdout, stderr := s.run("", append([]string{"admin", "--json"}, strings.Fields(command)...)...)
	if code != exitOK || json.Unmarshal([]byte(stdout), into) != nil {
		s.t.Fatalf("%s: %s%s", command, stdout, stderr)
	}
}

// TestReportMoney: a month's statement at two prices, without a price, and as CSV.
func TestReportMoney(t *testing.T) {
	s := newAdmin(t)
	s.reported()
	for _, row := range []struct{ command, want string }{
		{"report money --from 2026-03 --to 2026-03 --company 1",
			`{"company_id":1,"company":"=Isoko a","from":"2026-03-01","to":"2026-03-31","currency":"BIF","provisional":false,` +
				`"opening":98,` +
				`"purchases":50,"purchases_amount":500,"usage":8,"usage_amount":90,"refunds":0,"refunds_amount":0,` +
				`"corrections":-10,"corrections_amount":-125,"net_usage":8,"net_usage_amount":90,"closing":130,"usage_lines":[` +
				`{"carrier":"leo","kind":"single","from":"2026-03-01","to":"2026-03-14","messages":1,"credits":1,"price":10,` +
				`"amount":10},` +
				`{"carrier":"leo","kind":"batch","from":"2026-03-01","to":"2026-03-14","messages":1,"credits":3,"price":10,` +
				`"amount":30},` +
				`{"carrier":"leo","kind":"single","from":"2026-03-15","to":"2026-03-31","messages":2,"credits":2,"price":12.50,` +
				`"amount":25},` +
				`{"carrier":"econet","kind":"batch","from":"2026-03-15","to":"2026-03-31","messages":1,"credits":2,` +
				`"price":12.50,"amount":25}],"not_counted":0}`},
		{"report money --from 2026-03-01 --to 2026-03-31 --company 2",
			`{"company_id":2,"company":"=Isoko b","from":"2026-03-01","to":"2026-03-31","currency":"BIF","provisional":false,` +
				`"opening":4,` +
				`"purchases":0,"purchases_amount":0,"usage":4,"usage_amount":null,"refunds":4,"refunds_amount":null,` +
				`"corrections":0,"corrections_amount":0,"net_usage":0,"net_usage_amount":null,"closing":4,"usage_lines":[` +
				`{"carrier":"leo","kind":"single","from":"2026-03-01","to":"2026-03-31","messages":1,"credits":4,"price":null,` +
				`"amount":null}],"not_counted":0}`},
	} {
		var got, want any
		s.printed(&got, row.command)
		if json.Unmarshal([]byte(row.want), &want) != nil {
			t.Fatal(row.want)
		}
		if found, expected := indentedJSON(got), indentedJSON(want); found != expected {
			t.Errorf("%s:\n%s\nwant\n%s", row.command, found, expected)
		}
	}
	var all []struct{ Opening, Closing int64 }
	s.printed(&all, "report money --from 2026-02 --to 2026-02")
	if fmt.Sprint(all) != "[{0 98} {0 4}]" {
		t.Error(all)
	}
	code, stdout, stderr := s.run("", "admin", "report", "money", "--from", "2026-03", "--to", "2026-03", "--csv")
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if code != exitOK || err != nil || len(rows) != 1+11+8 || rows[1][1] != "'=Isoko a" ||
		strings.Join(rows[3][4:], " ") != "usage    8  90 false" {
		t.Errorf("%d, %v, %d rows\n%s%s", code, err, len(rows), stdout, stderr)
	}
	// A debit whose message is not counted is a line of its own.
	s.exec(`insert into ledger (company_id, kind, amount, balance_after, created_at)
		values (2, 'send', -3, 1, '2026-03-25Z')`)
	var late struct {
		Provisional bool
		NotCounted  int64 `json:"not_counted"`
		Usage       int64
	}
	if s.printed(&late, "report money --from 2026-03 --to 2026-03 --company 2"); !late.Provisional ||
		late.NotCounted != 3 || late.Usage != 7 {
		t.Error(late)
	}
	for _, wrong := range []string{"report money --from 2026-03-02 --to 2026-03-01",
		"report money --from 2020-01 --to 2026-01", "report money --from today --to 2026-01",
		"report money --from 2026-01 --to 2026-01 --company 99"} {
		if code, _, _ := s.run("", append([]string{"admin"}, strings.Fields(wrong)...)...); code == exitOK {
			t.Error(wrong)
		}
	}
}

// october fills a database with the month of docs/finances.md.
func (s *shell) october() {
	s.t.Helper()
	if code, _, stderr := s.run("twelve green bananas", "admin", "user", "create", "--email", "isoko@example.com",
		"--name", "N", "--password-stdin"); code != exitOK {
		s.t.Fatal(stderr)
	}
	if code, _, stderr := s.run("", "admin", "company", "create", "--owner", "isoko@example.com", "--name",
		"ISOKO"); code != exitOK {
		s.t.Fatal(stderr)
	}
	for _, statement := range []string{
		// Of lumitel's single messages 320 expire before a carrier has them.
		`insert into messages (ulid, company_id, user_id, batch_id, phone_number, sender, body, encoding, segments, test,
			created_at, carrier, status, sent_at, failed_at, failure_reason)
			select gen_random_uuid(), 1, 1, batch, '+25779000001', 'ISOKO', 'x', 0, segments, test, '2026-10-20 10:00Z', carrier,
				2 - least(i / (expired + 1), 1),
				case when i > expired then '2026-10-20 10:00:05Z'::timestamptz end, case when i <= expired
				then '2026-10-21 10:00Z'::timestamptz end, case when i <= expired then 'expired' end
			from (values ('leo', null::bigint, 1, false, 3900, 0), ('leo', null, 2, false, 200, 0), ('leo', 1, 2, false, 2000,
			0), ('lumitel', null, 1, false, 12400, 320),
				('lumitel', 2, 2, false, 9000, 0), ('onatel', null, 1, false, 3120, 0), ('lumitel', null, 1, true, 190,
				0)) k(carrier, batch, segments, test, n, expired), generate_series(1, n) i`,
		`insert into segments (message_id, segment, total, carrier, link, key, carrier_id, submitted_at, state)
			select id, segment, m.segments, carrier, carrier || '-1', id || '-' || segment, id || '-' || segment, created_at, 1
				from messages m, generate_series(1, m.segments) segment where status = 1`,
		`insert into segments (message_id, segment, total, carrier, link, key, carrier_id, submitted_at, state) -- sent twice
			select id, 1, 1, carrier, 'lumitel-1', id || '-again', id || '-again', created_at, 1 from messages
				where carrier = 'lumitel' and batch_id is null and not test and status = 1 limit 370`,
		`insert into segments (message_id, segment, total, carrier, link, key, submitted_at) -- never answered
			select id, 1, 1, carrier, 'lumitel-1', '?' || id, created_at from messages where carrier = 'lumitel'
				and batch_id is not null limit 45`,
		`insert into ledger (company_id, kind, amount, balance_after, created_at) values (1, 'adjustment', 18000, 18000,
			'2026-09-10Z'), (1, 'adjustment', 50000, 68000, '2026-10-05Z'),
			(1, 'correction', -500, 67500, '2026-10-12Z'), (1, 'send', -41820, 25680, '2026-10-20 10:00Z'), (1, 'refund', 320,
			26000, '2026-10-21 10:00Z')`,
		`insert into credit_prices values (0, '2026-10-01', 1250)`,
		`insert into carrier_tariffs values ('lumitel', '2026-01-01', 725)`,
	} {
		s.exec(statement)
	}
}

// TestFinancePages: the numbers on docs/finances.md and docs/finance.md are those of the reports of such a month, under
// the names that the pages of the dashboard give them.
func TestFinancePages(t *testing.T) {
	s := newAdmin(t)
	s.october()
	var m struct {
		Provisional                                              bool
		Opening, Purchases, Corrections, Refunds, Usage, Closing json.Number
		Net                                                      json.Number `json:"net_usage"`
		PurchasesBIF                                             json.Number `json:"purchases_amount"`
		CorrectionsBIF                                           json.Number `json:"corrections_amount"`
		RefundsBIF                                               json.Number `json:"refunds_amount"`
		UsageBIF                                                 json.Number `json:"usage_amount"`
		NetBIF                                                   json.Number `json:"net_usage_amount"`
		Lines                                                    []struct {
			Carrier, Kind                    string
			Messages, Credits, Price, Amount json.Number
		} `json:"usage_lines"`
	}
	s.printed(&m, "report money --from 2026-10 --to 2026-10 --company 1")
	var invoices []struct {
		Accepted, Charged, Difference, Amount, Margin, Unanswered json.Number
		Unpaid                                                    json.Number `json:"not_paid"`
	}
	s.printed(&invoices, "report invoice --from 2026-10 --to 2026-10 --carrier lumitel")
	if m.Provisional || len(m.Lines) != 5 || len(invoices) != 1 {
		t.Fatalf("%+v %+v", m, invoices)
	}
	texts, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	for tag, name := range map[string]string{"fr": "finances.md", "en": "finance.md"} {
		file, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer("\u202f", " ", "\u00a0", " ", "\n", " ", "**", "", "  ", " ").Replace
		page := plain(string(file))
		l, _ := texts.ByTag(tag)
		n := func(number json.Number) string { return l.Amount(number.String()) }
		minus := func(number json.Number) string { return n("-" + number) }
		i := invoices[0]
		want := [][]string{
			{n(m.Opening), n(m.Purchases), n(m.Corrections), n(m.Refunds), minus(m.Usage), n(m.Closing)},
			{"", "BIF " + n(m.PurchasesBIF), n(m.CorrectionsBIF), n(m.RefundsBIF), minus(m.UsageBIF), ""},
		}
		if tag == "fr" {
			want = [][]string{
				{l.T("statement.opening"), "", n(m.Opening), "", ""},
				{l.T("month.purchases"), "", n(m.Purchases), "", n(m.PurchasesBIF)},
				{l.T("month.corrections"), "", n(m.Corrections), "", n(m.CorrectionsBIF)},
				{l.T("month.refunds"), "", n(m.Refunds), "", n(m.RefundsBIF)},
				{l.T("month.usage"), "", minus(m.Usage), "", minus(m.UsageBIF)},
				{l.T("statement.closing"), "", n(m.Closing), "", ""},
				{l.T("month.net"), "", n(m.Net), "", n(m.NetBIF)},
				{l.T("money.accepted"), l.T("money.charged"), l.T("money.difference"), l.T("money.amount"), l.T("money.margin")},
				{n(i.Accepted), n(i.Charged), n(i.Difference), n(i.Amount) + " BIF", n(i.Margin) + " BIF"},
			}
			for _, line := range m.Lines {
				want = append(want, []string{line.Carrier + " · " + l.T("quality.kind."+line.Kind), n(line.Messages),
					minus(line.Credits), n(line.Price), minus(line.Amount)})
			}
		}
		for _, row := range want {
			if text := plain("| " + strings.Join(row, " | ") + " |"); !strings.Contains(page, text) {
				t.Errorf("%s has no row %s", name, text)
			}
		}
		for _, number := range []json.Number{m.Net, m.NetBIF, i.Accepted, i.Charged, i.Difference, i.Amount, i.Margin,
			i.Unpaid, i.Unanswered} {
			if !strings.Contains(page, plain(n(number))) {
				t.Errorf("%s does not have %s", name, number)
			}
		}
	}
}

func indentedJSON(v any) string {
	text, _ := json.MarshalIndent(v, "", " ") // what was decoded encodes
	return string(text)
}

// TestReportInvoice: what the carriers accepted at two tariffs, beside what was charged; the messages behind the
// difference; and the carrier's own list, in hexadecimal and in decimal.
func TestReportInvoice(t *testing.T) {
	s := newAdmin(t)
	s.reported()
	var invoices []map[string]any
	s.printed(&invoices, "report invoice --from 2026-03 --to 2026-03")
	if len(invoices) != 2 {
		t.Fatal(invoices)
	}
	leo := invoices[1]
	for key, want := range map[string]any{"carrier": "leo", "accepted": 9.0, "unanswered": 1.0, "amount": 5*7.0 + 4*7.25,
		"charged": 10.0, "charged_amount": nil, "not_paid": 1.0, "difference": -1.0, "margin": nil} {
		if leo[key] != want {
			t.Errorf("%s: %v, want %v", key, leo[key], want)
		}
	}
	lines := fmt.Sprint(leo["links"])
	for _, line := range []string{"accepted:3 amount:21 from:2026-03-01 link:leo-1 tariff:7 to:2026-03-14",
		"accepted:4 amount:29 from:2026-03-15 link:leo-1 tariff:7.25 to:2026-03-31",
		"accepted:2 amount:14 from:2026-03-01 link:leo-2"} {
		if !strings.Contains(lines, line) {
			t.Errorf("no line %s in %s", line, lines)
		}
	}
	if econet := invoices[0]; econet["accepted"] != 2.0 || econet["amount"] != nil || econet["charged_amount"] != 25.0 {
		t.Error(econet)
	}
	s.printed(&invoices, "report invoice --from 2026-03 --to 2026-03 --company 2")
	if len(invoices) != 1 || invoices[0]["accepted"] != 0.0 || invoices[0]["charged"] != 4.0 {
		t.Error(invoices)
	}
	code, stdout, stderr := s.run("", "admin", "report", "invoice", "--from", "2026-03", "--to", "2026-03", "--carrier",
		"leo", "--messages")
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	found, sum := "", 0
	for _, row := range rows[min(1, len(rows)):] {
		found += fmt.Sprintf("%s: %s for %s, ", row[0], row[7], row[8])
		var accepted, charged int
		if _, err := fmt.Sscan(row[7]+" "+row[8], &accepted, &charged); err != nil {
			t.Error(err)
		}
		sum += accepted - charged
	}
	if code != exitOK || err != nil || found != "1: 2 for 0, 3: 2 for 3, 5: 1 for 0, 6: 1 for 0, 7: 0 for 4, " ||
		sum != -1 {
		t.Errorf("%d, %v: %s\n%s", code, err, found, stderr)
	}
	against := func(list string) (found struct {
		ReadAs   string `json:"read_as"`
		Both     int64  `json:"both"`
		OnlyOurs []struct {
			CarrierID string `json:"carrier_message_id"`
		} `json:"only_ours"`
		OnlyTheirs []string `json:"only_theirs"`
	}) {
		file := filepath.Join(t.TempDir(), "list.csv")
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		s.printed(&found, "report invoice --from 2026-03 --to 2026-03 --carrier leo --against "+file)
		return found
	}
	for name, list := range map[string]string{
		"hexadecimal": "\ufeffdate;message_id\r\n2026-03-01;1000A1\r\n;001000a2\n;\"1000a3\"\n;0x1000A4\n;1000A5\n;1000a6\n;1000A7\n;1000a8\n;1000FF\n;1000FF\n",
		"decimal":     "1048737,x\n1048738\n1048739\n1048740\n1048741\n1048742\n1048743\n1048744\n1048831\n1048831\n",
	} {
		if found := against(list); found.Both != 8 || len(found.OnlyOurs) != 1 || found.OnlyOurs[0].CarrierID != "1000A9" ||
			len(found.OnlyTheirs) != 2 {
			t.Errorf("%s: %+v", name, found)
		}
	}
	book := excelize.NewFile()
	for i, id := range []any{"message_id", "1048737", 1048738, 1048739} {
		if err := book.SetCellValue("Sheet1", "B"+strconv.Itoa(3+i), id); err != nil {
			t.Fatal(err)
		}
	}
	workbook, err := book.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	if found := against(workbook.String()); found.Both != 3 || len(found.OnlyOurs) != 6 {
		t.Errorf("a workbook: %+v", found)
	}
	if found := against("message_id\n"); found.Both != 0 || len(found.OnlyOurs) != 9 || len(found.OnlyTheirs) != 0 {
		t.Errorf("an empty list: %+v", found)
	}
	file := filepath.Join(t.TempDir(), "list.csv")
	if err := os.WriteFile(file, []byte("message_id\n=1+2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := s.run("", "admin", "report", "invoice", "--from", "2026-03", "--to", "2026-03", "--carrier",
		"leo", "--against", file); code != exitOK ||
		strings.Count(stdout, "\n") != 1+9+1 || !strings.Contains(stdout, "theirs,'=1+2,") ||
		!strings.Contains(stderr, "only we have 9") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	for content, cause := range map[string]string{"message_id\n7.30123E+18\n": "line 2 has 7.30123E+18",
		"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "XLSX without a password"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr := s.run("", "admin", "report", "invoice", "--from", "2026-03", "--to", "2026-03",
			"--carrier", "leo", "--against", file); code == exitOK ||
			!strings.Contains(stdout+stderr, cause) {
			t.Errorf("%q: %s%s", cause, stdout, stderr)
		}
	}
	for _, wrong := range []string{"--messages", "--against " + file, "--carrier leo --against /nowhere"} {
		if code, _, _ := s.run("", append([]string{"admin", "report", "invoice", "--from", "2026-03", "--to", "2026-03"},
			strings.Fields(wrong)...)...); code == exitOK {
			t.Error(wrong)
		}
	}
}

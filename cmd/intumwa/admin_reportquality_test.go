package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestReportQuality: the command's rows as JSON and CSV, of all companies and of one, with purged messages.
func TestReportQuality(t *testing.T) {
	s := newAdmin(t)
	s.mustCompany("a@example.com")
	s.exec(`insert into messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier,
		status, created_at, sent_at, failed_at, failure_reason, cost_center)
		select gen_random_uuid(), 1 + i / 5, 1, '+25761000000', 'ISOKO', 'x', 0, 2, i = 4, 'leo', 1 + (i % 2),
			'2026-03-31 21:59:00Z', case when i % 2 = 0 then timestamptz '2026-03-31 21:59:03Z' end,
			case when i % 2 = 1 then timestamptz '2026-03-31 21:59:03Z' end, case when i % 2 = 1 then '=1+1' end, '@x'
		from generate_series(1, 6) i`)
	s.exec(`insert into segments (message_id, segment, total, carrier, link, key, submitted_at, state, receipt, receipt_at)
		select id, 1, 1, 'leo', 'leo-1', id::text, created_at + interval '1500 ms', status, 'DELIVRD', coalesce(sent_at,
			failed_at) from messages`)
	code, stdout, stderr := s.run("", "admin", "--json", "report", "quality", "--from", "2026-03-31", "--to", "2026-03",
		"--by", "month,company,cost_center")
	if code != exitOK {
		t.Fatal(stderr)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%v: %s", err, stdout)
	}
	reasons, _ := json.Marshal(rows[0]["reasons"])
	delete(rows[0], "reasons")
	got, _ := json.Marshal(rows[0])
	if want :=
		`{"accepted":4,"at_carrier":0,"company_id":1,"cost_center":"@x","credits":6,"expired":0,"failed":2,` +
			`"month":"2026-03","segments":8,"sent":2,"success_percent":50,` +
			`"to_carrier_p50":2,"to_carrier_p95":2,"to_carrier_p99":2,"to_receipt_p50":2,"to_receipt_p95":2,` +
			`"to_receipt_p99":2,"waiting":0}`; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if string(reasons) != `[{"messages":2,"reason":"=1+1"}]` {
		t.Errorf("reasons %s", reasons)
	}
	code, stdout, _ = s.run("", "admin", "report", "quality", "--from", "2026-03-01", "--to", "2026-03-31", "--by",
		"day,cost_center", "--company", "1", "--csv")
	if want :=
		"day,cost_center,accepted,waiting,at_carrier,sent,failed,expired,success_percent,segments,credits,to_carrier_p50," +
			"to_carrier_p95,to_carrier_p99,to_receipt_p50,to_receipt_p95,to_receipt_p99,reasons\r\n" +
			"2026-03-31,'@x,4,0,0,2,2,0,50,8,6,2,2,2,2,2,2,'=1+1: 2\r\n"; code != exitOK || stdout != want {
		t.Errorf("%d\n%s\nwant\n%s", code, stdout, want)
	}
	if code, stdout, _ := s.run("", "admin", "--json", "report", "quality", "--from", "2026-03-01", "--to", "2026-03-31",
		"--carrier", "lumitel"); code != exitOK || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("%d %s", code, stdout)
	}
	if code, stdout, _ := s.run("", "admin", "report", "quality", "--from", "2026-03-01", "--to", "2026-03-31", "--kind",
		"test", "--by", "kind"); code != exitOK || !strings.Contains(stdout, "test") {
		t.Errorf("%d %s", code, stdout)
	}
	for _, wrong := range []string{"--from 2026-03-02 --to 2026-03-01", "--from 2026 --to 2026-03-01",
		"--from 2016-03-02 --to 2026-03-01", "--from 2026-03-01 --to 2026-03-02 --by hour",
		"--from 2026-03-01 --to 2026-03-02 --by day,day", "--from 2026-03-01 --to 2026-03-02 --kind x",
		"--from 2026-03-01 --to 2026-03-02 --company -1"} {
		if code, stdout, stderr := s.run("", append([]string{"admin", "report", "quality"},
			strings.Fields(wrong)...)...); code == exitOK || stderr == "" {
			t.Errorf("%s: %d %s", wrong, code, stdout)
		}
	}
}

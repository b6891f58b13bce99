package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// TestRestored: after a restore no id of a message comes again that was given out since the backup, and so no webhook-id.
func TestRestored(t *testing.T) {
	s := newAdmin(t)
	s.refused("--ahead", "", "admin", "restored", "--ahead=-1")
	got := s.admin("", "last_message_id next_message_id held", "restored")
	if number(got["next_message_id"]) != "10000002" && number(got["next_message_id"]) != "1.0000002e+07" {
		t.Errorf("restored: %v", got)
	}
	conn, err := pgx.Connect(t.Context(), databaseOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	insert := func() (id int64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier, created_at)
			VALUES (gen_random_uuid(), 1, 1, '+25771000001', 'S', 'x', 0, 1, false, 'leo', now() - interval '10 hours') RETURNING id`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := insert()
	if first != 10_000_002 {
		t.Errorf("the next message is %d", first)
	}
	s.admin("", "last_message_id next_message_id held", "restored") // ten hours are lost: 5,000 a second
	if next := insert(); next < first+10*3600*5000 || next > first+11*3600*5000 {
		t.Errorf("after ten lost hours the next message is %d", next)
	}
	s.admin("", "last_message_id next_message_id held", "restored", "--ahead", "5", "--pending", "send")
	var recorded int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM acts WHERE act = 'database.restored'`).Scan(&recorded); err != nil || recorded != 3 {
		t.Errorf("%d acts, %v", recorded, err)
	}
}

// TestUnansweredCommands: what waited is held by `restored`, listed with the receipts that name its number, and decided once; every
// decision is recorded with its reason.
func TestUnansweredCommands(t *testing.T) {
	s := newAdmin(t)
	pool, err := postgres.Open(t.Context(), databaseOf(t, s), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var list []*messages.Message
	for i := range 5 {
		list = append(list, &messages.Message{ULID: ulid.Make(), CompanyID: 0, UserID: 1, Number: sms.Number(fmt.Sprintf("+2576100000%d", i)), Sender: "INTORE",
			Body: "canary", Encoding: sms.GSM7, Segments: 1, Carrier: []string{"lumitel", "leo"}[i%2], Validity: 1e14})
	}
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := messages.New(pool).Insert(t.Context(), tx, list)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{"DELIVRD", "DELIVRD", "UNDELIV"} { // of two handsets; two of the first, of two carriers
		if _, err := pool.Exec(t.Context(), `INSERT INTO receipts (handset, carrier, link, key, carrier_id, number, state, status, error, outcome)
			VALUES ($1, $2, 'l', $3, $3, '257', $4, 1, '', 'unmatched')`, 61000000+[]int{0, 0, 2}[i], []string{"leo", "lumitel", "lumitel"}[i], fmt.Sprint(i), state); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.admin("", "last_message_id next_message_id held", "restored", "--stopped", "2026-01-01"); number(got["held"]) != "0" {
		t.Errorf("what was due after the gateway had stopped is held: %v", got)
	}
	if got := s.admin("", "last_message_id next_message_id held", "restored"); number(got["held"]) != "5" {
		t.Errorf("held: %v", got)
	}
	unanswered := func(more ...string) (ids []string) {
		t.Helper()
		code, stdout, stderr := s.run("", append([]string{"admin", "unanswered", "--json"}, more...)...)
		var shown []struct {
			ID           string `json:"id"`
			Receipts     int    `json:"receipts"`
			ReceiptState string `json:"receipt_state"`
			ReceiptID    string `json:"receipt_carrier_id"`
		}
		if err := json.Unmarshal([]byte(stdout), &shown); err != nil || code != exitOK {
			t.Fatalf("%v: %d %s %s %v", more, code, stdout, stderr, err)
		}
		for _, m := range shown {
			ids = append(ids, fmt.Sprint(m.ID, " ", m.Receipts, m.ReceiptState, m.ReceiptID))
		}
		return ids
	}
	says := func(got []string, want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("listed are\n%q, want\n%q", got, want)
		}
	}
	id := func(i int) string { return list[i].ULID.String() }
	says(unanswered(), id(0)+" 2DELIVRD1", id(1)+" 0", id(2)+" 1UNDELIV2", id(3)+" 0", id(4)+" 0")
	says(unanswered("--receipts", "some"), id(0)+" 2DELIVRD1", id(2)+" 1UNDELIV2")
	says(unanswered("--receipts", "none", "--carrier", "leo", "--limit", "1"), id(1)+" 0")
	s.refused("say which", "", "admin", "unanswered", "send", "--reason", "x")
	s.refused("reason", "", "admin", "unanswered", "send", "--all")
	s.refused("is no ULID", "", "admin", "unanswered", "send", "--id", "x", "--reason", "x")
	decided := func(want string, args ...string) {
		t.Helper()
		got := s.admin("", "messages passed", append([]string{"unanswered"}, args...)...)
		if number(got["messages"])+" "+number(got["passed"]) != want {
			t.Errorf("%v: %v, want %s", args, got, want)
		}
	}
	decided("1 0", "settle", "--as", "sent", "--id", id(0), "--reason", "it is in the carrier's records")
	decided("1 0", "send", "--carrier", "lumitel", "--reason", "it is not, and no receipt names it")
	decided("1 0", "settle", "--as", "failed", "--receipts", "some", "--all", "--reason", "UNDELIV")
	decided("0 0", "send", "--carrier", "lumitel", "--reason", "twice")
	decided("2 0", "settle", "--as", "cancelled", "--all", "--reason", "too late")
	says(unanswered())
	if code, _, stderr := s.run("", "admin", "unanswered", "send", "--id", id(0), "--reason", "again"); code != exitError || stderr == "" {
		t.Errorf("what is decided: %d %q", code, stderr)
	}
	for i, want := range []string{"sent", "failed", "failed", "failed", "pending"} {
		if shown := s.admin("", `id message_id batch_id company_id status to sender encoding segment_count test carrier failure_reason
			created_at sent_at failed_at waiting segments history webhook_deliveries`, "message", "show", "--id", id(i)); shown["status"] != want || (shown["waiting"] != nil) != (i == 4) {
			t.Errorf("message %d is %v, waiting: %v; want %s", i, shown["status"], shown["waiting"], want)
		}
	}
	var reasons int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM acts WHERE act LIKE 'unanswered.%' AND after->>'reason' <> ''`).Scan(&reasons); err != nil || reasons != 6 {
		t.Errorf("%d decisions are recorded with their reason, %v", reasons, err)
	}
	code, stdout, _ := s.run("", "admin", "unmatched", "--carrier", "lumitel", "--limit", "1", "--json")
	var strays []struct{ State, Number string }
	if err := json.Unmarshal([]byte(stdout), &strays); err != nil || code != exitOK || len(strays) != 1 || strays[0].State != "UNDELIV" {
		t.Errorf("unmatched: %d %s %v", code, stdout, err)
	}
}

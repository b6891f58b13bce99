package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/audit"
	"intumwa/messages"
	"intumwa/sms"
)

// TestRestored: after a restore, no message id since the backup is used again, and so no webhook-id.
func TestRestored(t *testing.T) {
	s := newAdmin(t)
	s.refused("--ahead", "", "admin", "restored", "--ahead=-1")
	got := s.admin("", "last_message_id next_message_id held", "restored")
	if number(got["next_message_id"]) != "10000002" && number(got["next_message_id"]) != "1.0000002e+07" {
		t.Errorf("restored: %v", got)
	}
	insert := func() (id int64) {
		t.Helper()
		if err := s.pool().QueryRow(t.Context(), `INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body,
			encoding, segments, test, carrier, created_at)
			VALUES (gen_random_uuid(), 1, 1, '+25771000001', 'S', 'x', 0, 1, false, 'leo', now() - interval '10 hours')
			RETURNING id`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := insert()
	if first != 10_000_002 {
		t.Errorf("the next message is %d", first)
	}
	s.admin("", "last_message_id next_message_id held", "restored") // room for ten hours at 5,000 a second
	if next := insert(); next < first+10*3600*5000 || next > first+11*3600*5000 {
		t.Errorf("after ten lost hours the next message is %d", next)
	}
	s.admin("", "last_message_id next_message_id held", "restored", "--ahead", "5", "--pending", "send", "--stopped")
	s.holds(`SELECT count(*) FROM audit_log WHERE act = 'database.restored'`, 3)
}

// TestUnansweredCommands: `restored` holds pending messages. They are listed with the receipts that name their number,
// and decided once. Every decision is audited with its reason.
func TestUnansweredCommands(t *testing.T) {
	s := newAdmin(t)
	list := s.waiting(5, func(i int, m *messages.Message) { m.Carrier = []string{"lumitel", "leo"}[i%2] })
	s.stray(0, "leo", "DELIVRD", "0") // two of the first number, from two carriers
	s.stray(0, "lumitel", "DELIVRD", "1")
	s.stray(2, "lumitel", "UNDELIV", "2")
	if got := s.admin("", "last_message_id next_message_id held", "restored", "--stopped", "2026-01-01"); number(
		got["held"]) != "0" {
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
	lists := func(got []string, want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("listed are\n%q, want\n%q", got, want)
		}
	}
	id := func(i int) string { return list[i].ULID.String() }
	lists(unanswered(), id(0)+" 2DELIVRD1", id(1)+" 0", id(2)+" 1UNDELIV2", id(3)+" 0", id(4)+" 0")
	lists(unanswered("--receipts", "some"), id(0)+" 2DELIVRD1", id(2)+" 1UNDELIV2")
	lists(unanswered("--receipts", "none", "--carrier", "leo", "--limit", "1"), id(1)+" 0")
	s.refused("name the messages", "", "admin", "unanswered", "send", "--reason", "x")
	s.refused("is no ULID", "", "admin", "unanswered", "send", "--id", "x", "--reason", "x")
	decided := func(want string, args ...string) {
		t.Helper()
		got := s.admin("", "messages passed left", append([]string{"unanswered"}, args...)...)
		if number(got["messages"])+" "+number(got["passed"]) != want {
			t.Errorf("%v: %v, want %s", args, got, want)
		}
	}
	decided("1 0", "settle", "--as", "sent", "--id", id(0), "--reason", "it is in the carrier's records")
	decided("1 0", "send", "--carrier", "lumitel", "--reason", "it is not, and no receipt names it")
	decided("1 0", "settle", "--as", "failed", "--receipts", "some", "--all", "--reason", "UNDELIV")
	decided("0 0", "send", "--carrier", "lumitel", "--reason", "twice")
	decided("2 0", "settle", "--as", "cancelled", "--all")
	lists(unanswered())
	if code, _, stderr := s.run("", "admin", "unanswered", "send", "--id", id(0), "--reason",
		"again"); code != exitError || stderr == "" {
		t.Errorf("what is decided: %d %q", code, stderr)
	}
	for i, want := range []string{"sent", "failed", "failed", "failed", "pending"} {
		if shown := s.admin(
			"", `id message_id batch_id company_id status to sender encoding segment_count test carrier channel failure_reason
			created_at sent_at failed_at waiting segments history webhook_deliveries`, "message", "show", "--id",
			id(i)); shown["status"] != want || (shown["waiting"] != nil) != (i == 4) {
			t.Errorf("message %d is %v, waiting: %v; want %s", i, shown["status"], shown["waiting"], want)
		}
	}
	// one for each decision that changed something
	s.holds(`SELECT count(*) FROM audit_log WHERE act LIKE 'unanswered.%'`, 4)
	s.holds(`SELECT count(*) FROM audit_log WHERE act LIKE 'unanswered.%' AND after->>'reason' <> ''`, 3)
	code, stdout, _ := s.run("", "admin", "unmatched", "--carrier", "lumitel", "--limit", "1", "--json")
	var strays []struct{ State, Number string }
	if err := json.Unmarshal([]byte(stdout), &strays); err != nil || code != exitOK || len(strays) != 1 ||
		strays[0].State != "UNDELIV" {
		t.Errorf("unmatched: %d %s %v", code, stdout, err)
	}
}

// waiting stores messages to n numbers that wait for lumitel, each changed by with.
func (s *shell) waiting(n int, with func(i int, m *messages.Message)) (list []*messages.Message) {
	s.t.Helper()
	for i := range n {
		m := &messages.Message{ULID: ulid.Make(), CompanyID: 0, UserID: 1,
			Number: sms.Number(fmt.Sprintf("+2576100000%d", i)), Sender: "INTORE",
			Body: "canary", Encoding: sms.GSM7, Segments: 1, Carrier: "lumitel", Validity: 1e14}
		with(i, m)
		list = append(list, m)
	}
	if err := pgx.BeginFunc(s.t.Context(), s.pool(), func(tx pgx.Tx) error {
		_, err := messages.New(s.pool()).Insert(s.t.Context(), tx, list)
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	return list
}

// stray stores an unmatched receipt for the handset i, with the standard meaning of its state.
func (s *shell) stray(i int, carrier, state, id string) {
	s.t.Helper()
	s.exec(`INSERT INTO receipts (handset, carrier, link, key, carrier_id, number, state, status, error, outcome)
		VALUES ($1, $2, 'l', $3, $3, '257', $4, $5, '', 'unmatched')`, 61000000+i, carrier, id, state,
		map[string]*int{"DELIVRD": new(1), "UNDELIV": new(2)}[state])
}

// TestSettleByReceipts: `settle --receipts some` settles only messages whose receipts mean what --as gives. Without
// --receipts, messages with contradicting receipts stay. A dry run shows the same and changes nothing. The message
// shows the operator and the reason.
func TestSettleByReceipts(t *testing.T) {
	s := newAdmin(t)
	// The last four are two messages to one number each: a single receipt is ambiguous, one for each is not.
	const delivered, undelivered, none, halfway, both, long, longDone, oneOfTwo, twoOfTwo = 0, 1, 2, 3, 4, 5, 6, 7, 9
	list := s.waiting(11, func(i int, m *messages.Message) {
		switch {
		case i == long || i == longDone:
			m.Body, m.Segments = strings.Repeat("a", 200), 2
		case i >= oneOfTwo:
			m.Number = sms.Number(fmt.Sprintf("+2576100000%d", (i-1)/2*2+1))
		}
	})
	for n, r := range []struct {
		message int
		state   string
	}{{delivered, "DELIVRD"}, {undelivered, "UNDELIV"}, {halfway, "ENROUTE"}, {both, "UNDELIV"}, {both, "DELIVRD"},
		{long, "DELIVRD"}, {longDone, "DELIVRD"}, {longDone, "DELIVRD"},
		{oneOfTwo, "DELIVRD"}, {twoOfTwo, "DELIVRD"}, {twoOfTwo, "DELIVRD"}} {
		s.stray(r.message, "lumitel", r.state, fmt.Sprint(n))
	}
	s.admin("", "last_message_id next_message_id held", "restored")
	ids := func(indexes ...int) string {
		texts := []string{}
		for _, i := range indexes {
			texts = append(texts, list[i].ULID.String())
		}
		return fmt.Sprint(texts)
	}

	// The list has what the receipts mean; the human form groups by it.
	code, stdout, stderr := s.run("", "admin", "unanswered", "--json")
	var shown []struct {
		ID   string `json:"id"`
		Mean string `json:"receipts_mean"`
	}
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil || code != exitOK || len(shown) != 11 {
		t.Fatalf("list: %d %s %s %v", code, stdout, stderr, err)
	}
	for i, want := range []string{"sent", "failed", "none", "unclear", "unclear", "unclear", "sent", "unclear", "unclear",
		"sent", "sent"} {
		if shown[i].ID != list[i].ULID.String() || shown[i].Mean != want {
			t.Errorf("message %d is listed as %+v, want %s", i, shown[i], want)
		}
	}
	_, stdout, _ = s.run("", "admin", "unanswered")
	for _, heading := range []string{"receipts mean sent: 4 messages\n", "receipts mean failed: 1 message\n",
		"receipts are unclear: 5 messages\n", "no receipt: 1 message\n"} {
		if !strings.Contains(stdout, heading) {
			t.Errorf("the list has no heading %q:\n%s", heading, stdout)
		}
	}

	// decides runs a decision dry, then for real.
	decided, settled := 0, 0 // so far
	decides := func(want string, left int, args ...string) {
		t.Helper()
		args = append(append([]string{"unanswered"}, args...), "--reason", "as in the receipts")
		dry := s.admin("", "messages passed left dry_run would", append(args, "--dry-run")...)
		would := []string{}
		for _, m := range dry["would"].([]any) {
			would = append(would, m.(map[string]any)["id"].(string))
		}
		if fmt.Sprint(would) != want || dry["dry_run"] != true || number(dry["left"]) != fmt.Sprint(left) {
			t.Errorf("%v would decide of %v and leave %v, want %s and %d", args, would, dry["left"], want, left)
		}
		s.holds(`SELECT count(*) FROM audit_log WHERE act LIKE 'unanswered.%'`, decided)
		s.holds(`SELECT count(*) FROM messages WHERE status <> 0`, settled)
		done := s.admin("", "messages passed left", args...)
		if number(done["messages"]) != fmt.Sprint(len(would)) || number(done["left"]) != fmt.Sprint(left) {
			t.Errorf("%v: %v, want what the dry run showed: %d and %d left", args, done, len(would), left)
		}
		decided++
		if args[1] == "settle" {
			settled += len(would)
		}
	}
	decides(ids(delivered, longDone, twoOfTwo, twoOfTwo+1), 7, "settle", "--as", "sent", "--receipts", "some", "--all")
	s.holds(`SELECT count(*) FROM messages WHERE status = 1`, 4)
	decides(ids(undelivered), 6, "settle", "--as", "failed", "--receipts", "some", "--all")
	decides(ids(none), 5, "settle", "--as", "failed", "--all")
	s.holds(`SELECT count(*) FROM messages WHERE status = 2`, 2)
	decides(ids(both), 0, "send", "--id", list[both].ULID.String())
	s.holds(`SELECT count(*) FROM outbox`, 1)
	decides(ids(halfway, long, oneOfTwo, oneOfTwo+1), 0, "settle", "--as", "failed", "--receipts", "any", "--all")

	// A decision names its messages in the audit log, and the message its decision.
	message := s.admin(
		"", `id message_id batch_id company_id status to sender encoding segment_count test carrier channel failure_reason
		created_at sent_at failed_at waiting segments history webhook_deliveries`, "message", "show", "--id",
		list[delivered].ULID.String())
	var events []string
	for _, m := range message["history"].([]any) {
		events = append(events, fmt.Sprint(m.(map[string]any)["event"], ": ", m.(map[string]any)["detail"]))
	}
	want := []string{"accepted: ", "unanswered: segment 1 of 1: lumitel may have it", "decided: sent, by " +
		audit.Operator() + ": as in the receipts", "sent: "}
	if !slices.Equal(events, want) {
		t.Errorf("the history is\n%q, want\n%q", events, want)
	}
	if segment := message["segments"].([]any)[0].(map[string]any); segment["submitted_at"] != nil {
		t.Errorf("a segment that is not recorded as submitted was submitted at %v", segment["submitted_at"])
	}
}

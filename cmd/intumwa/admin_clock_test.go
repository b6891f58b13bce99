package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/sms"
)

// TestCommandsUseTheDatabaseClock: commands write and filter by the database's clock, three
// hours behind this machine's.
func TestCommandsUseTheDatabaseClock(t *testing.T) {
	s := newShellOn(t, testenv.Database(t)) // no other test runs meanwhile
	pool := s.pool()
	clock := testenv.NewClock(t, pool)
	t.Cleanup(func() { // later tests need the right time
		clock.Set(0)
		if err := postgres.ReadClock(context.Background(), pool); err != nil {
			t.Error(err)
		}
	})
	const behind = 3 * time.Hour
	clock.Set(-behind)

	m := &messages.Message{ULID: ulid.Make(), CompanyID: 0, UserID: 1, Number: "+25761000001", Sender: "INTORE", Body: "x",
		Encoding: sms.GSM7,
		Segments: 1, Carrier: "lumitel", Validity: 24 * time.Hour}
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := messages.New(pool).Insert(t.Context(), tx, []*messages.Message{m})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := s.admin("", "last_message_id next_message_id held", "restored"); number(got["held"]) != "1" {
		t.Fatalf("held: %v", got)
	}
	s.admin("", "messages passed left", "unanswered", "settle", "--as", "sent", "--id", m.ULID.String(), "--reason",
		"a call to their NOC")
	var sent time.Time
	if err := pool.QueryRow(t.Context(), `SELECT sent_at FROM messages`).Scan(&sent); err != nil {
		t.Fatal(err)
	}
	const slack = 10 * time.Minute // for a busy machine
	if off := time.Since(sent) - behind; off.Abs() > slack {
		t.Errorf("it was sent at %v, which is %v off", sent, off)
	}

	for i, ago := range []time.Duration{30 * time.Minute, 90 * time.Minute} {
		if _, err := pool.Exec(t.Context(), `INSERT INTO receipts (handset, carrier, link, key, carrier_id, number, state,
			status, error, outcome, received_at)
			VALUES (61000001, 'leo', 'l', $1, $1, '257', 'DELIVRD', 1, '', 'unmatched', now() - $2::interval)`, fmt.Sprint(i),
			ago); err != nil {
			t.Fatal(err)
		}
	}
	listed := func(since string) int {
		t.Helper()
		code, stdout, stderr := s.run("", "admin", "unmatched", "--since", since, "--json")
		var list []struct{ ID int64 }
		if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != exitOK {
			t.Fatalf("%d %s %s %v", code, stdout, stderr, err)
		}
		return len(list)
	}
	for since, want := range map[string]int{"10m": 0, "1h": 1, "2h": 2, time.Now().Add(-behind - time.Hour).UTC().Format(
		time.RFC3339): 1} {
		if n := listed(since); n != want {
			t.Errorf("since %s %d are listed, want %d", since, n, want)
		}
	}
}

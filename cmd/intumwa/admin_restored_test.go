package main

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestRestored: after a restore no id of a message comes again that was given out since the backup, and so no webhook-id.
func TestRestored(t *testing.T) {
	s := newAdmin(t)
	s.refused("--ahead", "", "admin", "restored", "--ahead=-1")
	got := s.admin("", "last_message_id next_message_id", "restored")
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
	s.admin("", "last_message_id next_message_id", "restored") // ten hours are lost: 5,000 a second
	if next := insert(); next < first+10*3600*5000 || next > first+11*3600*5000 {
		t.Errorf("after ten lost hours the next message is %d", next)
	}
	s.admin("", "last_message_id next_message_id", "restored", "--ahead", "5")
	var recorded int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM acts WHERE act = 'database.restored'`).Scan(&recorded); err != nil || recorded != 3 {
		t.Errorf("%d acts, %v", recorded, err)
	}
}

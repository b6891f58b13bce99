package messages_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"intumwa/messages/statistics"
	"intumwa/sms"
)

// TestTally: counts are right, also when messages change after they were counted and when processes count at once;
// closed chunks are not counted again.
func TestTally(t *testing.T) {
	d := newTestStore(t)
	// Ids around the end of a chunk; days around midnight in Burundi, which is 22:00 UTC.
	d.exec(`ALTER SEQUENCE messages_id_seq RESTART WITH 99901`)
	d.exec(`INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier,
		status, created_at)
		SELECT gen_random_uuid(), CASE WHEN i % 4 = 0 THEN 2 WHEN i % 50 = 1 THEN 0 ELSE 1 END, 1, '+25761000000', 'D', 'x',
			0, 1, false,
			CASE WHEN i % 2 = 0 THEN 'leo' ELSE 'lumitel' END, i % 3, '2026-03-31 21:59:00Z'::timestamptz + make_interval(secs =>
			i)
		FROM generate_series(1, 200) i`)
	later := `UPDATE tally_chunks SET counted_at = counted_at - interval '1 hour',
		changed_at = changed_at - interval '1 hour'`
	settle := func() {
		t.Helper()
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for {
					counted, err := d.Tally(t.Context())
					if err != nil {
						t.Error(err)
					}
					if !counted {
						return
					}
				}
			})
		}
		wait.Wait()
	}
	truth := func(company int) string {
		t.Helper()
		rows, err := d.pool.Query(t.Context(), `SELECT (created_at AT TIME ZONE 'UTC' + interval '2 hours')::date, carrier,
			count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status = 1), count(*) FILTER (WHERE status = 2)
			FROM messages WHERE company_id = $1 GROUP BY 1, 2 ORDER BY 1, 2`, company)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var days []statistics.Day
		for rows.Next() {
			var day statistics.Day
			if err := rows.Scan(&day.Date, &day.Carrier, &day.Pending, &day.Sent, &day.Failed); err != nil {
				t.Fatal(err)
			}
			days = append(days, day)
		}
		return fmt.Sprint(days)
	}
	check := func() {
		t.Helper()
		for company := 1; company <= 2; company++ {
			days, err := d.Daily(t.Context(), sms.CompanyID(company), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
				time.Date(2026, 4, 30, 0, 0, 0, 0, time.UTC))
			if got := fmt.Sprint(days); err != nil || got != truth(company) || len(days) != 6-2*company {
				t.Errorf("company %d: %s, want %s (%v)", company, got, truth(company), err)
			}
		}
	}
	settle()
	if n := d.count(`SELECT count(*) FROM tallies`); n != 0 { // new chunks grow for a while
		t.Errorf("%d rows are counted at once", n)
	}
	d.exec(later)
	settle()
	check()
	if n := d.count(`SELECT count(*) FROM tally_chunks`); n != 11 { // and those from which a message may still come
		t.Errorf("%d chunks", n)
	}
	d.exec(`UPDATE messages SET status = 1 WHERE status = 0 AND id % 2 = 0`)
	d.exec(later)
	settle()
	check()
	d.exec(`UPDATE messages SET status = 2 WHERE status = 0`)
	for range 3 {
		d.exec(later)
		settle()
	}
	check()
	if n := d.count(`SELECT count(*) FROM tally_chunks WHERE NOT closed`); n != 1 { // it can still grow
		t.Errorf("%d chunks are open", n)
	}
	for company, want := range map[string]int{"= 0": 196, "<> 0": 196} {
		// all companies together; the gateway's own are in neither
		if n := d.count(`SELECT sum(messages) FROM tallies WHERE company_id ` + company); n != want {
			t.Errorf("companies %s: %d messages, want %d", company, n, want)
		}
	}
	// A restored database goes on far ahead: the gap has no chunks.
	d.exec(`INSERT INTO messages (id, ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
		carrier, created_at)
		OVERRIDING SYSTEM VALUE SELECT 50000000, gen_random_uuid(), 2, 1, '+25761000000', 'D', 'x', 0, 1, false, 'leo',
		'2026-04-02 12:00Z'`)
	settle()
	if n := d.count(`SELECT count(*) FROM tally_chunks`); n != 22 {
		t.Errorf("%d chunks after the gap", n)
	}
	d.exec(later)
	settle()
	if got, want := d.count(`SELECT sum(messages) FROM tallies WHERE company_id = 2`),
		d.count(`SELECT count(*) FROM messages WHERE company_id = 2`); got != want {
		t.Errorf("%d messages of company 2 are counted, want %d", got, want)
	}
	if days, err := d.Daily(t.Context(), 3, time.Unix(0, 0), time.Now().AddDate(1, 0, 0)); err != nil || len(days) != 0 {
		t.Error(days, err)
	}
}

package messages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

// TestQualityIsOfNow: messages and their states count at once, without a tally, also between and after tallies.
func TestQualityIsOfNow(t *testing.T) {
	d := newHotStore(t)
	filter := statistics.QualityFilter{Company: 1, First: time.Now().AddDate(0, 0, -1), Last: time.Now().AddDate(0, 0, 1)}
	says := func(want string) {
		t.Helper()
		counted, err := d.Quality(t.Context(), filter)
		if err != nil || len(counted) != 1 {
			t.Fatal(counted, err)
		}
		q := counted[0]
		if got := fmt.Sprint(q.Waiting, q.AtCarrier, q.Sent, q.Failed, q.Reasons); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	ids := d.pending(31)
	says("31 0 0 0 []")
	d.tallied(true)
	d.settle([]receipts.Segment{accepted(ids[0], "a"), accepted(ids[1], "b")})
	d.finish(messages.Final{MessageID: ids[2], Status: sms.Failed, At: time.Now(), Reason: "expired"})
	d.finish(messages.Final{MessageID: ids[3], Status: sms.Failed, At: time.Now(), Reason: "UNDELIV 001"},
		messages.Final{MessageID: ids[4], Status: sms.Failed, At: time.Now(), Reason: "UNDELIV 001"})
	says("26 2 0 3 [{UNDELIV 001 2} {expired 1}]")
	d.pending(2)
	says("28 2 0 3 [{UNDELIV 001 2} {expired 1}]")
	filter.Carrier = "leo"
	if counted, err := d.Quality(t.Context(), filter); err != nil || len(counted) != 0 {
		t.Error(counted, err)
	}
	for _, none := range []statistics.QualityFilter{{First: anyTime.First, Last: anyTime.Last},
		{Company: -1, First: anyTime.First, Last: anyTime.Last}} {
		if counted, err := d.Quality(t.Context(), none, byAll...); err != nil || len(counted) != 0 {
			t.Errorf("of no company: %v, %v", counted, err)
		}
	}
}

// TestQualityOfMany: of more messages than a query counts, the newest and the last counted ones add up.
func TestQualityOfMany(t *testing.T) {
	d := newHotStore(t)
	more := func(n int, status int) {
		d.exec(`INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
			carrier, status)
			SELECT gen_random_uuid(), 1, 1, '+25761000000', 'D', 'x', 0, 1, false, 'leo', $2 FROM generate_series(1, $1::int)`,
			n, status)
	}
	says := func(sent, pending int64) {
		t.Helper()
		counted, err := d.Quality(t.Context(), anyTime)
		if err != nil || len(counted) != 1 || counted[0].Sent != sent || counted[0].Pending() != pending {
			t.Errorf("%+v, %v; want %d and %d", counted, err, sent, pending)
		}
	}
	more(9_000, 1)
	says(3_000, 0) // the first count has not been
	d.tallied(true)
	says(9_000, 0)
	more(2_500, 0)
	says(9_000, 2_500)
	d.exec(`UPDATE messages SET status = 1 WHERE status = 0`)
	says(11_500, 0)
	d.exec(`SELECT setval('messages_id_seq', 99999)`)
	more(400, 0)
	says(11_500, 400) // in the next chunk
	more(600, 0)
	says(11_000, 1_000) // more than 3,000 are new: the oldest of them are missing
	d.tallied(true)
	says(11_500, 1_000)
}

// TestOthers: a company's cost centres and reasons have a bound for each count; its largest keep their names.
func TestOthers(t *testing.T) {
	d := newHotStore(t)
	d.exec(`INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier,
		status, failed_at, failure_reason, cost_center)
		SELECT gen_random_uuid(), 1, 1, '+25761000000', 'D', 'x', 0, 1, false, 'leo', 2, now(), CASE WHEN i % 2 = 0
			THEN 'UNDELIV ' || i ELSE repeat('long ', 100) END,
			CASE WHEN i % 4 = 0 THEN 'sales' WHEN i % 4 = 1 THEN NULL ELSE 'c' || i END FROM generate_series(1, 2800) i`)
	check := func() {
		t.Helper()
		counted, err := d.Quality(t.Context(), anyTime, statistics.ByCostCenter)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]int64{}
		reasons := map[string]bool{}
		for _, q := range counted {
			of[q.CostCenter] = q.Accepted()
			for _, r := range q.Reasons {
				reasons[r.Reason] = true
			}
		}
		if len(of) != 201 || of["sales"] != 700 || of[""] != 700 || of[statistics.Others] != 1400-198 {
			t.Errorf("%d cost centres, %d %d %d", len(of), of["sales"], of[""], of[statistics.Others])
		}
		if len(reasons) > 51 || !reasons[statistics.Others] || !reasons[strings.Repeat("long ", 20)] {
			t.Errorf("%d reasons", len(reasons))
		}
	}
	check()
	d.tallied(true)
	if n := d.count(`SELECT count(*) FROM tallies WHERE company_id = 1`); n > 2*201*51 {
		t.Errorf("%d rows", n)
	}
	check()
}

// TestTimes: percentiles are the upper bounds of their buckets.
func TestTimes(t *testing.T) {
	times := statistics.Times{0, 0, 0, 50, 45, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1}
	for share, want := range map[float64]string{.5: "1s false true", .51: "2s false true", .95: "2s false true",
		.99: "24h0m0s false true", 1: "24h0m0s true true"} {
		if within, over, ok := times.Percentile(share); fmt.Sprint(within, over, ok) != want {
			t.Errorf("%v: %v %v %v, want %s", share, within, over, ok, want)
		}
	}
	if _, _, ok := (statistics.Times{}).Percentile(.5); ok {
		t.Error("of nothing")
	}
}

package receipts

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages/submission"
	"intumwa/sms"
)

// TestInboxPages: the inbox is listed page by page, and each page reads a bounded number of receipts.
func TestInboxPages(t *testing.T) {
	d := newTest(t, Same)
	d.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, error, message_id, outcome)
		SELECT 'c', 'l', n::text, n::text, '', 'DELIVRD', '', CASE WHEN n % 2000 <> 1 THEN 1 END, CASE WHEN n % 2000 <> 1
			THEN 'duplicate' ELSE 'unmatched' END
		FROM generate_series(1, 12000) n`)
	unmatched, pages := 0, 0
	for before := int64(0); ; {
		page, next, err := Inbox(t.Context(), d.pool, before, 2)
		if err != nil || len(page) > 2 {
			t.Fatalf("%d unmatched, %v", len(page), err)
		}
		unmatched, pages = unmatched+len(page), pages+1
		if before = next; next == 0 {
			break
		}
	}
	if unmatched != 6 || pages < 3 {
		t.Errorf("%d unmatched on %d pages", unmatched, pages)
	}
}

// TestFirstSince: the inbox since a moment begins at the first receipt that arrived then or later, even as a repetition
// with a small id.
func TestFirstSince(t *testing.T) {
	d := newTest(t, Same)
	d.exec(`INSERT INTO receipts (id, carrier, link, key, carrier_id, number, state, error, message_id, outcome,
		received_at) OVERRIDING SYSTEM VALUE
		SELECT n, 'c', 'l', n::text, n::text, '', 'DELIVRD', '', CASE WHEN n % 2 = 0 THEN 1 END, CASE WHEN n % 2 = 0
			THEN 'duplicate' ELSE 'unmatched' END,
			now() - (11 - n) * interval '1 hour' FROM generate_series(1, 10) n`)
	first := func(ago time.Duration) int64 {
		t.Helper()
		id, err := FirstSince(t.Context(), d.pool, time.Now().Add(-ago))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for ago, want := range map[time.Duration]int64{12 * time.Hour: 1, 5*time.Hour + time.Minute: 7,
		2*time.Hour + time.Minute: 9, 90 * time.Minute: math.MaxInt64} {
		if id := first(ago); id != want {
			t.Errorf("since %v ago the first is %d, want %d", ago, id, want)
		}
	}
	if id, err := FirstSince(t.Context(), d.pool, time.Time{}); id != 0 || err != nil {
		t.Errorf("ever since the first is %d, %v", id, err)
	}
	d.exec(`UPDATE receipts SET received_at = now() WHERE id = 3`) // the carrier repeats it
	if id := first(90 * time.Minute); id != 3 {
		t.Errorf("the first is %d, one that came again is 3", id)
	}
}

// TestConditions: accepted segments, unanswered ones, and those settled by a receipt without an answer count in each
// condition as documented.
func TestConditions(t *testing.T) {
	d := newTest(t, Same)
	other := &testMatcher{TB: t, pool: d.pool, Matcher: New("onatel", Same)}
	d.record([]Segment{
		accepted(1, "a", segment(1, 2)), unanswered(1, 1, segment(2, 2)),
		unanswered(2, 2), unanswered(3, 3),
	}, receipt("x", "DELIVRD", numberOf(3)).echoing(3))
	other.record([]Segment{accepted(4, "b"), unanswered(5, 5)})
	messages, now := []int64{1, 2, 3, 4, 5, 6}, time.Now().Add(time.Second)

	b := &pgx.Batch{}
	set := QueueAccepted(b, messages)
	if err := d.pool.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	if accepted, want := slices.Sorted(maps.Keys(set)), []int64{1, 3, 4}; !slices.Equal(accepted, want) {
		t.Errorf("carriers have accepted %v, want %v", accepted, want)
	}

	for condition, want := range map[string][]int64{
		MayHave("m.id"): {1, 2, 3, 4, 5}, Has("m.id"): {1, 4}, `m.id IN (SELECT p.message_id FROM ` + Submitted +
			` p)`: {1, 2, 3, 4, 5},
	} {
		rows, err := d.pool.Query(t.Context(), `SELECT m.id FROM unnest($1::bigint[]) m(id) WHERE `+condition+` ORDER BY 1`,
			messages)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", condition, got, err, want)
		}
	}

	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		records, err := Records(ctx, tx, "lumitel", messages)
		if err != nil {
			return err
		}
		if c := records[3]; len(c) != 1 || c[0].Answered || c[0].Status != sms.Sent || c[0].Reason != "DELIVRD" ||
			len(records[1]) != 2 || len(records[6]) != 0 {
			t.Errorf("%+v", records)
		}
		// accepted, unanswered, unanswered, settled
		return Refuse(ctx, tx, "lumitel", []Refusal{{1, 1, now}, {1, 2, now}, {2, 1, now}, {3, 1, now},
			{2, 1, now.Add(-time.Hour)}})
	})
	if n := d.count(`SELECT count(*) FROM segments WHERE message_id <= 3`); n != 2 {
		t.Errorf("%d are left of the accepted and the settled one", n)
	}
	b = &pgx.Batch{}
	d.record(nil, receipt("a", "ENROUTE", ""), receipt("stranger", "DELIVRD", ""))
	QueuePurge(b, messages)
	if err := d.pool.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	if n := d.count(`SELECT count(*) FROM segments`); n != 0 || d.count(`SELECT count(*) FROM receipts`) != 1 {
		t.Errorf("%d segments of purged messages are left, or the inbox is empty", n)
	}
}

// TestMayHaveAgrees: MayHave in SQL and in Go give one answer, for any submit records and marks.
func TestMayHaveAgrees(t *testing.T) {
	d := newTest(t, Same)
	var messages []int64
	id := int64(0)
	for _, key := range []string{"", "a", "?1", "!1"} {
		for _, state := range []*int{nil, new(1), new(2)} {
			for _, marks := range [][]*int{{nil}, {new(1)}, {new(2)}, {new(1), nil}, {new(1), new(1)}, {new(1), new(2)}} {
				if id++; key != "" {
					for _, mark := range marks {
						d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at, state, mark)
							VALUES ($1, 1, 1, 'lumitel', 'l', $2, now(), $3, $4)`, id, key, state, mark)
					}
				}
				messages = append(messages, id)
			}
		}
	}
	records, err := Records(t.Context(), d.pool, "lumitel", messages)
	if err != nil {
		t.Fatal(err)
	}
	var in int64
	var may bool
	// its error is the rows' error
	rows, _ := d.pool.Query(t.Context(), `SELECT m.id, `+MayHave("m.id")+` FROM unnest($1::bigint[]) m(id)`, messages)
	if _, err := pgx.ForEachRow(rows, []any{&in, &may}, func() error {
		if submission.MayHave(records[in]) != may {
			t.Errorf("%+v: %v in SQL", records[in], may)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestStrays: receipts without a message are found by their handset, of every carrier, since a time; the last one is
// shown.
func TestStrays(t *testing.T) {
	d := newTest(t, Same)
	d.record(nil, receipt("a", "ACCEPTD", numberOf(1)), receipt("a", "DELIVRD", numberOf(1)),
		receipt("b", "UNDELIV", numberOf(2)), receipt("c", "DELIVRD", "none"))
	d.record([]Segment{accepted(3, "d")}, receipt("d", "DELIVRD", numberOf(3)))
	d.exec(`UPDATE receipts SET carrier = 'leo' WHERE key = 'b'`) // where it was sent by failover
	sought := func(message int64, since time.Duration) Sought {
		return Sought{Number: sms.Number("+" + numberOf(message)), Since: time.Now().Add(since)}
	}
	strays, err := Strays(t.Context(), d.pool, []Sought{
		sought(1, -time.Minute), sought(1, time.Minute), sought(2, -time.Minute), sought(3, -time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		count          int
		state, carrier string
		sent, failed   int
	}{{2, "DELIVRD", "lumitel", 1, 0}, {}, {1, "UNDELIV", "leo", 0, 1}, {}} {
		if got := strays[i]; got.Count != want.count || got.Latest.State != want.state ||
			got.Latest.Carrier != want.carrier || got.Sent != want.sent || got.Failed != want.failed {
			t.Errorf("%d: %+v, want %+v", i, strays[i], want)
		}
	}
	if none, err := Strays(t.Context(), d.pool, nil); err != nil || len(none) != 0 {
		t.Errorf("of nothing: %v, %v", none, err)
	}
}

// Sent needs a receipt for each segment of all messages to the number, failed one for each message, and none with the
// other state.
func TestStrayMeans(t *testing.T) {
	for _, c := range []struct {
		sent, failed, messages, segments int
		want                             sms.Status
	}{
		{0, 0, 1, 1, sms.Pending}, {1, 0, 1, 1, sms.Sent}, {2, 0, 1, 1, sms.Sent}, {1, 0, 1, 2, sms.Pending},
		{2, 0, 1, 2, sms.Sent},
		{0, 1, 1, 1, sms.Failed}, {0, 1, 1, 2, sms.Failed}, {1, 1, 1, 1, sms.Pending}, {2, 1, 1, 2, sms.Pending},
		{0, 0, 1, 0, sms.Pending},
		{1, 0, 2, 2, sms.Pending}, {2, 0, 2, 2, sms.Sent}, {0, 1, 2, 2, sms.Pending}, {0, 2, 2, 2, sms.Failed},
	} {
		if got := (Stray{Count: 3, Sent: c.sent, Failed: c.failed}).Means(c.messages, c.segments); got != c.want {
			t.Errorf("%+v means %v", c, got)
		}
	}
}
